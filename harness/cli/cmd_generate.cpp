#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/prompt_lines.h"
#include "harness/cli/run_record.h"
#include "harness/cli/run_session.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

/// A file of lines that appears under its name only when it is whole.
class LineFile {
 public:
  explicit LineFile(std::string path) : path_(std::move(path)), partial_(path_ + ".partial") {
    const auto folder = std::filesystem::path(path_).parent_path();
    std::error_code ignored;
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    file_.open(partial_, std::ios::binary | std::ios::trunc);
    check("opened for writing");
  }
  ~LineFile() {
    std::error_code ignored;
    if (!done_) std::filesystem::remove(partial_, ignored);
  }
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void put(const std::string& line) {
    file_ << line << '\n';
    check("written");
  }
  void finish() {
    file_.close();
    check("written");
    std::error_code error;
    std::filesystem::rename(partial_, path_, error);
    if (error) throw DataError(fmt::format("generate: '{}' cannot be written: {}", path_, error.message()));
    done_ = true;
  }

 private:
  void check(const char* doing) {
    if (!file_) throw DataError(fmt::format("generate: '{}' cannot be {}: {}", path_, doing, std::strerror(errno)));
  }
  std::string path_;
  std::string partial_;
  std::ofstream file_;
  bool done_ = false;
};

/// What of a variant shapes its prompts: two variants with equal answers here see the same ones.
std::string prompts_identity(RunSession& session, const SessionVariant& variant) {
  const SessionModel& model = *session.models()[variant.model];
  std::string text = model.tokenizer->fingerprint() + model.assembler->fingerprint();
  for (const eval::PlannedTask& task : variant.plan.tasks) {
    for (const std::int64_t length : task.lengths_tokens) text += fmt::format(" {}", length);
  }
  return text;
}

const SessionVariant& only_prompts(RunSession& session) {
  std::set<std::string> identities;
  std::set<std::string> names;
  for (const SessionVariant& variant : session.variants()) {
    identities.insert(prompts_identity(session, variant));
    names.insert(session.models()[variant.model]->name);
  }
  if (identities.size() > 1) {
    throw ConfigError(fmt::format(
        "generate: the models of this config ({}) see {} different sets of prompts, as their tokenizers, templates or "
        "lengths differ; narrow it to one, for example with --set source=MODEL",
        join({names.begin(), names.end()}, ", "), identities.size()));
  }
  return session.variants().front();
}

std::vector<eval::CellRecord> unbuilt_cells(const eval::SweepPlan& plan, const eval::WorkList& work) {
  std::vector<eval::CellRecord> cells;
  for (const eval::RefusedLength& refused : work.refused) {
    for (eval::CellRecord& cell : eval::refused_cells(plan, refused)) cells.push_back(std::move(cell));
  }
  return cells;
}

void check_has_answers(const eval::SweepPlan& plan) {
  for (const eval::PlannedTask& task : plan.tasks) {
    if (task.task->metric() != task::TaskMetric::kTop1) continue;
    throw ConfigError(fmt::format(
        "generate: {} scores the probabilities of a text: there is no answer that another engine could send back; take "
        "it out of sweep.tasks",
        task.name.name));
  }
}

/// Fills what an engine must know besides the text.
void add_engine_facts(PromptLine& line, const text::PromptAssembler& assembler) {
  const text::Tokenizer& tokenizer = assembler.tokenizer();
  const auto bos = tokenizer.bos();
  const task::Sample& sample = line.sample;
  line.add_bos = bos && !sample.prompt_ids.empty() && sample.prompt_ids.front() == *bos &&
                 !starts_with(sample.prompt_text, tokenizer.piece(*bos));
  for (const TokenId id : assembler.stop_ids()) line.stops.push_back(tokenizer.decode({id}));
}

int run_generate(const Arguments& arguments) {
  const auto out = arguments.get("out");
  if (!out) {
    throw ConfigError(
        "generate: --out FILE is missing; for example: fathom generate configs/smollm2.ini --out prompts.jsonl");
  }
  const config::RunConfig config = config::load_config(*arguments.get("CONFIG"), run_settings(arguments));
  const std::vector<std::string> problems = config::validate(config);
  if (!problems.empty()) throw ConfigError("config: " + join(problems, "\nconfig: "));
  RunSession session(config);
  const SessionVariant& variant = only_prompts(session);
  const SessionModel& model = *session.models()[variant.model];
  const eval::SweepPlan& plan = variant.plan;
  check_has_answers(plan);
  const eval::WorkList work = eval::make_work_list(plan);
  PromptFileHead head;
  head.run = make_run_record(config, session.content_fingerprint());
  head.model = model.name;
  head.claimed_context = model.claimed_context;
  head.trained_context = model.trained_context;
  head.unbuilt = unbuilt_cells(plan, work);

  const PromptIds ids = arguments.has("ids") ? PromptIds::kWrite : PromptIds::kOmit;
  LineFile file(*out);
  ProgressLine progress(arguments.has("quiet") ? ProgressLine::Mode::kQuiet : ProgressLine::Mode::kNormal);
  std::int64_t n_lines = 0;
  std::int64_t n_refused = 0;
  const SignalStop stop;
  for (const eval::PlannedBatch& batch : work.batches) {
    if (stop.stop_requested()) throw Interrupted("interrupted; nothing is written");
    for (const eval::PlannedSample& planned : batch.samples) {
      const eval::PlannedTask& task = plan.tasks[planned.task];
      PromptLine line;
      try {
        line.sample = task.task->make_sample(planned.cell, planned.index, plan.seed);
      } catch (const TooShortError& error) {
        progress.note(error.what());
        ++n_refused;
        continue;
      } catch (const task::TooLongError& error) {
        progress.note(error.what());
        ++n_refused;
        continue;
      }
      line.index = n_lines;
      line.in_text_guess = task.task->in_text_guess(planned.cell.length_tokens);
      line.blind_guess = task.task->blind_guess();
      line.own_length = !task.task->sweeps_length();
      add_engine_facts(line, *model.assembler);
      file.put(prompt_line_json(line, ids, n_lines == 0 ? &head : nullptr));
      ++n_lines;
    }
    const eval::PlannedSample& first = batch.samples.front();
    progress.show(fmt::format("{}/{} prompts  {} {}", n_lines, work.n_samples, plan.tasks[first.task].name.name,
                              first.cell.length_tokens));
  }
  if (n_lines == 0) {
    throw DataError(fmt::format("generate: no prompt can be built{}",
                                work.refused.empty() ? "" : ": " + work.refused.front().reason));
  }
  file.finish();
  for (const eval::RefusedLength& refused : work.refused) progress.note("not built: " + refused.reason);
  if (n_refused > 0) progress.note(fmt::format("{} samples do not fit where others of their cell do", n_refused));
  progress.finish(fmt::format("{} prompts for {}", n_lines, model.name));
  fmt::print("{}\n", *out);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::generate_entry() {
  return {
      "generate",
      "write the prompts of a config for any other engine",
      "Writes the samples that 'run' would ask, one JSON object a line, in the shape of RULER's data files: index, "
      "task,\n"
      "variant, input, answer_prefix, outputs, length, max_new_tokens, depth, token_position_answer, key. The engine "
      "gets\n"
      "input followed by answer_prefix and generates max_new_tokens greedily; its answers go back in with 'score'.\n"
      "No model is trained and no weights are loaded: the tokenizer is enough.",
      {"fathom generate configs/smollm2.ini --out prompts.jsonl",
       "fathom generate configs/smollm2.ini --set sweep.tasks=ruler --set sweep.depths=50 --out ruler.jsonl"},
      {{"CONFIG", "INI file; configs/KEYS.md lists every key"}},
      {{"out", "FILE", "where the lines go", {}},
       {"set", "KEY=VALUE", "override a key; may be repeated", {}, OptionSpec::Count::kRepeated},
       {"preset", "NAME", "samples per cell: smoke 10, nightly 50, full 500", {"smoke", "nightly", "full"}},
       {"prompts", "FILE", "prompt pack with your own wording", {}},
       {"ids", "", "also write input_ids, for engines that take token ids", {}},
       {"quiet", "", "no progress lines", {}}},
      run_generate};
}

}  // namespace fathom::cli
