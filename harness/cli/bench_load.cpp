#include "harness/cli/bench_load.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "harness/checkpoint/checkpoint.h"
#include "harness/cli/bench_requests.h"
#include "harness/cli/console.h"
#include "harness/cli/measured_apart.h"
#include "harness/cli/position_settings.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/engine/attention_cost.h"
#include "harness/engine/diagnostics.h"
#include "harness/engine/torch_language_model.h"

namespace fathom::cli {
namespace {

using nlohmann::ordered_json;

struct LoadQuestion {
  std::string model, dtype;
  std::int64_t length = 0;
  std::int64_t threads = 0;
  std::vector<std::string> settings;
};

/// Seconds since the program was started: the linking of LibTorch is part of what a user waits for.
double seconds_since_start() {
  std::ifstream in("/proc/self/stat");
  std::string text;
  std::getline(in, text);
  const std::size_t end = text.rfind(')');  // of the program's name, which may hold anything
  std::istringstream fields(end == std::string::npos ? "" : text.substr(end + 1));
  constexpr int kStartTime = 20;  // fields after the name
  std::string field;
  for (int i = 0; i < kStartTime; ++i) fields >> field;
  const auto ticks = parse_int(field);
  timespec now = {};
  if (!ticks || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double since_boot = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  return since_boot - static_cast<double>(*ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::int64_t rss_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Opens the model, its tokenizer and its weights as a run does; what is measured on the way goes into `out`.
class LoadedModel {
 public:
  LoadedModel(const LoadQuestion& question, ordered_json& out) : question_(question), out_(out) {
    engine::set_threads(question.threads);
    options_.dtype = question.dtype;
    const auto begin = std::chrono::steady_clock::now();
    checkpoint_ = checkpoint::open_checkpoint(find_model_path(question.model));
    if (checkpoint_->has_tokenizer()) checkpoint_->make_tokenizer();
    out_["open_seconds"] = seconds_since(begin);
    weights_ = engine::load_weights(*checkpoint_, options_);
    out_["load_seconds"] = seconds_since(begin) - out_["open_seconds"].get<double>();
  }

  std::int64_t weight_bytes() const { return engine::weight_bytes(*weights_); }

  void answer() {
    const auto begin = std::chrono::steady_clock::now();
    const auto config = apply_position_settings(checkpoint_->config(), question_.settings, question_.length + 1);
    const auto model = engine::make_language_model(weights_, config, options_);
    lm::Request request = drawn_request(question_.length, model->vocab_size());
    request.max_new_tokens = 1;
    const lm::Completion completion = model->complete({request}).front();
    if (!completion.error.empty()) throw ModelError("bench: " + completion.error);
    out_["first_token_seconds"] = seconds_since(begin);
    out_["model"] = model->identity().name;
    out_["dtype"] = model->identity().dtype;
    out_["threads"] = engine::engine_facts().n_threads;
  }

 private:
  static double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const LoadQuestion& question_;
  ordered_json& out_;
  engine::EngineOptions options_;
  std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
  std::shared_ptr<const engine::LoadedWeights> weights_;
};

std::string timed_load(const LoadQuestion& question) {
  ordered_json out;
  LoadedModel(question, out).answer();
  return out.dump();
}

std::string weighed_load(const LoadQuestion& question) {
  engine::set_threads(question.threads);
  constexpr std::int64_t kWarmUpTokens = 64;
  engine::measure_attention(engine::one_layer_config("rope", "none", kWarmUpTokens), kWarmUpTokens);
  ordered_json ignored;
  ordered_json out = {{"rss_before_bytes", rss_bytes()}};
  LoadedModel model(question, ignored);
  out["weight_bytes"] = model.weight_bytes();
  out["rss_loaded_bytes"] = rss_bytes();
  out["peak_load_bytes"] = peak_rss_bytes();
  model.answer();
  out["peak_rss_bytes"] = peak_rss_bytes();
  return out.dump();
}

ordered_json load_row(const LoadQuestion& question, double start_seconds) {
  const std::string what = fmt::format("the load of {} {}", question.model, question.dtype);
  const auto times = ordered_json::parse(measured_apart([&] { return timed_load(question); }, what));
  const auto sizes = ordered_json::parse(measured_apart([&] { return weighed_load(question); }, what));
  ordered_json row = {{"model", times.at("model")},
                      {"dtype", times.at("dtype")},
                      {"threads", times.at("threads")},
                      {"length", question.length},
                      {"start_seconds", start_seconds}};
  double total = start_seconds;
  for (const char* part : {"open_seconds", "load_seconds", "first_token_seconds"}) {
    row[part] = times.at(part);
    total += times.at(part).get<double>();
  }
  row["total_seconds"] = total;
  row.update(sizes);
  const double added = sizes.at("peak_load_bytes").get<double>() - sizes.at("rss_before_bytes").get<double>();
  row["load_times_weights"] = added / sizes.at("weight_bytes").get<double>();
  return row;
}

std::string load_text(const ordered_json& row) {
  const auto seconds = [&](const char* key) { return row.at(key).get<double>(); };
  const auto mib = [&](const char* key) { return row.at(key).get<double>() / (1 << 20); };
  return fmt::format(
      "{}, {}, {} threads, {} tokens\n"
      "  first token after {:.2f} s: start of the program {:.2f}, opening {:.2f}, weights {:.2f}, prompt {:.2f}\n"
      "  weights {:.0f} MiB; the load adds {:.0f} MiB at its peak ({:.2f} × weights) to {:.0f} MiB before; peak with "
      "the "
      "prompt {:.0f} MiB\n",
      row.at("model").get<std::string>(), row.at("dtype").get<std::string>(), row.at("threads").get<std::int64_t>(),
      row.at("length").get<std::int64_t>(), seconds("total_seconds"), seconds("start_seconds"), seconds("open_seconds"),
      seconds("load_seconds"), seconds("first_token_seconds"), mib("weight_bytes"),
      mib("peak_load_bytes") - mib("rss_before_bytes"), seconds("load_times_weights"), mib("rss_before_bytes"),
      mib("peak_rss_bytes"));
}

}  // namespace

int bench_load(const Arguments& arguments) {
  const double start_seconds = seconds_since_start();
  LoadQuestion question;
  question.model = *arguments.get("MODEL");
  question.threads = arguments.integer("threads", 1, 1024).value_or(0);
  question.settings = arguments.all("set");
  ordered_json rows = ordered_json::array();
  for (const std::string& dtype : split_list(arguments.get_or("dtype", "auto"))) {
    for (const std::int64_t length : bench_lengths(arguments, "512")) {
      question.dtype = dtype;
      question.length = length;
      rows.push_back(load_row(question, start_seconds));
      if (!arguments.has("json")) fmt::print("{}", load_text(rows.back()));
    }
  }
  if (arguments.has("json")) fmt::print("{}\n", rows.dump(1));
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace fathom::cli
