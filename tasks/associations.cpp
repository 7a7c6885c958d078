// Needles that share no word with their question (tasks specification 2.6; Modarressi et al. 2025, "NoLiMa").

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/task/haystack_choice.h"
#include "harness/task/needle_draft.h"
#include "tasks/association_table.h"
#include "tasks/tasks.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

using task::HaystackKind;
using task::TaskVariant;

constexpr std::int32_t kAssocVersion = 1;
constexpr std::int64_t kAssocTaskBudget = 16;
constexpr std::int64_t kAssocLeastSentences = 8;
// Distractors stand at least this far from the gold needle.
constexpr std::int32_t kAssocLeastGapBp = 2000;
// Of the smallest kind, eight pairs, one is left to ask for in vain.
constexpr std::int64_t kAssocMostDistractors = 6;

struct AssocOptions {
  std::int64_t hop = 1;
  std::int64_t distractors = 3;
  std::int64_t literal = 0;

  void visit(OptionVisitor& v) {
    v.integer("hop", hop, {1, 2}, "Steps from needle to question: a city's landmark, or its country's.");
    v.integer("distractors", distractors, {0, kAssocMostDistractors}, "Needles of the same kind about other persons.");
    v.integer("literal", literal, {0, 1}, "1: the question names what the needle says; the gap is what overlap buys.");
  }
};

/// One needle: a person and what is said of it.
struct AssocFact {
  std::string name;
  Association about;
  bool name_last = false;
};

class AssocTask : public task::FittedTask {
 public:
  AssocTask(task::TaskFrame task_frame, const AssocOptions& options, std::vector<Association> rows,
            std::unique_ptr<task::TextHaystack> haystack)
      : FittedTask(std::move(task_frame)),
        options_(options),
        rows_(std::move(rows)),
        persons_(frame().context.pack->closed_vocabulary() ? invented_names(frame().context)
                                                           : list_entries(frame().context, "persons")),
        haystack_(std::move(haystack)) {}

  bool sweeps_depth() const override { return true; }
  std::vector<task::Control> controls() const override {
    return {task::Control::kNoNeedle, task::Control::kNeedleOnly, task::Control::kWrongKey};
  }
  task::TaskMetric metric() const override { return task::TaskMetric::kLabel; }
  double in_text_guess(std::int64_t) const override { return 1.0 / static_cast<double>(options_.distractors + 1); }
  double blind_guess() const override { return 1.0 / persons_.size; }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  std::string pack_text(std::string_view name) const { return frame().context.pack->text("assoc", name, frame().name); }
  const std::string& asked_by(const Association& row) const;
  bool fits_beside(const Association& row, const std::vector<AssocFact>& facts) const;
  std::vector<AssocFact> draw_facts(RngStream& rng) const;
  const Association& queried(const task::SampleKeyParts& key, const std::vector<AssocFact>& facts) const;
  std::string render_needle(const AssocFact& fact) const;
  task::PromptFrame prompt_frame(const Association& asked) const;

  AssocOptions options_;
  std::vector<Association> rows_;
  ValuePool persons_;
  std::unique_ptr<task::TextHaystack> haystack_;
};

const std::string& AssocTask::asked_by(const Association& row) const {
  if (options_.literal == 1) return row.cue;
  return options_.hop == 1 ? row.target : row.hop2;
}

// Two needles of which the question could mean either never meet.
bool AssocTask::fits_beside(const Association& row, const std::vector<AssocFact>& facts) const {
  return std::all_of(facts.begin(), facts.end(), [&](const AssocFact& fact) {
    const auto excludes = [](const Association& a, const Association& b) {
      return std::find(a.exclude.begin(), a.exclude.end(), b.id) != a.exclude.end();
    };
    const bool same_hop = options_.hop == 2 && row.hop2 == fact.about.hop2;
    return row.topic == fact.about.topic && row.cue != fact.about.cue && row.target != fact.about.target && !same_hop &&
           !excludes(row, fact.about) && !excludes(fact.about, row);
  });
}

std::vector<AssocFact> AssocTask::draw_facts(RngStream& rng) const {
  DistinctDraws used;
  std::vector<AssocFact> facts;
  const Association& gold = rows_[rng.uniform_index(rows_.size())];
  facts.push_back({used.draw(persons_, rng), gold, rng.uniform_index(2) == 1});
  std::vector<Association> others = rows_;
  rng.shuffle(others);
  for (const Association& row : others) {
    if (static_cast<std::int64_t>(facts.size()) > options_.distractors) break;
    if (fits_beside(row, facts)) facts.push_back({used.draw(persons_, rng), row, rng.uniform_index(2) == 1});
  }
  FATHOM_CHECK(static_cast<std::int64_t>(facts.size()) == options_.distractors + 1, "every kind has enough pairs");
  return facts;
}

// The control wrong_key asks for a pair of the same kind that no needle is about.
const Association& AssocTask::queried(const task::SampleKeyParts& key, const std::vector<AssocFact>& facts) const {
  if (key.control != task::Control::kWrongKey) return facts.front().about;
  RngStream rng(task::stream_key(key, task::SampleStream::kAux).child("wrong key"));
  for (;;) {
    const Association& row = rows_[rng.uniform_index(rows_.size())];
    if (fits_beside(row, facts)) return row;
  }
}

std::string AssocTask::render_needle(const AssocFact& fact) const {
  const std::string name = "needle_" + fact.about.topic + (fact.name_last ? ".inv" : "");
  return text::PromptPack::render(pack_text(name), {{"name", fact.name}, {"cue", fact.about.cue}});
}

task::PromptFrame AssocTask::prompt_frame(const Association& asked) const {
  text::SlotValues values = {{"intro", pack_text("intro")}};
  values.emplace_back("question",
                      text::PromptPack::render(pack_text("question_" + asked.topic), {{"target", asked_by(asked)}}));
  return task::render_layout(pack_text("layout"), values, pack_text("answer_prefix"));
}

/// The gold needle at its depth, the others on strata at least 20 % away, in random order.
std::vector<task::Placement> place_associations(const task::MeasuredHaystack& haystack, std::int64_t n_units,
                                                std::int32_t depth_bp, std::size_t n_needles, RngStream rng) {
  const task::PlacementSpace space(haystack, n_units);
  std::vector<std::int32_t> depths;
  for (std::int64_t stratum = 0; stratum < task::kDepthStrata; ++stratum) {
    const auto depth = static_cast<std::int32_t>(stratum * kDepthScale / (task::kDepthStrata - 1));
    if (std::abs(depth - depth_bp) >= kAssocLeastGapBp) depths.push_back(depth);
  }
  rng.shuffle(depths);
  depths.insert(depths.begin(), depth_bp);
  std::vector<bool> taken(static_cast<std::size_t>(space.n_boundaries()), false);
  std::vector<task::Placement> places;
  for (std::size_t i = 0; i < n_needles; ++i) {
    const auto boundary = space.nearest(depths[i], taken);
    FATHOM_CHECK(boundary.has_value(), "more needles than boundaries");
    taken[static_cast<std::size_t>(*boundary)] = true;
    places.push_back({space.unit(*boundary), depths[i]});
  }
  return places;
}

// With literal = 1 only the question differs, so that the two scores are paired.
std::unique_ptr<task::SampleDraft> AssocTask::draft(const task::SampleKeyParts& asked) const {
  task::SampleKeyParts key = asked;
  key.parameters["literal"] = "0";
  RngStream rng = task::sample_stream(key, task::SampleStream::kFacts);
  const std::vector<AssocFact> facts = draw_facts(rng);
  task::NeedlePlan plan;
  plan.frame = prompt_frame(queried(key, facts));
  for (const AssocFact& fact : facts) {
    plan.needles.push_back(render_needle(fact));
    plan.groups.push_back({1, plan.groups.empty()});
    plan.answer.labels.push_back(fact.name);
  }
  plan.min_units = kAssocLeastSentences;
  plan.joiner = haystack_->joiner();
  plan.answer.references = {facts.front().name};
  if (key.control == task::Control::kWrongKey) {
    plan.answer.said = std::exchange(plan.answer.references, plan.answer.labels);
  }
  plan.answer.join = [](const std::vector<std::string>& names) { return names.front(); };
  plan.answer.task_budget = kAssocTaskBudget;
  plan.answer.metric = metric();
  const std::int64_t stratum = key.index % task::kDepthStrata;
  const auto balanced = static_cast<std::int32_t>(stratum * kDepthScale / (task::kDepthStrata - 1));
  plan.place = [key, depth_bp = key.depth_bp.value_or(balanced), n = facts.size()](
                   const task::MeasuredHaystack& haystack, std::int64_t n_units) {
    return place_associations(haystack, n_units, depth_bp, n, task::sample_stream(key, task::SampleStream::kPlace));
  };
  plan.haystack = [this, key](std::int64_t units, std::int64_t tokens) { return haystack_->get(key, units, tokens); };
  plan.finish = [this, key, facts, answer = plan.answer](task::Sample& sample) {
    DistinctDraws used;
    std::vector<std::vector<std::string>> others;
    for (const AssocFact& fact : facts) {
      used.add(fact.name);
      if (fact.name != facts.front().name) others.push_back({fact.name});
    }
    RngStream aux = task::sample_stream(key, task::SampleStream::kAux);
    sample.candidates = task::make_candidates(sample, answer, std::move(others), aux, [&]() {
      std::optional<std::vector<std::string>> fresh;
      if (auto name = used.try_draw(persons_, aux)) fresh = {*std::move(name)};
      return fresh;
    });
  };
  return std::make_unique<task::NeedleDraft>(frame().context, key, std::move(plan));
}

/// Everything a needle or question may name; the prose must not hold it. Of running words only those that mean
/// something.
std::vector<std::string> association_words(const task::TaskContext& context, const std::vector<Association>& rows) {
  std::vector<std::string> words;
  const text::PromptPack& pack = *context.pack;
  if (pack.closed_vocabulary()) return words;
  words = split_list(pack.text("lists", "persons"));
  constexpr std::size_t kShortWord = 3;
  for (const Association& row : rows) {
    for (const std::string& phrase : {row.cue, row.target, row.hop2}) {
      if (pack.language() == "zh") {
        if (!phrase.empty()) words.push_back(phrase);
        continue;
      }
      for (const std::string& word : split(phrase, ' ')) {
        if (word.size() > kShortWord) words.push_back(word);
      }
    }
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

std::unique_ptr<task::Task> make_assoc(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                       const task::TaskContext& context) {
  AssocOptions options;
  bind_options(options, source);
  std::vector<Association> rows = associations(context);
  const HaystackKind kind = task::resolve_haystack(context.haystack, HaystackKind::kProse);
  auto haystack = std::make_unique<task::TextHaystack>(context, kind, variant, association_words(context, rows));
  if (options.hop == 2) {
    rows.erase(std::remove_if(rows.begin(), rows.end(), [](const Association& row) { return row.hop2.empty(); }),
               rows.end());
    if (rows.empty()) {
      throw ConfigError(fmt::format("{}: hop = 2 needs pairs with a second step, and pack '{}' has none; use hop = 1",
                                    entry.name, context.pack->name()));
    }
  }
  task::TaskFrame frame{std::string(entry.name),    entry.version,           variant,
                        canonical_options(options), haystack->fingerprint(), context};
  frame.haystack_fingerprint += "|associations/1";
  return std::make_unique<AssocTask>(std::move(frame), options, std::move(rows), std::move(haystack));
}

std::vector<OptionDescription> describe_assoc() {
  return describe_options(AssocOptions{});
}

}  // namespace

task::TaskEntry entries::assoc_entry() {
  return {"assoc",
          kAssocVersion,
          "assoc",
          "A needle and a question that share no word: who can often be found in Paris?",
          "NoLiMa (Modarressi et al. 2025)",
          false,
          &describe_assoc,
          &make_assoc};
}

}  // namespace fathom::tasks
