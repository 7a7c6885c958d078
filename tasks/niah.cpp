// RULER's eight needle tasks: one family, one options struct, eight entries (tasks specification 1.1; Hsieh et al.
// 2024, section 3).

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/task/haystack_choice.h"
#include "harness/task/needle_draft.h"
#include "tasks/pair_list.h"
#include "tasks/tasks.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

using task::HaystackKind;
using task::TaskVariant;

constexpr std::int32_t kNiahVersion = 1;
constexpr std::int64_t kNiahTaskBudget = 128;
constexpr std::int64_t kNiahDefaultDigits = 7;
constexpr std::int64_t kNiahMaxRulerNeedles = 40;
constexpr std::string_view kNiahSource = "RULER (Hsieh et al. 2024), section 3";

enum class NiahForm { kWords, kNumbers, kUuids };

/// One line of the specification's table.
struct NiahKind {
  HaystackKind haystack = HaystackKind::kProse;
  NiahForm key_form = NiahForm::kWords;
  NiahForm value_form = NiahForm::kNumbers;
  std::int64_t n_keys = 1;
  std::int64_t values_per_key = 1;
  std::int64_t n_queries = 1;
};

struct NiahOptions {
  std::int64_t extra_keys = 0;
  std::optional<std::int64_t> digits;

  void visit(OptionVisitor& v) {
    v.integer("extra_keys", extra_keys, {0, 1000}, "Distractor keys added, each with as many values as a queried key.");
    v.optional_integer("digits", digits, {1, 18},
                       "Digits of a number; auto: 7, and one value word in a closed vocabulary.");
  }
};

/// What all samples of a task share.
struct NiahSetup {
  NiahKind kind;
  NiahOptions options;
  ValuePool keys;
  ValuePool values;

  std::int64_t all_keys() const { return kind.n_keys + options.extra_keys; }
  std::int64_t n_needles() const { return all_keys() * kind.values_per_key; }
  std::int64_t n_references() const { return kind.n_queries * kind.values_per_key; }
};

/// Keys and values of one sample.
struct NiahFacts {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;  // by key
  std::vector<std::size_t> queries;              // indices into keys
  DistinctDraws used;                            // all of the above

  std::vector<std::string> all_values() const {
    std::vector<std::string> out;
    for (const auto& of_key : values) out.insert(out.end(), of_key.begin(), of_key.end());
    return out;
  }
  std::vector<std::string> references() const {
    std::vector<std::string> out;
    for (const std::size_t q : queries) out.insert(out.end(), values[q].begin(), values[q].end());
    return out;
  }
};

std::string_view niah_type_key(NiahForm form) {
  switch (form) {
    case NiahForm::kWords:
      return "type_words";
    case NiahForm::kNumbers:
      return "type_numbers";
    case NiahForm::kUuids:
      return "type_uuids";
  }
  FATHOM_CHECK(false, "unknown form");
}

class NiahTask : public task::FittedTask {
 public:
  NiahTask(task::TaskFrame task_frame, NiahSetup setup, std::unique_ptr<task::TextHaystack> haystack)
      : FittedTask(std::move(task_frame)), setup_(std::move(setup)), haystack_(std::move(haystack)) {}

  bool sweeps_depth() const override { return frame().variant == TaskVariant::kBalanced && setup_.n_references() == 1; }

  std::vector<task::Control> controls() const override {
    return {task::Control::kNoNeedle, task::Control::kNeedleOnly, task::Control::kWrongKey};
  }
  double in_text_guess(std::int64_t length_tokens) const override {
    std::int64_t present = setup_.n_needles();
    if (!haystack_) present += typical_units(length_tokens);
    return static_cast<double>(setup_.n_references()) / static_cast<double>(present);
  }

  double blind_guess() const override { return static_cast<double>(setup_.n_references()) / setup_.values.size; }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  std::string pack_text(std::string_view name) const { return frame().context.pack->text("niah", name, frame().name); }
  std::vector<std::string> queried_keys(const task::SampleKeyParts& key, const NiahFacts& facts) const;
  text::SlotValues slots(const std::vector<std::string>& queried) const;
  std::string render_needle(const std::string& key, const std::string& value) const;
  NiahFacts draw_facts(const task::SampleKeyParts& key) const;
  std::int64_t min_units(std::int64_t length_tokens) const;
  task::HaystackCache::Entry needle_haystack(const task::SampleKeyParts& key, const NiahFacts& facts,
                                             std::int64_t units, std::int64_t tokens) const;
  void add_candidates(task::Sample& sample, const task::SampleKeyParts& key, const NiahFacts& facts,
                      const task::AnswerPlan& answer) const;
  void add_needles(task::NeedlePlan& plan, const NiahFacts& facts) const;

  NiahSetup setup_;
  std::unique_ptr<task::TextHaystack> haystack_;  // null: needle haystack
  mutable task::HaystackCache needle_cache_;
};

std::string NiahTask::render_needle(const std::string& key, const std::string& value) const {
  const std::string_view type = niah_type_key(setup_.kind.value_form);
  return text::PromptPack::render(
      pack_text("needle"),
      {{"type", pack_text(std::string(type) + ".one")}, {"types", pack_text(type)}, {"key", key}, {"value", value}});
}

// The control wrong_key asks for keys that stand nowhere.
std::vector<std::string> NiahTask::queried_keys(const task::SampleKeyParts& key, const NiahFacts& facts) const {
  std::vector<std::string> queried;
  for (const std::size_t q : facts.queries) queried.push_back(facts.keys[q]);
  if (key.control != task::Control::kWrongKey) return queried;
  DistinctDraws used = facts.used;
  RngStream rng(task::stream_key(key, task::SampleStream::kAux).child("wrong key"));
  return used.draw(setup_.keys, rng, setup_.kind.n_queries);
}

text::SlotValues NiahTask::slots(const std::vector<std::string>& queried) const {
  const std::string_view type = niah_type_key(setup_.kind.value_form);
  return {{"type", pack_text(std::string(type) + ".one")},
          {"types", pack_text(type)},
          {"query", frame().context.pack->join_list(queried)}};
}

NiahFacts NiahTask::draw_facts(const task::SampleKeyParts& key) const {
  NiahFacts facts;
  const text::PromptPack& pack = *frame().context.pack;
  // Built-in English prose has no digit, hyphen or filler that is a key, so only other texts are searched.
  const bool searched = haystack_ && (haystack_->kind() == HaystackKind::kCorpus || pack.language() == "zh");
  std::function<std::string()> search_text;
  if (searched) {
    search_text = [this, &key] { return haystack_text(*haystack_->get(key, 1, key.length_tokens.value()).measured); };
  }
  auto collisions = std::make_shared<TextCollisions>(pack_text("intro") + pack_text("question"), search_text);
  if (!pack.closed_vocabulary()) {
    facts.used.set_rejected([collisions](const std::string& value) { return collisions->contains(value); });
  }
  RngStream rng = task::sample_stream(key, task::SampleStream::kFacts);
  facts.keys = facts.used.draw(setup_.keys, rng, setup_.all_keys());
  for (std::int64_t k = 0; k < setup_.all_keys(); ++k) {
    facts.values.push_back(facts.used.draw(setup_.values, rng, setup_.kind.values_per_key));
  }
  for (const std::uint64_t q : rng.sample_without_replacement(static_cast<std::uint64_t>(setup_.kind.n_keys),
                                                              static_cast<std::uint64_t>(setup_.kind.n_queries))) {
    facts.queries.push_back(q);
  }
  facts.used.set_rejected(nullptr);
  return facts;
}

std::int64_t NiahTask::min_units(std::int64_t length_tokens) const {
  const bool prose = haystack_ && haystack_->kind() != HaystackKind::kNoise;
  if (frame().variant == TaskVariant::kRuler) {
    constexpr std::int64_t kLongLength = 4096;
    if (prose) return haystack_->by_words() ? 500 : 40;
    return std::max<std::int64_t>(length_tokens >= kLongLength ? 25 : 5, setup_.n_needles());
  }
  const std::int64_t least = !haystack_ ? 3 : prose ? 4 : 1;
  return std::max(least, setup_.n_needles() - 1);  // a boundary for every needle
}

task::HaystackCache::Entry NiahTask::needle_haystack(const task::SampleKeyParts& key, const NiahFacts& facts,
                                                     std::int64_t units, std::int64_t tokens) const {
  const RngKey hay = task::stream_key(key, task::SampleStream::kHay);
  // The facts are part of the name: where they differ between cells, so do the needles that must avoid them.
  const std::string id = hay.text() + "|" + task::stream_key(key, task::SampleStream::kFacts).text();
  const auto make = [&] {
    // Keys and values of one form share one pool.
    const double per_needle = setup_.kind.key_form == setup_.kind.value_form ? 2 : 1;
    const double most =
        std::min(setup_.keys.size, setup_.values.size) / per_needle - static_cast<double>(setup_.n_needles());
    constexpr double kEnough = 1e9;
    const std::string separator = frame().context.pack->closed_vocabulary() ? " " : "\n";
    const auto render = [this](const std::string& name, const std::string& value) {
      return render_needle(name, value);
    };
    return std::make_shared<const PairListHaystack>(PairListSpec{setup_.keys, setup_.values, facts.used,
                                                                 static_cast<std::int64_t>(std::min(most, kEnough)),
                                                                 hay, separator, render});
  };
  return needle_cache_.get(id, make, frame().context.assembler->tokenizer(), units, tokens);
}

// The needles of a queried key are gold. Single needles are groups of their own, so balanced placement may put them in
// any order.
void NiahTask::add_needles(task::NeedlePlan& plan, const NiahFacts& facts) const {
  for (std::size_t k = 0; k < facts.keys.size(); ++k) {
    const bool gold = std::find(facts.queries.begin(), facts.queries.end(), k) != facts.queries.end();
    for (const std::string& value : facts.values[k]) {
      plan.needles.push_back(render_needle(facts.keys[k], value));
      plan.groups.push_back({1, gold});
    }
  }
}

std::unique_ptr<task::SampleDraft> NiahTask::draft(const task::SampleKeyParts& key) const {
  auto facts = std::make_shared<const NiahFacts>(draw_facts(key));
  const std::string suffix = setup_.n_references() == 1 ? ".one" : "";
  task::NeedlePlan plan;
  text::SlotValues values = slots(queried_keys(key, *facts));
  values.emplace_back("intro", text::PromptPack::render(pack_text("intro" + suffix), values));
  values.emplace_back("question", text::PromptPack::render(pack_text("question" + suffix), values));
  plan.frame = task::render_layout(pack_text("layout"), values,
                                   text::PromptPack::render(pack_text("answer_prefix" + suffix), values));
  add_needles(plan, *facts);
  plan.min_units = min_units(key.length_tokens.value());
  if (frame().variant == TaskVariant::kRuler) {
    const bool prose = haystack_ && haystack_->kind() != HaystackKind::kNoise;
    plan.rule = prose ? task::PlacementRule::kRulerProse : task::PlacementRule::kRulerUnits;
  }
  plan.answer.references = facts->references();
  plan.answer.join = [pack = frame().context.pack](const std::vector<std::string>& items) {
    return pack->join_list(items);
  };
  plan.answer.task_budget = kNiahTaskBudget;
  if (key.control == task::Control::kWrongKey) {
    plan.answer.said = std::exchange(plan.answer.references, facts->all_values());
  }
  if (haystack_) {
    plan.joiner = haystack_->joiner();
    plan.haystack = [this, key](std::int64_t units, std::int64_t tokens) { return haystack_->get(key, units, tokens); };
  } else {
    plan.joiner = frame().context.pack->closed_vocabulary() ? " " : "\n";
    plan.haystack = [this, key, facts](std::int64_t units, std::int64_t tokens) {
      return needle_haystack(key, *facts, units, tokens);
    };
  }
  plan.finish = [this, key, facts, answer = plan.answer](task::Sample& sample) {
    add_candidates(sample, key, *facts, answer);
  };
  return std::make_unique<task::NeedleDraft>(frame().context, key, std::move(plan));
}

void NiahTask::add_candidates(task::Sample& sample, const task::SampleKeyParts& key, const NiahFacts& facts,
                              const task::AnswerPlan& answer) const {
  const std::int64_t per_answer = setup_.n_references();
  std::vector<std::vector<std::string>> in_prompt;
  DistinctDraws used = facts.used;
  if (per_answer == 1) {
    for (std::size_t k = 0; k < facts.keys.size(); ++k) {
      if (k != facts.queries.front()) in_prompt.push_back(facts.values[k]);
    }
  }
  if (!haystack_) {
    const auto entry = needle_haystack(key, facts, sample.haystack_units, 0);
    const auto& list = dynamic_cast<const PairListHaystack&>(*entry.source);
    for (std::int64_t j = 0; j < sample.haystack_units; ++j) {
      used.add(list.pair(j).second);
      if (per_answer == 1) in_prompt.push_back({list.pair(j).second});
    }
  }
  RngStream aux = task::sample_stream(key, task::SampleStream::kAux);
  sample.candidates = task::make_candidates(sample, answer, std::move(in_prompt), aux, [&]() {
    std::optional<std::vector<std::string>> values(std::in_place);
    for (std::int64_t i = 0; i < per_answer && values; ++i) {
      auto value = used.try_draw(setup_.values, aux);
      if (value) {
        values->push_back(*std::move(value));
      } else {
        values.reset();
      }
    }
    return values;
  });
}

ValuePool niah_pool(NiahForm form, const NiahOptions& options, const task::TaskContext& context) {
  switch (form) {
    case NiahForm::kWords:
      return word_keys(context);
    case NiahForm::kNumbers:
      return numbers(context, options.digits, kNiahDefaultDigits);
    case NiahForm::kUuids:
      return uuids(context);
  }
  FATHOM_CHECK(false, "unknown form");
}

void check_niah_sizes(const task::TaskEntry& entry, TaskVariant variant, const NiahSetup& setup) {
  if (!setup.keys.holds(setup.all_keys()) || !setup.values.holds(setup.n_needles())) {
    throw ConfigError(fmt::format(
        "{}: extra_keys = {} needs {} keys and {} values, but there are {:.0f} and {:.0f} of their forms", entry.name,
        setup.options.extra_keys, setup.all_keys(), setup.n_needles(), setup.keys.size, setup.values.size));
  }
  if (variant == TaskVariant::kRuler && setup.n_needles() > kNiahMaxRulerNeedles) {
    throw ConfigError(
        fmt::format("{}@ruler: extra_keys = {} makes {} needles, but RULER has {} depths; use fewer, or @balanced",
                    entry.name, setup.options.extra_keys, setup.n_needles(), kNiahMaxRulerNeedles));
  }
}

std::unique_ptr<task::Task> make_niah(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                      const task::TaskContext& context, const NiahKind& kind) {
  NiahSetup setup;
  setup.kind = kind;
  bind_options(setup.options, source);
  setup.keys = niah_pool(kind.key_form, setup.options, context);
  setup.values = niah_pool(kind.value_form, setup.options, context);
  check_niah_sizes(entry, variant, setup);
  task::TaskFrame frame{std::string(entry.name),          entry.version, variant,
                        canonical_options(setup.options), "needles",     context};
  std::unique_ptr<task::TextHaystack> haystack;
  const HaystackKind resolved = task::resolve_haystack(context.haystack, kind.haystack);
  if (resolved != HaystackKind::kNeedles) {
    haystack = std::make_unique<task::TextHaystack>(context, resolved, variant);
    frame.haystack_fingerprint = haystack->fingerprint();
  }
  return std::make_unique<NiahTask>(std::move(frame), std::move(setup), std::move(haystack));
}

std::vector<OptionDescription> describe_niah() {
  return describe_options(NiahOptions{});
}

constexpr NiahKind kNiahSingle1{HaystackKind::kNoise, NiahForm::kWords, NiahForm::kNumbers, 1, 1, 1};
constexpr NiahKind kNiahSingle2{HaystackKind::kProse, NiahForm::kWords, NiahForm::kNumbers, 1, 1, 1};
constexpr NiahKind kNiahSingle3{HaystackKind::kProse, NiahForm::kWords, NiahForm::kUuids, 1, 1, 1};
constexpr NiahKind kNiahMultikey1{HaystackKind::kProse, NiahForm::kWords, NiahForm::kNumbers, 4, 1, 1};
constexpr NiahKind kNiahMultikey2{HaystackKind::kNeedles, NiahForm::kWords, NiahForm::kNumbers, 1, 1, 1};
constexpr NiahKind kNiahMultikey3{HaystackKind::kNeedles, NiahForm::kUuids, NiahForm::kUuids, 1, 1, 1};
constexpr NiahKind kNiahMultivalue{HaystackKind::kProse, NiahForm::kWords, NiahForm::kNumbers, 1, 4, 1};
constexpr NiahKind kNiahMultiquery{HaystackKind::kProse, NiahForm::kWords, NiahForm::kNumbers, 4, 1, 4};

template <const NiahKind& kind>
std::unique_ptr<task::Task> make_niah_of(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& options,
                                         const task::TaskContext& context) {
  return make_niah(entry, variant, options, context, kind);
}

template <const NiahKind& kind>
task::TaskEntry niah_entry(std::string_view name, std::string_view group, std::string_view summary) {
  return {name, kNiahVersion, group, summary, kNiahSource, true, &describe_niah, &make_niah_of<kind>};
}

}  // namespace

task::TaskEntry entries::niah_single_1_entry() {
  return niah_entry<kNiahSingle1>("niah_single_1", "niah_single",
                                  "One number under a name, in a line repeated over and over.");
}
task::TaskEntry entries::niah_single_2_entry() {
  return niah_entry<kNiahSingle2>("niah_single_2", "niah_single", "One number under a name, in prose.");
}
task::TaskEntry entries::niah_single_3_entry() {
  return niah_entry<kNiahSingle3>("niah_single_3", "niah_single", "One long code under a name, in prose.");
}
task::TaskEntry entries::niah_multikey_1_entry() {
  return niah_entry<kNiahMultikey1>("niah_multikey_1", "niah_multikey",
                                    "Four names with numbers in prose; one is asked for.");
}
task::TaskEntry entries::niah_multikey_2_entry() {
  return niah_entry<kNiahMultikey2>("niah_multikey_2", "niah_multikey",
                                    "Nothing but names with numbers; one is asked for.");
}
task::TaskEntry entries::niah_multikey_3_entry() {
  return niah_entry<kNiahMultikey3>("niah_multikey_3", "niah_multikey",
                                    "Nothing but codes under codes; one is asked for.");
}
task::TaskEntry entries::niah_multivalue_entry() {
  return niah_entry<kNiahMultivalue>("niah_multivalue", "niah_multivalue",
                                     "Four numbers under one name, in prose; all are asked for.");
}
task::TaskEntry entries::niah_multiquery_entry() {
  return niah_entry<kNiahMultiquery>("niah_multiquery", "niah_multiquery",
                                     "Four names with numbers in prose; all are asked for.");
}

}  // namespace fathom::tasks
