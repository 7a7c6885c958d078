// RULER's frequent words: invented words whose frequencies fall as a zeta distribution (tasks specification 1.4; Hsieh
// et al. 2024, section 3).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/task/fitting.h"
#include "harness/task/prompt_build.h"
#include "tasks/tasks.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

using task::TaskVariant;

constexpr std::int32_t kFweVersion = 1;
constexpr std::int64_t kFweTaskBudget = 50;
constexpr std::int64_t kFweLetters = 6;
// The first rank is filler; the next three are the answer.
constexpr std::size_t kFweAnswers = 3;
// With fewer words ranks 4 and 5 tie at some sizes.
constexpr std::int64_t kFweLeastWords = 53;
constexpr std::int64_t kFweLeastRanks = 5;
// RULER: distinct words of a sample = (length - template - kFweTemplateMargin) / kFweTokensPerRank.
constexpr std::int64_t kFweTemplateMargin = 50;
constexpr std::int64_t kFweTokensPerRank = 50;
constexpr double kZeta2 = 1.6449340668482264365;  // pi^2 / 6

struct FweOptions {
  std::optional<std::int64_t> distinct;

  void visit(OptionVisitor& v) {
    v.optional_integer("distinct", distinct, {kFweLeastRanks, 100000},
                       "Different words there may be; auto: one for every 50 tokens of the length.");
  }
};

/// trunc(n k^-2 / zeta(2)) for the ranks k = 1…n_ranks, as long as that is not 0.
std::vector<std::int64_t> fwe_counts(std::int64_t n_words, std::int64_t n_ranks) {
  std::vector<std::int64_t> counts;
  for (std::int64_t k = 1; k <= n_ranks; ++k) {
    const double share = 1.0 / (static_cast<double>(k) * static_cast<double>(k) * kZeta2);
    const auto count = static_cast<std::int64_t>(static_cast<double>(n_words) * share);
    if (count == 0) break;
    counts.push_back(count);
  }
  return counts;
}

/// The sizes a list may have: unit u (from 1) is a list made for n(u) words.
struct FweSizes {
  std::int64_t first = kFweLeastWords;
  std::int64_t step = 1;
  std::int64_t n_words(std::int64_t unit) const { return first + (unit - 1) * step; }
};

class FweTask : public task::FittedTask {
 public:
  FweTask(task::TaskFrame task_frame, const FweOptions& options, ValuePool words)
      : FittedTask(std::move(task_frame)), options_(options), words_(std::move(words)) {
    template_tokens_ = static_cast<std::int64_t>(context().assembler->assemble("", "", "").ids.size());
  }

  bool sweeps_depth() const override { return false; }
  std::vector<task::Control> controls() const override { return {task::Control::kClosedBook}; }
  double in_text_guess(std::int64_t length_tokens) const override {
    const auto n_different =
        fwe_counts(sizes(length_tokens).n_words(typical_units(length_tokens)), n_ranks(length_tokens)).size();
    return static_cast<double>(kFweAnswers) / static_cast<double>(n_different - 1);
  }
  double blind_guess() const override { return static_cast<double>(kFweAnswers) / words_.size; }

  std::string pack_text(std::string_view name) const { return frame().context.pack->text("fwe", name, frame().name); }
  const task::TaskContext& context() const { return frame().context; }
  TaskVariant variant() const { return frame().variant; }
  const ValuePool& words() const { return words_; }
  std::int64_t n_ranks(std::int64_t length_tokens) const;
  FweSizes sizes(std::int64_t length_tokens) const;
  /// RULER leaves lengths out at which there are too few ranks; balanced takes the fewest there can be.
  std::int64_t least_length_tokens() const;

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  FweOptions options_;
  ValuePool words_;
  std::int64_t template_tokens_ = 0;
};

class FweDraft : public task::SampleDraft {
 public:
  FweDraft(const FweTask& fwe, task::SampleKeyParts key);

  std::int64_t min_units() const override { return 1; }
  std::optional<std::int64_t> fixed_units() const override {
    if (key_.control != task::Control::kClosedBook) return std::nullopt;
    return min_units();
  }
  std::int64_t min_length_tokens() const override { return fwe_.least_length_tokens(); }
  task::HaystackCache::Entry haystack(std::int64_t units, std::int64_t tokens) const override;
  task::Sample build(std::int64_t n_units) const override;
  void finish(task::Sample& sample) const override;

 private:
  std::vector<std::string> list(std::int64_t n_words) const;
  std::int64_t list_tokens(std::int64_t n_words) const;
  task::AnswerPlan answer_plan() const;

  const FweTask& fwe_;
  task::SampleKeyParts key_;
  std::int64_t n_ranks_;
  FweSizes sizes_;
  std::vector<std::string> words_;         // by rank, the filler first
  std::vector<std::int64_t> word_tokens_;  // of a blank and the word
};

/// Endless, and measured by arithmetic: the text of a unit is not needed.
class FweListSource : public task::Haystack {
 public:
  std::vector<task::HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    return std::vector<task::HaystackUnit>(static_cast<std::size_t>(end - begin));
  }
};

FweDraft::FweDraft(const FweTask& fwe, task::SampleKeyParts key)
    : fwe_(fwe),
      key_(std::move(key)),
      n_ranks_(fwe.n_ranks(key_.length_tokens.value())),
      sizes_(fwe.sizes(key_.length_tokens.value())) {
  DistinctDraws used;
  const std::string noise = fwe_.pack_text("noise_word");
  used.add(noise);
  TextCollisions collisions(fwe_.pack_text("intro") + fwe_.pack_text("question") + fwe_.pack_text("answer_prefix"), {});
  if (!fwe_.context().pack->closed_vocabulary()) {
    used.set_rejected([&collisions](const std::string& word) { return collisions.contains(word); });
  }
  RngStream rng = task::sample_stream(key_, task::SampleStream::kFacts);
  words_ = {noise};
  while (static_cast<std::int64_t>(words_.size()) < n_ranks_) words_.push_back(used.draw(fwe_.words(), rng));
  const auto& tokenizer = fwe_.context().assembler->tokenizer();
  for (const std::string& word : words_) {
    word_tokens_.push_back(static_cast<std::int64_t>(tokenizer.encode(" " + word).size()));
  }
}

std::int64_t FweDraft::list_tokens(std::int64_t n_words) const {
  const std::vector<std::int64_t> counts = fwe_counts(n_words, n_ranks_);
  std::int64_t tokens = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) tokens += counts[k] * word_tokens_[k];
  return tokens;
}

task::HaystackCache::Entry FweDraft::haystack(std::int64_t units, std::int64_t tokens) const {
  auto measured = std::make_shared<task::MeasuredHaystack>();
  std::int64_t end = 0;
  for (std::int64_t unit = 1; measured->size() < units || end < tokens; ++unit) {
    const std::int64_t previous = end;
    end = list_tokens(sizes_.n_words(unit));
    if (unit > 1) measured->largest_unit_tokens = std::max(measured->largest_unit_tokens, end - previous);
    measured->units.emplace_back();
    measured->end_tokens.push_back(end);
  }
  return {std::make_shared<const FweListSource>(), measured};
}

std::vector<std::string> FweDraft::list(std::int64_t n_words) const {
  const std::vector<std::int64_t> counts = fwe_counts(n_words, n_ranks_);
  FATHOM_CHECK(counts.size() >= kFweAnswers + 1 &&
                   counts[kFweAnswers] > (counts.size() > kFweAnswers + 1 ? counts[kFweAnswers + 1] : 0),
               "the answers of fwe are more frequent than every other word");
  std::vector<std::string> out;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    out.insert(out.end(), static_cast<std::size_t>(counts[k]), words_[k]);
  }
  // RULER: one order for every list of a size.
  const auto size = static_cast<std::int64_t>(out.size());
  const RngKey order = fwe_.variant() == TaskVariant::kRuler ? RngKey("fathom/1|ruler-list-order|fwe")
                                                             : task::stream_key(key_, task::SampleStream::kOrder);
  RngStream(order.child(size)).shuffle(out);
  return out;
}

task::AnswerPlan FweDraft::answer_plan() const {
  task::AnswerPlan plan;
  plan.references.assign(words_.begin() + 1, words_.begin() + 1 + static_cast<std::ptrdiff_t>(kFweAnswers));
  plan.join = [pack = fwe_.context().pack](const std::vector<std::string>& words) { return pack->join_list(words); };
  plan.task_budget = kFweTaskBudget;
  return plan;
}

task::Sample FweDraft::build(std::int64_t n_units) const {
  text::SlotValues values;
  for (const std::string_view name : {"intro", "question"}) {
    values.emplace_back(name, text::PromptPack::render(fwe_.pack_text(name), {}));
  }
  const task::PromptFrame parts =
      task::render_layout(fwe_.pack_text("layout"), values, fwe_.pack_text("answer_prefix"));
  task::ContextText context;
  context.text = join(list(sizes_.n_words(n_units)), " ");
  if (fixed_units()) context.text = fwe_.context().pack->text("common", "no_context");
  task::Sample sample;
  const task::PromptPositions positions = task::fill_prompt(sample, fwe_.context(), parts, context);
  task::fill_answer(sample, fwe_.context(), answer_plan(), positions.context_end_byte);
  sample.haystack_units = n_units;
  return sample;
}

// The next ranks are the answers most easily taken for right ones.
void FweDraft::finish(task::Sample& sample) const {
  std::vector<std::vector<std::string>> near = {
      {words_[2], words_[3], words_[4]}, {words_[1], words_[3], words_[4]}, {words_[1], words_[2], words_[4]}};
  DistinctDraws used;
  for (const std::string& word : words_) used.add(word);
  RngStream aux = task::sample_stream(key_, task::SampleStream::kAux);
  sample.candidates = task::make_candidates(sample, answer_plan(), std::move(near), aux, [&]() {
    std::optional<std::vector<std::string>> fresh(std::in_place);
    while (fresh && fresh->size() < kFweAnswers) {
      if (auto word = used.try_draw(fwe_.words(), aux)) {
        fresh->push_back(*std::move(word));
      } else {
        fresh.reset();
      }
    }
    return fresh;
  });
}

std::int64_t FweTask::n_ranks(std::int64_t length_tokens) const {
  const std::int64_t ranks =
      options_.distinct.value_or((length_tokens - template_tokens_ - kFweTemplateMargin) / kFweTokensPerRank);
  // A closed vocabulary has few words; some are left for the candidates.
  constexpr double kMostShare = 0.5;
  const auto most = static_cast<std::int64_t>(std::min(1e9, words_.size * kMostShare));
  return std::max(kFweLeastRanks, std::min(ranks, most));
}

FweSizes FweTask::sizes(std::int64_t length_tokens) const {
  if (variant() == TaskVariant::kBalanced) return {};
  FweSizes grid;
  grid.step = std::max<std::int64_t>(1, length_tokens / 32);
  grid.first = length_tokens / 6 % grid.step;
  while (grid.first < kFweLeastWords) grid.first += grid.step;
  return grid;
}

std::int64_t FweTask::least_length_tokens() const {
  if (variant() == TaskVariant::kBalanced || options_.distinct) return 0;
  return kFweLeastRanks * kFweTokensPerRank + template_tokens_ + kFweTemplateMargin;
}

std::unique_ptr<task::SampleDraft> FweTask::draft(const task::SampleKeyParts& key) const {
  return std::make_unique<FweDraft>(*this, key);
}

std::unique_ptr<task::Task> make_fwe(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                     const task::TaskContext& context) {
  FweOptions options;
  bind_options(options, source);
  ValuePool words = invented_words(context, kFweLetters);
  task::TaskFrame frame{std::string(entry.name), entry.version, variant, canonical_options(options), "words", context};
  return std::make_unique<FweTask>(std::move(frame), options, std::move(words));
}

std::vector<OptionDescription> describe_fwe() {
  return describe_options(FweOptions{});
}

}  // namespace

task::TaskEntry entries::fwe_entry() {
  return {"fwe",
          kFweVersion,
          "frequent_words",
          "Invented words of falling frequency; which three are the most frequent?",
          "RULER (Hsieh et al. 2024), section 3",
          true,
          &describe_fwe,
          &make_fwe};
}

}  // namespace fathom::tasks
