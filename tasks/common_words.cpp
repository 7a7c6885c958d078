// RULER's common words: a long list in which a few words keep coming back (tasks specification 1.3; Hsieh et al. 2024,
// section 3).

#include <fmt/format.h>

#include <algorithm>
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
#include "tasks/word_source.h"

namespace fathom::tasks {
namespace {

using task::TaskVariant;

constexpr std::int32_t kCweVersion = 1;
constexpr std::int64_t kCweTaskBudget = 120;
constexpr std::int64_t kCweLongLength = 4096;
// A closed vocabulary has no word for more short lists, so its long lists begin where those of 600 words end.
constexpr std::int64_t kCweClosedLongLength = 512;

struct CweOptions {
  std::int64_t common = 10;
  std::optional<std::int64_t> common_repeats;
  std::optional<std::int64_t> rare_repeats;
  std::optional<std::int64_t> examples;

  void visit(OptionVisitor& v) {
    v.integer("common", common, {1, 100}, "Words that keep coming back; all of them are asked for.");
    v.optional_integer(
        "common_repeats", common_repeats, {2, 1000},
        "Times a common word stands in the list; auto: 30 from 4096 tokens on (closed vocabulary: 512), else 6.");
    v.optional_integer(
        "rare_repeats", rare_repeats, {1, 999},
        "Times any other word stands in the list; auto: 3 from 4096 tokens on (closed vocabulary: 512), else 1.");
    v.optional_integer("examples", examples, {0, 1},
                       "Worked examples in front of the text; auto: 1, and none in a closed vocabulary.");
  }
};

/// How often words stand in a list.
struct CweRepeats {
  std::int64_t common = 0;
  std::int64_t rare = 0;
};

/// Words of one sample.
struct CweFacts {
  std::vector<std::string> common;
  std::shared_ptr<const WordSource> rare;
  std::string example;
};

/// One rare word is one unit: all its places in the list. In the list the places are apart, but take as many tokens.
class RareWordHaystack : public task::Haystack {
 public:
  RareWordHaystack(std::shared_ptr<const WordSource> words, std::string item, std::string separator, CweRepeats repeats,
                   std::int64_t n_common)
      : words_(std::move(words)),
        item_(std::move(item)),
        separator_(std::move(separator)),
        repeats_(repeats),
        n_common_(n_common) {}

  std::vector<task::HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    std::vector<task::HaystackUnit> out;
    for (std::int64_t j = begin; j < end; ++j) {
      const std::string word = words_->word(j);
      std::string text;
      for (std::int64_t r = 0; r < repeats_.rare; ++r) {
        const std::int64_t number = n_common_ * repeats_.common + j * repeats_.rare + r + 1;
        if (r > 0) text += separator_;
        text += text::PromptPack::render(item_, {{"i", std::to_string(number)}, {"word", word}});
      }
      out.push_back({separator_, std::move(text), true});
    }
    return out;
  }
  std::optional<std::int64_t> size() const override { return words_->size(); }
  std::string limit_reason() const override {
    return fmt::format("the closed vocabulary has {} words besides the common ones", words_->size().value_or(0));
  }

 private:
  std::shared_ptr<const WordSource> words_;
  std::string item_;
  std::string separator_;
  CweRepeats repeats_;
  std::int64_t n_common_;
};

class CweTask : public task::FittedTask {
 public:
  CweTask(task::TaskFrame task_frame, const CweOptions& options)
      : FittedTask(std::move(task_frame)), options_(options), n_listed_(listed_words(frame().context).size()) {}

  bool sweeps_depth() const override { return false; }
  std::vector<task::Control> controls() const override { return {task::Control::kClosedBook}; }
  double in_text_guess(std::int64_t length_tokens) const override {
    return static_cast<double>(options_.common) / static_cast<double>(options_.common + typical_units(length_tokens));
  }
  double blind_guess() const override { return static_cast<double>(options_.common) / static_cast<double>(n_listed_); }
  task::TaskMetric metric() const override { return task::TaskMetric::kAll; }

  std::string pack_text(std::string_view name) const { return frame().context.pack->text("cwe", name, frame().name); }
  const task::TaskContext& context() const { return frame().context; }
  TaskVariant variant() const { return frame().variant; }
  CweRepeats repeats(std::int64_t length_tokens) const;
  std::string number_items(const std::vector<std::string>& words, std::string_view item) const;
  task::PromptFrame prompt_frame(std::size_t n_common) const;
  task::HaystackCache::Entry rare_words(const task::SampleKeyParts& key, const CweFacts& facts, std::int64_t units,
                                        std::int64_t tokens) const;

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  bool takes_long_list(std::int64_t length_tokens) const {
    return length_tokens >= (context().pack->closed_vocabulary() ? kCweClosedLongLength : kCweLongLength);
  }
  CweFacts draw_facts(const task::SampleKeyParts& key) const;
  std::vector<std::string> draw_common(const RngKey& key) const;
  std::string example(const RngKey& key, const CweFacts& facts, std::int64_t length_tokens) const;

  CweOptions options_;
  std::size_t n_listed_;
  mutable task::HaystackCache cache_;
};

/// \return `repeats.common` times each common word, then `repeats.rare` times each rare one.
std::vector<std::string> cwe_list(const std::vector<std::string>& common, const std::vector<std::string>& rare,
                                  CweRepeats repeats) {
  std::vector<std::string> list;
  for (std::int64_t r = 0; r < repeats.common; ++r) list.insert(list.end(), common.begin(), common.end());
  for (const std::string& word : rare) list.insert(list.end(), static_cast<std::size_t>(repeats.rare), word);
  return list;
}

bool is_part_of(const std::string& part, const std::string& whole) {
  return whole.find(part) != std::string::npos;
}

class CweDraft : public task::SampleDraft {
 public:
  CweDraft(const CweTask& cwe, task::SampleKeyParts key, CweFacts facts)
      : cwe_(cwe), key_(std::move(key)), facts_(std::move(facts)) {}

  std::int64_t min_units() const override { return 1; }
  std::optional<std::int64_t> fixed_units() const override {
    if (key_.control != task::Control::kClosedBook) return std::nullopt;
    return min_units();
  }
  task::HaystackCache::Entry haystack(std::int64_t units, std::int64_t tokens) const override {
    return cwe_.rare_words(key_, facts_, units, tokens);
  }
  task::Sample build(std::int64_t n_units) const override;
  void finish(task::Sample& sample) const override;

 private:
  RngKey order_key(std::size_t list_size) const;
  task::AnswerPlan answer_plan() const;

  const CweTask& cwe_;
  task::SampleKeyParts key_;
  CweFacts facts_;
};

// RULER: one order for every list of a size.
RngKey CweDraft::order_key(std::size_t list_size) const {
  const auto size = static_cast<std::int64_t>(list_size);
  if (cwe_.variant() == TaskVariant::kRuler) return RngKey("fathom/1|ruler-list-order|cwe").child(size);
  return task::stream_key(key_, task::SampleStream::kOrder).child(size);
}

task::AnswerPlan CweDraft::answer_plan() const {
  task::AnswerPlan plan;
  plan.references = facts_.common;
  plan.join = [this](const std::vector<std::string>& words) {
    return cwe_.number_items(words, cwe_.pack_text("answer_item"));
  };
  // The example shows a blank between prefix and answer.
  if (!facts_.example.empty() && cwe_.context().assembler->style() != text::PromptStyle::kChatNoPrefix) plan.lead = " ";
  plan.task_budget = kCweTaskBudget;
  return plan;
}

task::Sample CweDraft::build(std::int64_t n_units) const {
  std::vector<std::string> rare;
  for (std::int64_t j = 0; j < n_units; ++j) rare.push_back(facts_.rare->word(j));
  std::vector<std::string> list = cwe_list(facts_.common, rare, cwe_.repeats(key_.length_tokens.value()));
  RngStream(order_key(list.size())).shuffle(list);

  task::ContextText context;
  context.text = cwe_.number_items(list, cwe_.pack_text("item"));
  if (fixed_units()) context.text = cwe_.context().pack->text("common", "no_context");
  task::PromptFrame parts = cwe_.prompt_frame(facts_.common.size());
  parts.before = facts_.example + parts.before;
  task::Sample sample;
  const task::PromptPositions positions = task::fill_prompt(sample, cwe_.context(), parts, context);
  task::fill_answer(sample, cwe_.context(), answer_plan(), positions.context_end_byte);
  sample.haystack_units = n_units;
  return sample;
}

void CweDraft::finish(task::Sample& sample) const {
  const std::size_t n = facts_.common.size();
  std::vector<std::vector<std::string>> in_prompt;
  if (sample.haystack_units >= static_cast<std::int64_t>(n)) {
    std::vector<std::string> rare;
    for (std::size_t j = 0; j < n; ++j) rare.push_back(facts_.rare->word(static_cast<std::int64_t>(j)));
    in_prompt.push_back(std::move(rare));
  }
  DistinctDraws used;
  for (const std::string& word : facts_.common) used.add(word);
  for (std::int64_t j = 0; j < sample.haystack_units; ++j) used.add(facts_.rare->word(j));
  const std::vector<std::string> listed = listed_words(cwe_.context());
  RngStream aux = task::sample_stream(key_, task::SampleStream::kAux);
  // Candidates may share words: few samples leave enough words unused for fifteen sets of them.
  sample.candidates = task::make_candidates(sample, answer_plan(), std::move(in_prompt), aux, [&]() {
    std::optional<std::vector<std::string>> words(std::in_place);
    while (words->size() < n) {
      const std::string& word = listed[aux.uniform_index(listed.size())];
      const bool common = std::find(facts_.common.begin(), facts_.common.end(), word) != facts_.common.end();
      if (!common && std::find(words->begin(), words->end(), word) == words->end()) words->push_back(word);
    }
    return words;
  });
}

CweRepeats CweTask::repeats(std::int64_t length_tokens) const {
  const bool is_long = takes_long_list(length_tokens);
  const std::int64_t rare = options_.rare_repeats.value_or(is_long ? 3 : 1);
  return {std::max(options_.common_repeats.value_or(is_long ? 30 : 6), rare + 1), rare};
}

std::string CweTask::number_items(const std::vector<std::string>& words, std::string_view item) const {
  const std::string separator = pack_text("item_sep");
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += separator;
    out += text::PromptPack::render(item, {{"i", std::to_string(i + 1)}, {"word", words[i]}});
  }
  return out;
}

task::PromptFrame CweTask::prompt_frame(std::size_t n_common) const {
  text::SlotValues values = {{"count", std::to_string(n_common)}};
  values.emplace_back("intro", text::PromptPack::render(pack_text("intro"), values));
  values.emplace_back("question", text::PromptPack::render(pack_text("question"), values));
  return task::render_layout(pack_text("layout"), values, text::PromptPack::render(pack_text("answer_prefix"), values));
}

// A word that is part of another would be found where only the other is said, so no common word is.
std::vector<std::string> CweTask::draw_common(const RngKey& key) const {
  const bool closed = context().pack->closed_vocabulary();
  const std::string fixed = pack_text("intro") + pack_text("question") + pack_text("answer_prefix");
  std::vector<std::string> words = listed_words(context());
  RngStream(key).shuffle(words);
  std::vector<std::string> common;
  for (const std::string& word : words) {
    if (static_cast<std::int64_t>(common.size()) == options_.common) break;
    const bool clash = std::any_of(common.begin(), common.end(), [&word](const std::string& other) {
      return is_part_of(word, other) || is_part_of(other, word);
    });
    if (closed || (!clash && !is_part_of(word, fixed))) common.push_back(word);
  }
  FATHOM_CHECK(static_cast<std::int64_t>(common.size()) == options_.common, "the word lists hold enough words");
  return common;
}

// RULER shows one list of forty words (twenty at short lengths), of which ten are common.
std::string CweTask::example(const RngKey& key, const CweFacts& facts, std::int64_t length_tokens) const {
  const bool is_long = takes_long_list(length_tokens);
  const CweRepeats shown = is_long ? CweRepeats{10, 3} : CweRepeats{3, 1};
  const std::int64_t n_rare = options_.common * (is_long ? 3 : 1);
  std::vector<std::string> words = listed_words(context());
  RngStream rng(key);
  rng.shuffle(words);
  const auto answer = [&facts](const std::string& word) {
    return std::find(facts.common.begin(), facts.common.end(), word) != facts.common.end();
  };
  words.erase(std::remove_if(words.begin(), words.end(), answer), words.end());
  const auto first_rare = words.begin() + options_.common;
  const std::vector<std::string> common(words.begin(), first_rare);
  std::vector<std::string> list = cwe_list(common, {first_rare, first_rare + n_rare}, shown);
  rng.shuffle(list);

  const task::PromptFrame parts = prompt_frame(common.size());
  const std::string prompt = parts.before + number_items(list, pack_text("item")) + parts.after;
  return text::PromptPack::render(pack_text("example"), {{"prompt", prompt},
                                                         {"answer_prefix", parts.answer_prefix},
                                                         {"answers", number_items(common, pack_text("answer_item"))}});
}

CweFacts CweTask::draw_facts(const task::SampleKeyParts& key) const {
  const RngKey facts_key = task::stream_key(key, task::SampleStream::kFacts);
  CweFacts facts;
  facts.common = draw_common(facts_key);
  const bool closed = context().pack->closed_vocabulary();
  facts.rare = std::make_shared<const WordSource>(
      context(), facts_key.child("rare"), [common = facts.common, closed](const std::string& word) {
        return std::any_of(common.begin(), common.end(), [&word, closed](const std::string& other) {
          return closed ? other == word : is_part_of(other, word);
        });
      });
  if (options_.examples.value() > 0) {
    facts.example = example(facts_key.child("example"), facts, key.length_tokens.value());
  }
  return facts;
}

std::unique_ptr<task::SampleDraft> CweTask::draft(const task::SampleKeyParts& key) const {
  return std::make_unique<CweDraft>(*this, key, draw_facts(key));
}

task::HaystackCache::Entry CweTask::rare_words(const task::SampleKeyParts& key, const CweFacts& facts,
                                               std::int64_t units, std::int64_t tokens) const {
  const CweRepeats times = repeats(key.length_tokens.value());
  const std::string id =
      fmt::format("{}|{}|{}", task::stream_key(key, task::SampleStream::kFacts).text(), times.common, times.rare);
  const auto make = [&] {
    return std::make_shared<const RareWordHaystack>(facts.rare, pack_text("item"), pack_text("item_sep"), times,
                                                    options_.common);
  };
  return cache_.get(id, make, context().assembler->tokenizer(), units, tokens);
}

std::unique_ptr<task::Task> make_cwe(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                     const task::TaskContext& context) {
  CweOptions options;
  bind_options(options, source);
  if (!options.examples) options.examples = context.pack->closed_vocabulary() ? 0 : 1;
  const std::size_t listed = listed_words(context).size();
  const std::int64_t needed = 1 + options.common * (options.examples.value() > 0 ? 6 : 2);
  if (static_cast<std::int64_t>(listed) < needed) {
    throw ConfigError(fmt::format("{}: common = {} needs {} different words, but there are {}", entry.name,
                                  options.common, needed, listed));
  }
  if (options.common_repeats && options.common_repeats <= options.rare_repeats.value_or(1)) {
    throw ConfigError(fmt::format("{}: common_repeats = {} must be larger than rare_repeats = {}", entry.name,
                                  *options.common_repeats, options.rare_repeats.value_or(1)));
  }
  task::TaskFrame frame{std::string(entry.name), entry.version, variant, canonical_options(options), "words", context};
  return std::make_unique<CweTask>(std::move(frame), options);
}

std::vector<OptionDescription> describe_cwe() {
  return describe_options(CweOptions{});
}

}  // namespace

task::TaskEntry entries::cwe_entry() {
  return {"cwe",
          kCweVersion,
          "common_words",
          "A long list of words; which ten come back most often?",
          "RULER (Hsieh et al. 2024), section 3",
          true,
          &describe_cwe,
          &make_cwe};
}

}  // namespace fathom::tasks
