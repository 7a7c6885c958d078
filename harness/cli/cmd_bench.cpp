#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/checkpoint/checkpoint.h"
#include "harness/cli/bench_load.h"
#include "harness/cli/bench_requests.h"
#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/measured_apart.h"
#include "harness/cli/position_settings.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/engine/attention_cost.h"
#include "harness/engine/diagnostics.h"
#include "harness/engine/torch_language_model.h"
#include "harness/position/position_registry.h"
#include "harness/rope/position_remap.h"

namespace fathom::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kThreeRoundsUpTo = 2048;

struct Times {
  double prefill = std::numeric_limits<double>::infinity();
  double decode = std::numeric_limits<double>::infinity();
};

/// Seconds of the prompt and of the ids after the first, each the best of the rounds.
Times times_of(lm::LanguageModel& model, const lm::Request& request, int rounds) {
  Times best;
  for (int round = 0; round < rounds; ++round) {
    const lm::Completion completion = model.complete({request}).front();
    if (!completion.error.empty()) throw ModelError("bench: " + completion.error);
    best.prefill = std::min(best.prefill, completion.seconds - completion.decode_seconds);
    best.decode = std::min(best.decode, completion.decode_seconds);
  }
  return best;
}

struct SpeedQuestion {
  std::string model, dtype;
  std::int64_t length = 0;
  std::int64_t decode = 16;
  std::int64_t threads = 0;
  std::vector<std::string> settings;
};

ordered_json measure_speed(const SpeedQuestion& question) {
  engine::set_threads(question.threads);
  engine::EngineOptions options;
  options.dtype = question.dtype;
  const auto checkpoint = checkpoint::open_checkpoint(find_model_path(question.model));
  const auto config =
      apply_position_settings(checkpoint->config(), question.settings, question.length + question.decode);
  const auto weights = engine::load_weights(*checkpoint, options);
  const auto model = engine::make_language_model(weights, config, options);
  lm::Request request = drawn_request(question.length, model->vocab_size());
  const int rounds = question.length <= kThreeRoundsUpTo ? 3 : 1;
  request.max_new_tokens = 1;
  times_of(*model, request, 1);  // threads and buffers are made
  request.max_new_tokens = 1 + question.decode;
  const Times times = times_of(*model, request, rounds);
  return {{"model", model->identity().name},
          {"dtype", model->identity().dtype},
          {"threads", engine::engine_facts().n_threads},
          {"length", question.length},
          {"prefill_tokens_per_second", static_cast<double>(question.length) / times.prefill},
          {"decode_tokens_per_second", static_cast<double>(question.decode) / times.decode},
          {"peak_rss_bytes", peak_rss_bytes()}};
}

ordered_json measure_apart(const SpeedQuestion& question) {
  const std::string what = fmt::format("{} {} at {} tokens", question.model, question.dtype, question.length);
  return ordered_json::parse(measured_apart([&] { return measure_speed(question).dump(); }, what));
}

std::string mebibytes(const ordered_json& bytes) {
  return bytes.is_null() ? "–" : fmt::format("{:.1f}", bytes.get<double>() / (1 << 20));
}

std::string model_speed_row(const ordered_json& row) {
  return fmt::format("{:<8} {:>7} {:>14.1f} {:>14.1f} {:>12}\n", row.at("dtype").get<std::string>(),
                     row.at("length").get<std::int64_t>(), row.at("prefill_tokens_per_second").get<double>(),
                     row.at("decode_tokens_per_second").get<double>(), mebibytes(row.at("peak_rss_bytes")));
}

ProgressLine::Mode progress_mode(const Arguments& arguments) {
  return arguments.has("quiet") ? ProgressLine::Mode::kQuiet : ProgressLine::Mode::kNormal;
}

ordered_json model_speed_table(const Arguments& arguments) {
  ProgressLine line(progress_mode(arguments));
  SpeedQuestion question;
  question.model = *arguments.get("MODEL");
  question.decode = arguments.integer("decode", 1, 4096).value_or(question.decode);
  question.threads = arguments.integer("threads", 1, 1024).value_or(0);
  question.settings = arguments.all("set");
  ordered_json rows = ordered_json::array();
  for (const std::string& dtype : split_list(arguments.get_or("dtype", "auto"))) {
    for (const std::int64_t length : bench_lengths(arguments, "512,2048,8192")) {
      question.dtype = dtype;
      question.length = length;
      line.show(fmt::format("bench {} {} {}", question.model, dtype, length));
      rows.push_back(measure_apart(question));
    }
  }
  return rows;
}

int bench_model(const Arguments& arguments) {
  const ordered_json rows = model_speed_table(arguments);
  if (arguments.has("json")) {
    fmt::print("{}\n", rows.dump(1));
    return static_cast<int>(ExitCode::kOk);
  }
  fmt::print("{}, {} threads\n{:<8} {:>7} {:>14} {:>14} {:>12}\n", rows[0].at("model").get<std::string>(),
             rows[0].at("threads").get<std::int64_t>(), "dtype", "length", "prefill tok/s", "decode tok/s", "peak MiB");
  for (const ordered_json& row : rows) fmt::print("{}", model_speed_row(row));
  return static_cast<int>(ExitCode::kOk);
}

struct LayerKind {
  std::string scheme, remap;
};

/// nope first: the others are told in its terms.
std::vector<LayerKind> layer_kinds(const Arguments& arguments) {
  std::vector<LayerKind> kinds = {{"nope", "none"}};
  if (const auto asked = arguments.get("positions")) {
    for (const std::string& name : split_list(*asked)) {
      position::position_infos().at(name);  // refuses unknown ones
      if (name != "nope") kinds.push_back({name, "none"});
    }
    return kinds;
  }
  for (const std::string& name : position::position_infos().names()) {
    if (name != "nope") kinds.push_back({name, "none"});
  }
  for (const std::string& remap : rope::position_remaps().names()) kinds.push_back({"rope", remap});
  return kinds;
}

ordered_json layer_cost_json(const LayerKind& kind, std::int64_t length, const engine::AttentionCost& cost,
                             double nope) {
  ordered_json row = {{"position", kind.scheme},
                      {"remap", kind.remap},
                      {"dtype", "float32"},
                      {"threads", engine::engine_facts().n_threads},
                      {"length", length},
                      {"seconds", cost.seconds},
                      {"times_nope", cost.seconds / nope},
                      {"extra_bytes", nullptr}};
  if (cost.extra_bytes) row["extra_bytes"] = *cost.extra_bytes;
  return row;
}

std::string layer_cost_row(const ordered_json& row) {
  const std::string remap = row.at("remap");
  return fmt::format("{:<20} {:>7} {:>11.1f} {:>7.2f} {:>12}\n",
                     row.at("position").get<std::string>() + (remap == "none" ? "" : " " + remap),
                     row.at("length").get<std::int64_t>(), row.at("seconds").get<double>() * 1e3,
                     row.at("times_nope").get<double>(), mebibytes(row.at("extra_bytes")));
}

ordered_json layer_cost_table(const Arguments& arguments) {
  ProgressLine line(progress_mode(arguments));
  const std::vector<LayerKind> kinds = layer_kinds(arguments);
  const std::vector<std::int64_t> lengths = bench_lengths(arguments, "1024,4096,16384");
  engine::set_threads(arguments.integer("threads", 1, 1024).value_or(0));
  ordered_json rows = ordered_json::array();
  for (const std::int64_t length : lengths) {
    std::optional<double> nope;
    for (const LayerKind& kind : kinds) {
      line.show(fmt::format("bench {} {} {}  {}/{}", kind.scheme, kind.remap, length, rows.size() + 1,
                            kinds.size() * lengths.size()));
      const auto config = engine::one_layer_config(kind.scheme, kind.remap, length);
      if (!nope) engine::measure_attention(config, length);  // threads and buffers are made
      const engine::AttentionCost cost = engine::measure_attention(config, length);
      if (!nope) nope = cost.seconds;
      rows.push_back(layer_cost_json(kind, length, cost, *nope));
    }
  }
  return rows;
}

int bench_layers(const Arguments& arguments) {
  for (const char* option : {"dtype", "decode", "load", "set"}) {
    if (arguments.has(option)) throw ConfigError(fmt::format("bench: --{} needs a MODEL", option));
  }
  const ordered_json rows = layer_cost_table(arguments);
  if (arguments.has("json")) {
    fmt::print("{}\n", rows.dump(1));
    return static_cast<int>(ExitCode::kOk);
  }
  fmt::print(
      "one attention layer, 8 heads of 64, float32, chunks of 512 through a cache, {} threads\n"
      "{:<20} {:>7} {:>11} {:>7} {:>12}\n",
      engine::engine_facts().n_threads, "scheme", "length", "ms", "× nope", "MiB on top");
  for (const ordered_json& row : rows) fmt::print("{}", layer_cost_row(row));
  return static_cast<int>(ExitCode::kOk);
}

int run_bench(const Arguments& arguments) {
  if (!arguments.has("MODEL")) return bench_layers(arguments);
  if (arguments.has("load")) {
    for (const char* option : {"decode", "positions"}) {
      if (arguments.has(option)) throw ConfigError(fmt::format("bench: --{} does not go with --load", option));
    }
    return bench_load(arguments);
  }
  if (arguments.has("positions")) {
    throw ConfigError(
        "bench: --positions compares single layers and needs no MODEL; a model's own are changed by --set");
  }
  return bench_model(arguments);
}

}  // namespace

CommandEntry entries::bench_entry() {
  return {
      "bench",
      "speed and memory: prefill and decode of a model, or an attention layer by position scheme",
      "With MODEL: tokens a second and peak memory by length and dtype, each measured in a process of its own,\n"
      "best of three rounds up to 2048 tokens; with --load the time from the start of the program to the first token\n"
      "and the memory that reading the weights takes. Without: time and memory of one attention layer of every scheme\n"
      "and remap beside that of nope.",
      {"fathom bench SmolLM2-135M-Instruct.Q4_1.gguf --lengths 512,8192 --dtype float32,bf16",
       "fathom bench SmolLM2-135M-Instruct.Q4_1.gguf --set remap=self_extend --json",
       "fathom bench SmolLM2-135M-Instruct.Q4_1.gguf --load --dtype float32,bf16",
       "fathom bench --positions rope,alibi,cope --lengths 1024,16384"},
      {{"MODEL", ".gguf file or checkpoint folder", PositionalSpec::Need::kOptional}},
      {{"lengths", "LIST", "token counts (default 512,2048,8192; with --load 512; of layers 1024,4096,16384)", {}},
       {"dtype", "LIST", "auto (default), float32, bf16", {}},
       {"load", "", "measure the load of the model and its first token", {}},
       {"decode", "N", "tokens decoded after the prompt (default 16)", {}},
       {"positions", "LIST", "schemes of `fathom list positions` (default: all, and the remaps)", {}},
       {"set",
        "KEY=VALUE",
        "rope.base, scaling, remap or temperature of the model, their options, rope.gguf, rope.layers or "
        "rope.table_dtype; may be repeated",
        {},
        OptionSpec::Count::kRepeated},
       {"threads", "N", "threads (default: all cores)", {}},
       {"quiet", "", "no progress line", {}},
       {"json", "", "machine-readable", {}}},
      run_bench};
}

}  // namespace fathom::cli
