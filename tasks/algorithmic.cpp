// Length generalisation on algorithms: one family, sixteen entries (tasks specification 2.5; Kazemnejad et al. 2023,
// "The Impact of Positional Encoding on Length Generalization", section 3).

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/task/fitting.h"
#include "harness/task/prompt_build.h"
#include "harness/text/word_tokenizer.h"
#include "tasks/algorithm_items.h"
#include "tasks/tasks.h"

namespace fathom::tasks {
namespace {

using task::TaskVariant;

constexpr std::int32_t kAlgorithmVersion = 1;
constexpr std::string_view kAlgorithmSource = "Kazemnejad et al. 2023, section 3";

struct AlgorithmOptions {
  std::optional<std::int64_t> size;
  std::optional<std::int64_t> shots;

  void visit(OptionVisitor& v) {
    v.optional_integer("size", size, {2, 48}, "Items, digits, terms or steps; auto: every size in turn, to 2 L.");
    v.optional_integer("shots", shots, {0, 8}, "Worked examples in front; auto: 2, and none in a closed vocabulary.");
  }
};

class AlgorithmTask : public task::FittedTask {
 public:
  AlgorithmTask(task::TaskFrame task_frame, const AlgorithmKind& kind, const AlgorithmOptions& options)
      : FittedTask(std::move(task_frame)), kind_(kind), options_(options), sizes_(algorithm_sizes(kind)) {}

  task::Sample make_sample(const task::TaskCell& cell, std::int64_t index, std::uint64_t seed) const override;
  std::int64_t smallest_length_tokens(std::uint64_t seed) const override;
  std::optional<std::int64_t> largest_length_tokens(std::uint64_t) const override { return std::nullopt; }

  bool sweeps_depth() const override { return false; }
  bool sweeps_length() const override { return false; }
  task::TaskMetric metric() const override { return task::TaskMetric::kEm; }
  double in_text_guess(std::int64_t) const override { return blind_guess(); }
  double blind_guess() const override {
    return kind_.n_answers == 0 ? 0.0 : 1.0 / static_cast<double>(kind_.n_answers);
  }

  const task::TaskContext& context() const { return frame().context; }
  std::int64_t size_of(std::int64_t index) const {
    return options_.size.value_or(sizes_[static_cast<std::size_t>(index) % sizes_.size()]);
  }
  AlgorithmItem make_item(std::int64_t size, RngStream& rng) const { return kind_.make(context(), size, rng); }
  /// Worked examples and the question. \param item  the one asked.
  std::string task_text(const AlgorithmItem& item, std::int64_t size, const RngKey& facts) const;
  std::string pack_text(std::string_view name) const { return context().pack->text("algo", name, frame().name); }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  std::string question(const AlgorithmItem& item) const {
    return text::PromptPack::render(pack_text(kind_.pack_key), item.slots);
  }

  const AlgorithmKind& kind_;
  AlgorithmOptions options_;
  std::vector<std::int64_t> sizes_;
};

/// Nothing is fitted: the size decides the length.
class AlgorithmDraft : public task::SampleDraft {
 public:
  AlgorithmDraft(const AlgorithmTask& algorithm, task::SampleKeyParts key)
      : algorithm_(algorithm), key_(std::move(key)), size_(algorithm.size_of(key_.index)) {
    RngStream rng(task::stream_key(key_, task::SampleStream::kFacts));
    item_ = algorithm_.make_item(size_, rng);
  }

  std::int64_t min_units() const override { return size_; }
  std::optional<std::int64_t> fixed_units() const override { return size_; }
  task::HaystackCache::Entry haystack(std::int64_t, std::int64_t) const override {
    FATHOM_CHECK(false, "an algorithmic task has no haystack");
  }
  task::Sample build(std::int64_t n_units) const override;
  void finish(task::Sample& sample) const override;

 private:
  task::AnswerPlan answer_plan() const;

  const AlgorithmTask& algorithm_;
  task::SampleKeyParts key_;
  std::int64_t size_;
  AlgorithmItem item_;
};

task::AnswerPlan AlgorithmDraft::answer_plan() const {
  task::AnswerPlan plan;
  plan.references = {item_.answer};
  plan.join = [](const std::vector<std::string>& answers) { return answers.front(); };
  plan.task_budget = 1;
  plan.metric = algorithm_.metric();
  plan.first_line = true;
  return plan;
}

task::Sample AlgorithmDraft::build(std::int64_t n_units) const {
  task::PromptFrame parts;
  parts.answer_prefix = algorithm_.pack_text("answer_prefix");
  task::ContextText context;
  context.text = algorithm_.task_text(item_, size_, task::stream_key(key_, task::SampleStream::kFacts));
  task::Sample sample;
  const task::PromptPositions positions = task::fill_prompt(sample, algorithm_.context(), parts, context);
  task::fill_answer(sample, algorithm_.context(), answer_plan(), positions.context_end_byte);
  sample.haystack_units = n_units;
  return sample;
}

// Wrong answers are those to other questions of the size; of closed sets there are fewer than fifteen.
void AlgorithmDraft::finish(task::Sample& sample) const {
  RngStream aux = task::sample_stream(key_, task::SampleStream::kAux);
  std::set<std::string> seen = {item_.answer};
  constexpr int kMostDraws = 400;
  int draws = 0;
  sample.candidates = task::make_candidates(sample, answer_plan(), {}, aux, [&]() {
    std::optional<std::vector<std::string>> fresh;
    while (!fresh && draws++ < kMostDraws) {
      std::string answer = algorithm_.make_item(size_, aux).answer;
      if (seen.insert(answer).second) fresh = {std::move(answer)};
    }
    return fresh;
  });
}

std::string AlgorithmTask::task_text(const AlgorithmItem& item, std::int64_t size, const RngKey& facts) const {
  std::string shots;
  for (std::int64_t i = 0; i < options_.shots.value(); ++i) {
    RngStream rng(facts.child("shot").child(i));
    const AlgorithmItem shown = make_item(size, rng);
    shots += text::PromptPack::render(
        pack_text("shot"),
        {{"task", question(shown)}, {"answer_prefix", pack_text("answer_prefix")}, {"answer", shown.answer}});
  }
  return shots + text::PromptPack::render(pack_text("layout"), {{"task", question(item)}});
}

std::unique_ptr<task::SampleDraft> AlgorithmTask::draft(const task::SampleKeyParts& key) const {
  return std::make_unique<AlgorithmDraft>(*this, key);
}

task::Sample AlgorithmTask::make_sample(const task::TaskCell& cell, std::int64_t index, std::uint64_t seed) const {
  task::SampleKeyParts key = key_parts(cell, index, seed);
  key.length_tokens.reset();
  key.depth_bp.reset();
  const std::unique_ptr<task::SampleDraft> sample_draft = draft(key);
  task::Sample sample = sample_draft->build(size_of(index));
  sample_draft->finish(sample);
  stamp(sample, key);
  return sample;
}

std::int64_t AlgorithmTask::smallest_length_tokens(std::uint64_t seed) const {
  std::int64_t smallest = 0;
  for (std::int64_t index = 0; index < std::max<std::int64_t>(1, context().n_samples); ++index) {
    smallest = std::max(smallest, make_sample({}, index, seed).length_tokens);
  }
  return smallest;
}

void check_algorithm_vocabulary(const task::TaskEntry& entry, const AlgorithmKind& kind,
                                const task::TaskContext& context) {
  const auto* words = dynamic_cast<const text::WordTokenizer*>(&context.assembler->tokenizer());
  if (words == nullptr) return;
  constexpr std::int64_t kKeys = 100;
  constexpr std::int64_t kActWords = 4;
  const bool cues = kind.name == "cmd";
  if (words->spec().n_keys < kKeys || (kind.needs_digits && words->spec().n_digits < 10) ||
      (cues && words->spec().n_cues < kActWords)) {
    throw ConfigError(fmt::format("{} needs a vocabulary with {}, which this model's does not have", entry.name,
                                  kind.needs_digits ? "the words 0 to 9"
                                  : cues            ? "four cue words"
                                                    : "100 key words"));
  }
}

const AlgorithmKind& algorithm_kind(std::string_view name) {
  const auto& kinds = algorithm_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(), [name](const auto& kind) { return kind.name == name; });
  FATHOM_CHECK(found != kinds.end(), "an entry without its algorithm");
  return *found;
}

std::unique_ptr<task::Task> make_algorithm(const task::TaskEntry& entry, TaskVariant variant,
                                           const OptionSource& source, const task::TaskContext& context) {
  const AlgorithmKind& kind = algorithm_kind(entry.name);
  AlgorithmOptions options;
  bind_options(options, source);
  if (!options.shots) options.shots = context.pack->closed_vocabulary() ? 0 : 2;
  const std::vector<std::int64_t> sizes = algorithm_sizes(kind);
  if (options.size && std::find(sizes.begin(), sizes.end(), *options.size) == sizes.end()) {
    std::vector<std::string> known;
    known.reserve(sizes.size());
    for (const std::int64_t n : sizes) known.push_back(std::to_string(n));
    throw ConfigError(
        fmt::format("{}: size = {} cannot be asked for; allowed: {}", entry.name, *options.size, join(known, ", ")));
  }
  check_algorithm_vocabulary(entry, kind, context);
  task::TaskFrame frame{std::string(entry.name), entry.version, variant, canonical_options(options), "none", context};
  return std::make_unique<AlgorithmTask>(std::move(frame), kind, options);
}

std::vector<OptionDescription> describe_algorithm() {
  return describe_options(AlgorithmOptions{});
}

task::TaskEntry algorithm_entry(std::string_view name) {
  return {name,  kAlgorithmVersion,   "algo",         algorithm_kind(name).summary, kAlgorithmSource,
          false, &describe_algorithm, &make_algorithm};
}

}  // namespace

task::TaskEntry entries::add_entry() {
  return algorithm_entry("add");
}
task::TaskEntry entries::chain_entry() {
  return algorithm_entry("chain");
}
task::TaskEntry entries::cmd_entry() {
  return algorithm_entry("cmd");
}
task::TaskEntry entries::copy_entry() {
  return algorithm_entry("copy");
}
task::TaskEntry entries::copy_long_entry() {
  return algorithm_entry("copy_long");
}
task::TaskEntry entries::copy_one_entry() {
  return algorithm_entry("copy_one");
}
task::TaskEntry entries::copy_swap_entry() {
  return algorithm_entry("copy_swap");
}
task::TaskEntry entries::copy_twice_entry() {
  return algorithm_entry("copy_twice");
}
task::TaskEntry entries::parity_entry() {
  return algorithm_entry("parity");
}
task::TaskEntry entries::poly_entry() {
  return algorithm_entry("poly");
}
task::TaskEntry entries::reverse_entry() {
  return algorithm_entry("reverse");
}
task::TaskEntry entries::reverse_copy_entry() {
  return algorithm_entry("reverse_copy");
}
task::TaskEntry entries::reverse_twice_entry() {
  return algorithm_entry("reverse_twice");
}
task::TaskEntry entries::sort_entry() {
  return algorithm_entry("sort");
}
task::TaskEntry entries::sum_entry() {
  return algorithm_entry("sum");
}
task::TaskEntry entries::summod_entry() {
  return algorithm_entry("summod");
}

}  // namespace fathom::tasks
