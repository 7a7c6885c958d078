#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/run_record.h"
#include "harness/cli/run_session.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/engine/torch_language_model.h"
#include "harness/eval/wording_check.h"
#include "harness/store/result_store.h"
#include "tasks/tasks.h"

namespace fathom::cli {
namespace {

constexpr std::int64_t kMostSamples = 10000;

/// Every task that asks something.
std::vector<std::string> asking_tasks() {
  std::vector<std::string> names;
  for (const task::TaskEntry& entry : tasks::registry().entries()) {
    if (entry.group != "ppl") names.emplace_back(entry.name);
  }
  return names;
}

config::RunConfig wording_config(const Arguments& arguments) {
  const std::string text = fmt::format(
      "name = wording\n[model]\nsource = {}\n[sweep]\ntasks = {}\nlengths = {}\nsamples = {}\ngraded = off\ncontrols "
      "= on\n[prompt]\npack = en\n",
      *arguments.get("MODEL"), arguments.get_or("tasks", join(asking_tasks(), ", ")),
      arguments.integer("length", 1, 1 << 20).value_or(512),
      arguments.integer("samples", 1, kMostSamples).value_or(20));
  return config::parse_config(text, "wording.ini", run_settings(arguments));
}

/// Short lengths, no swept depths, and of the controls only those that leave the facts alone.
void narrow_plan(eval::SweepPlan& plan) {
  for (eval::PlannedTask& task : plan.tasks) {
    const std::int64_t smallest = task.task->smallest_length_tokens(plan.seed);
    task.lengths_tokens = {std::max(task.lengths_tokens.front(), smallest)};
    task.depths_bp.clear();
  }
  plan.only_controls = {task::Control::kNeedleOnly, task::Control::kOracle};
  plan.control_samples = plan.n_samples;
}

std::string score_text(const eval::WordingScore& score) {
  std::string text = fmt::format("{:.2f} ({:.2f}–{:.2f})", score.mean, score.interval.low, score.interval.high);
  if (score.n_failed > 0) text += fmt::format(", {} not scored", score.n_failed);
  return text;
}

void print_table(const std::vector<eval::WordingRow>& rows, double threshold, bool markdown) {
  const char* row_format = markdown ? "| {} | {} | {} | {} | {} | {} |\n" : "{:<18} {:>6}  {:<18}  {:<18}  {:<12} {}\n";
  fmt::print(fmt::runtime(row_format), "task", "length", "facts alone", "in full", "control", "verdict");
  if (markdown) fmt::print("| --- | ---: | --- | --- | --- | --- |\n");
  for (const eval::WordingRow& row : rows) {
    fmt::print(fmt::runtime(row_format), row.task, row.length_tokens, row.alone ? score_text(*row.alone) : "–",
               score_text(row.full), row.control.empty() ? "–" : row.control, eval::wording_verdict(row, threshold));
  }
}

nlohmann::ordered_json score_json(const eval::WordingScore& score) {
  return {{"n", score.n},
          {"failed", score.n_failed},
          {"mean", score.mean},
          {"low", score.interval.low},
          {"high", score.interval.high}};
}

void print_json(const std::vector<eval::WordingRow>& rows, double threshold) {
  auto out = nlohmann::ordered_json::array();
  for (const eval::WordingRow& row : rows) {
    out.push_back({{"task", row.task},
                   {"length", row.length_tokens},
                   {"control", row.control},
                   {"alone", row.alone ? score_json(*row.alone) : nlohmann::ordered_json(nullptr)},
                   {"full", score_json(row.full)},
                   {"in_text_guess", row.in_text_guess},
                   {"verdict", eval::wording_verdict(row, threshold)}});
  }
  fmt::print("{}\n", out.dump(1));
}

int run_check(const Arguments& arguments) {
  if (*arguments.get("WHAT") != "wording") {
    throw ConfigError(fmt::format("check: '{}' cannot be checked; known: wording", *arguments.get("WHAT")));
  }
  const config::RunConfig config = wording_config(arguments);
  const std::vector<std::string> problems = config::validate(config);
  if (!problems.empty()) throw ConfigError("check: " + join(problems, "\ncheck: "));
  engine::set_threads(config.engine.threads.value_or(0));
  RunSession session(config);
  if (session.variants().size() != 1) throw ConfigError("check: one model with one setting at a time");
  SessionVariant& variant = session.variants().front();
  narrow_plan(variant.plan);
  SessionModel& model = *session.models()[variant.model];
  ProgressLine line(arguments.has("quiet") ? ProgressLine::Mode::kQuiet : ProgressLine::Mode::kNormal);
  session.load(model, variant.settings.dtype, line);

  const auto db = arguments.get("db");
  const std::unique_ptr<eval::ResultSink> store = db ? store::open_store(*db) : nullptr;
  eval::WordingSink sink(store.get());
  sink.begin_run(make_run_record(config, session.content_fingerprint()));
  sink.put_variant(session.variant_record(variant));
  VariantModels models(session, variant);
  eval::EvalOptions options;
  options.variant = variant.settings.name;
  options.graded = false;
  options.stop = session.engine_options().stop;
  options.progress = [&line](const eval::EvalProgress& p) {
    line.show(fmt::format("{}/{} samples  {}", p.samples_done, p.samples_total, p.cell));
  };
  eval::evaluate(variant.plan, models, *model.assembler, {}, sink, options);
  sink.end_run();
  line.finish(fmt::format("{}: {} samples a task, pack {}, style {}", model.name, variant.plan.n_samples,
                          config.prompt.pack, text::to_string(model.assembler->style())));
  const std::string format = arguments.get_or("format", "terminal");
  if (format == "json") {
    print_json(sink.rows(), config.report.threshold);
  } else {
    print_table(sink.rows(), config.report.threshold, format == "markdown");
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::check_entry() {
  return {"check",
          "whether a model understands the wording of the tasks at all",
          "check wording MODEL asks every task twice at a short length: with its facts alone (control needle_only, or "
          "oracle for\n"
          "documents) and in full. Where both stay below the threshold, no length can pass: the task is beyond\n"
          "this model (or the wording is at fault), which is no short effective context.",
          {"fathom check wording SmolLM2-135M-Instruct.Q4_1.gguf",
           "fathom check wording model.gguf --prompts mine.ini --tasks niah_single_2,vt --samples 50"},
          {{"WHAT", "wording"}, {"MODEL", "a checkpoint: .gguf, or a folder with config.json"}},
          {{"prompts", "PACK", "prompt pack: a built-in one (default en) or a file", {}},
           {"tasks", "LIST", "tasks or groups (default: every task that asks something)", {}},
           {"samples", "N", "samples a task (default 20)", {}},
           {"length", "TOKENS", "length, or the smallest feasible one if that is longer (default 512)", {}},
           {"set", "KEY=VALUE", "override a key; may be repeated", {}, OptionSpec::Count::kRepeated},
           {"format", "NAME", "terminal (default), markdown or json", {"terminal", "markdown", "json"}},
           {"db", "FILE", "also store the samples", {}},
           {"dtype", "NAME", "type of weights and KV cache", {"auto", "float32", "bf16"}},
           {"threads", "N", "threads (default: all cores)", {}},
           {"quiet", "", "no progress lines", {}}},
          run_check};
}

}  // namespace fathom::cli
