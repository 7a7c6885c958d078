// Perplexity of a text by the length of its context (tasks specification 2.4; Press et al. 2022, "Train Short, Test
// Long", section 2, for the sliding window).

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/task/fitting.h"
#include "harness/task/haystack_choice.h"
#include "harness/task/prompt_build.h"
#include "tasks/tasks.h"

namespace fathom::tasks {
namespace {

using task::HaystackKind;
using task::TaskVariant;

constexpr std::int32_t kPplVersion = 2;
constexpr std::int64_t kPplStrideShare = 4;
constexpr std::int64_t kPplGainTarget = 128;

struct PplOptions {
  std::string mode = "sliding";
  std::optional<std::int64_t> scored;
  std::int64_t longest = 8192;

  void visit(OptionVisitor& v) {
    v.choice(
        "mode", mode, {"sliding", "blocks", "gain"},
        "sliding: the last tokens of a window; blocks: windows side by side, all of their tokens by position; gain: "
        "the same tokens at every length, with more text in front.");
    v.optional_integer(
        "scored", scored, {1, 65536},
        "Tokens scored, at most; auto: a quarter of the length, and 128 with mode = gain. Not with mode = blocks.");
    v.integer("longest", longest, {16, 1048576}, "Tokens of text in front of the scored ones with mode = gain.");
  }
};

/// Units begin…middle are context, middle…end are scored.
struct PplWindow {
  std::int64_t begin = 0;
  std::int64_t middle = 0;
  std::int64_t end = 0;
};

class PplTask : public task::FittedTask {
 public:
  PplTask(task::TaskFrame task_frame, PplOptions options, HaystackKind kind)
      : FittedTask(std::move(task_frame)),
        options_(std::move(options)),
        haystack_(frame().context, kind, TaskVariant::kBalanced) {}

  bool sweeps_depth() const override { return false; }
  std::optional<std::int64_t> largest_length_tokens(std::uint64_t seed) const override;
  task::TaskMetric metric() const override { return task::TaskMetric::kTop1; }
  double in_text_guess(std::int64_t) const override { return blind_guess(); }
  double blind_guess() const override {
    return 1.0 / static_cast<double>(frame().context.assembler->tokenizer().vocab_size());
  }

  const task::TaskContext& context() const { return frame().context; }
  const task::TextHaystack& haystack() const { return haystack_; }
  /// The text that the windows of mode = blocks are cut from, whatever the sample.
  task::HaystackCache::Entry whole_text(task::SampleKeyParts key, std::int64_t units, std::int64_t tokens) const {
    key.index = 0;
    key.length_tokens.reset();
    return haystack_.get(key, units, tokens);
  }
  bool gain() const { return options_.mode == "gain"; }
  bool blocks() const { return options_.mode == "blocks"; }
  std::int64_t longest() const { return options_.longest; }
  std::int64_t scored(std::int64_t length_tokens) const {
    if (blocks()) return length_tokens;
    return options_.scored.value_or(gain() ? kPplGainTarget
                                           : std::max<std::int64_t>(1, length_tokens / kPplStrideShare));
  }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  PplOptions options_;
  task::TextHaystack haystack_;
};

class PplDraft : public task::SampleDraft {
 public:
  PplDraft(const PplTask& ppl, task::SampleKeyParts key)
      : ppl_(ppl), key_(std::move(key)), scored_(ppl.scored(key_.length_tokens.value())) {}

  std::int64_t min_units() const override { return ppl_.gain() ? 1 : 2; }
  task::HaystackCache::Entry haystack(std::int64_t units, std::int64_t tokens) const override;
  task::Sample build(std::int64_t n_units) const override;
  void finish(task::Sample& sample) const override;

 private:
  task::HaystackCache::Entry gain_text() const;
  task::HaystackCache::Entry block_text() const;
  PplWindow window(const task::MeasuredHaystack& measured, std::int64_t n_units) const;

  const PplTask& ppl_;
  task::SampleKeyParts key_;
  std::int64_t scored_;
};

std::int64_t first_unit_at(const task::MeasuredHaystack& measured, std::int64_t tokens) {
  const auto found = std::lower_bound(measured.end_tokens.begin(), measured.end_tokens.end(), tokens);
  return std::min<std::int64_t>(measured.size(), found - measured.end_tokens.begin() + 1);
}

task::HaystackCache::Entry PplDraft::gain_text() const {
  return ppl_.haystack().get(key_, 3, ppl_.longest() + scored_ + 1);
}

// Sentences of the one text that all samples share: window i holds those that begin between i L and (i + 1) L tokens,
// so that windows stand side by side.
task::HaystackCache::Entry PplDraft::block_text() const {
  const std::int64_t length = key_.length_tokens.value();
  const std::int64_t end_tokens = (key_.index + 1) * length;
  const task::HaystackCache::Entry text = ppl_.whole_text(key_, 0, end_tokens + 1);
  const task::MeasuredHaystack& all = *text.measured;
  const auto first_at = [&all](std::int64_t token) -> std::int64_t {
    if (token <= 0) return 0;
    const auto found = std::lower_bound(all.end_tokens.begin(), all.end_tokens.end(), token);
    return std::min<std::int64_t>(all.size(), found - all.end_tokens.begin() + 1);
  };
  const std::int64_t begin = first_at(key_.index * length);
  // A length that is too short for two sentences is refused with what they take.
  const std::int64_t end = std::min(all.size(), std::max(first_at(end_tokens), begin + min_units()));
  if (end - begin < min_units()) {
    throw task::TooLongError(fmt::format("ppl: window {} of {} tokens needs more text than there is: {}",
                                         key_.index + 1, length, text.source->limit_reason()),
                             all.tokens(all.size()) / (key_.index + 1));
  }
  auto block = std::make_shared<task::MeasuredHaystack>();
  block->complete = all.complete && all.tokens(all.size()) < end_tokens;
  block->largest_unit_tokens = all.largest_unit_tokens;
  for (std::int64_t unit = begin; unit < end; ++unit) {
    block->units.push_back(all.units[static_cast<std::size_t>(unit)]);
    block->end_tokens.push_back(all.tokens(unit + 1) - all.tokens(begin));
  }
  return {text.source, block};
}

// With mode = gain the text in front grows backwards from the scored tokens.
task::HaystackCache::Entry PplDraft::haystack(std::int64_t units, std::int64_t tokens) const {
  if (ppl_.blocks()) return block_text();
  if (!ppl_.gain()) return ppl_.haystack().get(key_, units, tokens);
  const task::HaystackCache::Entry text = gain_text();
  const std::int64_t middle = window(*text.measured, 1).middle;
  auto backwards = std::make_shared<task::MeasuredHaystack>();
  backwards->complete = true;
  backwards->largest_unit_tokens = text.measured->largest_unit_tokens;
  for (std::int64_t n = 1; n <= middle; ++n) {
    backwards->units.emplace_back();
    backwards->end_tokens.push_back(text.measured->tokens(middle) - text.measured->tokens(middle - n));
  }
  return {text.source, backwards};
}

PplWindow PplDraft::window(const task::MeasuredHaystack& measured, std::int64_t n_units) const {
  PplWindow window;
  if (ppl_.gain()) {
    window.middle = std::min(first_unit_at(measured, ppl_.longest()), measured.size() - 1);
    window.end = std::max(window.middle + 1, first_unit_at(measured, measured.tokens(window.middle) + scored_) - 1);
    window.begin = window.middle - n_units;
    return window;
  }
  window.end = n_units;
  window.middle = n_units - 1;
  while (window.middle > 1 && measured.tokens(n_units) - measured.tokens(window.middle - 1) <= scored_) --window.middle;
  return window;
}

std::string join_units(const task::MeasuredHaystack& measured, std::int64_t begin, std::int64_t end) {
  std::string text;
  for (std::int64_t i = begin; i < end; ++i) {
    const task::HaystackUnit& unit = measured.units[static_cast<std::size_t>(i)];
    text += unit.separator + unit.text;
  }
  return text;
}

// There is no prompt: the text alone, without template, and what is scored stands as the answer.
task::Sample PplDraft::build(std::int64_t n_units) const {
  const task::HaystackCache::Entry entry = ppl_.gain() ? gain_text() : haystack(n_units, 0);
  const task::MeasuredHaystack& measured = *entry.measured;
  const PplWindow at = window(measured, n_units);
  task::Sample sample;
  sample.prompt_text = join_units(measured, at.begin, at.middle);
  const std::string& separator = measured.units[static_cast<std::size_t>(at.begin)].separator;
  sample.prompt_text.erase(0, separator.size());
  sample.answer_text = join_units(measured, at.middle, at.end);
  const text::PromptAssembler& assembler = *ppl_.context().assembler;
  sample.prompt_ids = assembler.encode_whole(sample.prompt_text);
  const auto whole = static_cast<std::int64_t>(assembler.encode_whole(sample.prompt_text + sample.answer_text).size());
  // Counts towards the length while it is fitted; nothing is generated.
  sample.generation_budget = std::max<std::int64_t>(1, whole - sample.prompt_tokens());
  sample.metric = ppl_.metric();
  sample.whole_words = ppl_.context().pack->closed_vocabulary();
  sample.haystack_units = n_units;
  return sample;
}

void PplDraft::finish(task::Sample& sample) const {
  sample.generation_budget = 0;
  sample.candidates = {sample.answer_text};
}

// Windows side by side share one text.
std::optional<std::int64_t> PplTask::largest_length_tokens(std::uint64_t seed) const {
  if (!blocks()) return FittedTask::largest_length_tokens(seed);
  const task::SampleKeyParts key = key_parts({1, std::nullopt}, 0, seed);
  const auto size = whole_text(key, 1, 0).source->size();
  if (!size) return std::nullopt;
  const task::MeasuredHaystack& all = *whole_text(key, *size, 0).measured;
  return all.tokens(all.size()) / std::max<std::int64_t>(1, context().n_samples);
}

std::unique_ptr<task::SampleDraft> PplTask::draft(const task::SampleKeyParts& key) const {
  return std::make_unique<PplDraft>(*this, key);
}

std::unique_ptr<task::Task> make_ppl(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                     const task::TaskContext& context) {
  PplOptions options;
  bind_options(options, source);
  const HaystackKind kind = task::resolve_haystack(context.haystack, HaystackKind::kProse);
  const std::string fingerprint = task::TextHaystack(context, kind, variant).fingerprint();
  task::TaskFrame frame{std::string(entry.name),    entry.version, variant,
                        canonical_options(options), fingerprint,   context};
  return std::make_unique<PplTask>(std::move(frame), std::move(options), kind);
}

std::vector<OptionDescription> describe_ppl() {
  return describe_options(PplOptions{});
}

}  // namespace

task::TaskEntry entries::ppl_entry() {
  return {"ppl",
          kPplVersion,
          "ppl",
          "Running text, a user's or built-in: bits a token and next-token accuracy by length.",
          "Press et al. 2022, section 2",
          false,
          &describe_ppl,
          &make_ppl};
}

}  // namespace fathom::tasks
