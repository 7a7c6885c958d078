// RULER's variable tracking: chains of assignments, asked which variables hold a value (tasks specification 1.2).

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
#include "tasks/tasks.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

using task::HaystackKind;
using task::TaskVariant;

constexpr std::int32_t kVtVersion = 1;
constexpr std::int64_t kVtTaskBudget = 30;
constexpr std::int64_t kVtNameLetters = 5;
constexpr std::int64_t kVtExampleNameLetters = 3;
constexpr std::int64_t kVtLowestValue = 10000;
constexpr std::int64_t kVtHighestValue = 99998;
constexpr std::int64_t kVtExampleTokens = 500;
constexpr std::int64_t kVtMaxRulerLines = 40;

struct VtOptions {
  std::int64_t chains = 1;
  std::int64_t hops = 4;
  std::optional<std::int64_t> examples;

  void visit(OptionVisitor& v) {
    v.integer("chains", chains, {1, 32}, "Chains of assignments; the first one is asked for.");
    v.integer("hops", hops, {1, 32}, "Copies in a chain: it has one variable more.");
    v.optional_integer("examples", examples, {0, 1},
                       "Worked examples in front of the text; auto: 1, and none in a closed vocabulary.");
  }
};

/// One chain: the variables in order and the value they all end up with.
struct VtChain {
  std::vector<std::string> names;
  std::string value;
};

struct VtFacts {
  std::vector<VtChain> chains;  // [0] is asked for
  VtChain example;
  DistinctDraws used;
};

struct VtSetup {
  VtOptions options;
  ValuePool names;
  ValuePool example_names;
  ValuePool values;

  std::int64_t chain_lines() const { return options.hops + 1; }
  std::int64_t n_lines() const { return chain_lines() * options.chains; }
};

class VtTask : public task::FittedTask {
 public:
  VtTask(task::TaskFrame task_frame, VtSetup setup, const task::TaskContext& context, HaystackKind kind,
         TaskVariant variant)
      : FittedTask(std::move(task_frame)), setup_(std::move(setup)), haystack_(context, kind, variant) {}

  bool sweeps_depth() const override { return false; }
  std::vector<task::Control> controls() const override {
    return {task::Control::kNoNeedle, task::Control::kNeedleOnly, task::Control::kWrongKey};
  }
  double in_text_guess(std::int64_t) const override { return 1.0 / static_cast<double>(setup_.options.chains); }
  double blind_guess() const override { return static_cast<double>(setup_.chain_lines()) / setup_.names.size; }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  std::string pack_text(std::string_view name) const { return frame().context.pack->text("vt", name, frame().name); }
  VtFacts draw_facts(const task::SampleKeyParts& key) const;
  VtChain asked_chain(const task::SampleKeyParts& key, const VtFacts& facts) const;
  std::vector<std::string> lines(const VtChain& chain) const;
  text::SlotValues slots(const VtChain& chain) const;
  std::string join_names(const std::vector<std::string>& names) const;
  std::int64_t min_units(std::int64_t length_tokens) const;
  std::string example(const task::SampleKeyParts& key, const VtChain& chain) const;
  std::string example_of_size(const task::SampleKeyParts& key, const VtChain& chain, std::int64_t n_units) const;
  std::optional<std::string> example_lead() const;
  void add_candidates(task::Sample& sample, const task::SampleKeyParts& key, const VtFacts& facts,
                      const task::AnswerPlan& answer) const;

  VtSetup setup_;
  task::TextHaystack haystack_;
};

std::string VtTask::join_names(const std::vector<std::string>& names) const {
  return join(names, frame().context.pack->text("common", "answer_sep"));
}

std::vector<std::string> VtTask::lines(const VtChain& chain) const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < chain.names.size(); ++i) {
    if (i == 0) {
      out.push_back(
          text::PromptPack::render(pack_text("line_first"), {{"var", chain.names[i]}, {"value", chain.value}}));
    } else {
      out.push_back(
          text::PromptPack::render(pack_text("line_next"), {{"var", chain.names[i]}, {"from", chain.names[i - 1]}}));
    }
  }
  return out;
}

text::SlotValues VtTask::slots(const VtChain& chain) const {
  text::SlotValues values = {{"value", chain.value}, {"count", std::to_string(chain.names.size())}};
  values.emplace_back("intro", text::PromptPack::render(pack_text("intro"), values));
  values.emplace_back("question", text::PromptPack::render(pack_text("question"), values));
  return values;
}

// The control wrong_key asks for a value that no variable has.
VtChain VtTask::asked_chain(const task::SampleKeyParts& key, const VtFacts& facts) const {
  VtChain asked = facts.chains.front();
  if (key.control != task::Control::kWrongKey) return asked;
  DistinctDraws used = facts.used;
  RngStream rng(task::stream_key(key, task::SampleStream::kAux).child("wrong key"));
  asked.value = used.draw(setup_.values, rng);
  return asked;
}

VtFacts VtTask::draw_facts(const task::SampleKeyParts& key) const {
  VtFacts facts;
  const bool closed = frame().context.pack->closed_vocabulary();
  std::function<std::string()> search_text;
  if (haystack_.kind() != HaystackKind::kNoise) {
    search_text = [this, &key] { return haystack_text(*haystack_.get(key, 1, key.length_tokens.value()).measured); };
  }
  const std::string fixed = pack_text("intro") + pack_text("question") + pack_text("answer_prefix") +
                            pack_text("line_first") + pack_text("line_next") +
                            frame().context.pack->text("common", "noise");
  auto collisions = std::make_shared<TextCollisions>(fixed, search_text);
  if (!closed) facts.used.set_rejected([collisions](const std::string& value) { return collisions->contains(value); });

  const RngKey facts_key = task::stream_key(key, task::SampleStream::kFacts);
  RngStream rng(facts_key);
  for (std::int64_t c = 0; c < setup_.options.chains; ++c) {
    VtChain chain;
    chain.names = facts.used.draw(setup_.names, rng, setup_.chain_lines());
    chain.value = facts.used.draw(setup_.values, rng);
    facts.chains.push_back(std::move(chain));
  }
  if (setup_.options.examples.value() > 0) {
    RngStream example_rng(facts_key.child("example"));
    facts.example.names = facts.used.draw(setup_.example_names, example_rng, setup_.chain_lines());
    facts.example.value = facts.used.draw(setup_.values, example_rng);
  }
  facts.used.set_rejected(nullptr);
  return facts;
}

std::int64_t VtTask::min_units(std::int64_t length_tokens) const {
  const bool prose = haystack_.kind() != HaystackKind::kNoise;
  if (frame().variant == TaskVariant::kRuler) {
    constexpr std::int64_t kLongLength = 4096;
    if (prose) return haystack_.by_words() ? 500 : 40;
    return std::max<std::int64_t>(length_tokens >= kLongLength ? 10 : 5, setup_.chain_lines());
  }
  return setup_.n_lines() - 1;  // a boundary for every line
}

std::string VtTask::example_of_size(const task::SampleKeyParts& key, const VtChain& chain, std::int64_t n_units) const {
  const text::PromptPack& pack = *frame().context.pack;
  const std::string joiner = pack.closed_vocabulary() ? " " : "\n";
  const auto noise = task::make_noise_haystack(pack.text("common", "noise"), joiner);
  task::MeasuredHaystack measured;
  measured.units = noise->units(0, n_units);

  const std::vector<std::string> needles = lines(chain);
  RngStream rng(task::stream_key(key, task::SampleStream::kFacts).child("example places"));
  auto places = rng.sample_without_replacement(static_cast<std::uint64_t>(n_units + 1), needles.size());
  std::sort(places.begin(), places.end());
  std::vector<task::NeedleAt> placed;
  for (std::size_t i = 0; i < needles.size(); ++i) placed.push_back({needles[i], static_cast<std::int64_t>(places[i])});

  const task::PromptFrame parts = task::render_layout(pack_text("layout"), slots(chain), {});
  const std::string prompt = parts.before + task::join_context(measured, n_units, placed, joiner).text + parts.after;
  return text::PromptPack::render(
      pack_text("example"), {{"prompt", prompt},
                             {"answer_prefix", text::PromptPack::render(pack_text("answer_prefix"), slots(chain))},
                             {"answers", join_names(chain.names)}});
}

// The largest number of noise lines with which the example stays within its tokens; at least one boundary for every
// line of the chain.
std::string VtTask::example(const task::SampleKeyParts& key, const VtChain& chain) const {
  std::int64_t limit = kVtExampleTokens;
  if (frame().variant == TaskVariant::kBalanced) limit = std::min(limit, key.length_tokens.value() / 4);
  const auto& tokenizer = frame().context.assembler->tokenizer();
  const auto tokens = [&tokenizer](const std::string& text) {
    return static_cast<std::int64_t>(tokenizer.encode(text).size());
  };
  const std::int64_t least = setup_.chain_lines() - 1;
  std::string smallest = example_of_size(key, chain, least);
  const std::int64_t base = tokens(smallest);
  const std::int64_t per_unit = std::max<std::int64_t>(1, tokens(example_of_size(key, chain, least + 1)) - base);
  for (std::int64_t n = least + (limit - base) / per_unit; n > least; --n) {
    std::string text = example_of_size(key, chain, n);
    if (tokens(text) <= limit) return text;
  }
  return smallest;
}

// What the example shows between its prefix and its answers is what the model is led to write.
std::optional<std::string> VtTask::example_lead() const {
  if (setup_.options.examples.value() == 0 || frame().context.assembler->style() == text::PromptStyle::kChatNoPrefix) {
    return std::nullopt;
  }
  const std::string& shown = pack_text("example");
  const std::string_view prefix = "{answer_prefix}";
  const std::size_t from = shown.find(prefix);
  const std::size_t to = shown.find("{answers}");
  if (from == std::string::npos || to == std::string::npos || from + prefix.size() > to) return std::nullopt;
  return shown.substr(from + prefix.size(), to - from - prefix.size());
}

std::unique_ptr<task::SampleDraft> VtTask::draft(const task::SampleKeyParts& key) const {
  auto facts = std::make_shared<const VtFacts>(draw_facts(key));
  const VtChain& asked = facts->chains.front();
  task::NeedlePlan plan;
  const text::SlotValues values = slots(asked_chain(key, *facts));
  plan.frame =
      task::render_layout(pack_text("layout"), values, text::PromptPack::render(pack_text("answer_prefix"), values));
  if (setup_.options.examples.value() > 0) plan.frame.before = example(key, facts->example) + plan.frame.before;
  for (std::size_t c = 0; c < facts->chains.size(); ++c) {
    const std::vector<std::string> chain_lines = lines(facts->chains[c]);
    plan.needles.insert(plan.needles.end(), chain_lines.begin(), chain_lines.end());
    plan.groups.push_back({setup_.chain_lines(), c == 0});
  }
  plan.chains = true;
  if (frame().variant == TaskVariant::kRuler) {
    const bool noise = haystack_.kind() == HaystackKind::kNoise;
    plan.rule = noise ? task::PlacementRule::kRulerUnits : task::PlacementRule::kRulerProse;
  }
  plan.min_units = min_units(key.length_tokens.value());
  plan.joiner = haystack_.joiner();
  plan.answer.references = asked.names;
  plan.answer.join = [this](const std::vector<std::string>& names) { return join_names(names); };
  plan.answer.lead = example_lead();
  plan.answer.task_budget = kVtTaskBudget;
  plan.haystack = [this, key](std::int64_t units, std::int64_t tokens) { return haystack_.get(key, units, tokens); };
  plan.finish = [this, key, facts, answer = plan.answer](task::Sample& sample) {
    add_candidates(sample, key, *facts, answer);
  };
  return std::make_unique<task::NeedleDraft>(frame().context, key, std::move(plan));
}

void VtTask::add_candidates(task::Sample& sample, const task::SampleKeyParts& key, const VtFacts& facts,
                            const task::AnswerPlan& answer) const {
  std::vector<std::vector<std::string>> others;
  for (std::size_t c = 1; c < facts.chains.size(); ++c) others.push_back(facts.chains[c].names);
  RngStream aux = task::sample_stream(key, task::SampleStream::kAux);
  DistinctDraws used = facts.used;
  sample.candidates = task::make_candidates(sample, answer, std::move(others), aux, [&]() {
    std::optional<std::vector<std::string>> names(std::in_place);
    for (std::int64_t i = 0; i < setup_.chain_lines() && names; ++i) {
      auto name = used.try_draw(setup_.names, aux);
      if (name) {
        names->push_back(*std::move(name));
      } else {
        names.reset();
      }
    }
    return names;
  });
}

void check_vt_sizes(const task::TaskEntry& entry, TaskVariant variant, HaystackKind kind, const VtSetup& setup) {
  const std::int64_t n_names = setup.n_lines() + setup.options.examples.value() * setup.chain_lines();
  if (!setup.names.holds(n_names)) {
    throw ConfigError(fmt::format("{}: chains = {} with hops = {} needs {} names, but there are {:.0f}", entry.name,
                                  setup.options.chains, setup.options.hops, n_names, setup.names.size));
  }
  if (variant == TaskVariant::kRuler && kind != HaystackKind::kNoise && setup.n_lines() > kVtMaxRulerLines) {
    throw ConfigError(
        fmt::format("{}@ruler: chains = {} with hops = {} makes {} lines, but RULER's prose has {} depths; use fewer, "
                    "noise, or @balanced",
                    entry.name, setup.options.chains, setup.options.hops, setup.n_lines(), kVtMaxRulerLines));
  }
}

std::unique_ptr<task::Task> make_vt(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                    const task::TaskContext& context) {
  const bool closed = context.pack->closed_vocabulary();
  VtSetup setup;
  bind_options(setup.options, source);
  if (!setup.options.examples) setup.options.examples = closed ? 0 : 1;
  setup.names = variable_names(context, kVtNameLetters);
  setup.example_names = variable_names(context, kVtExampleNameLetters);
  setup.values = integers(context, kVtLowestValue, kVtHighestValue);
  const HaystackKind kind =
      task::resolve_haystack(context.haystack, closed ? HaystackKind::kProse : HaystackKind::kNoise);
  check_vt_sizes(entry, variant, kind, setup);
  const task::TextHaystack haystack(context, kind, variant);
  task::TaskFrame frame{std::string(entry.name),          entry.version,          variant,
                        canonical_options(setup.options), haystack.fingerprint(), context};
  return std::make_unique<VtTask>(std::move(frame), std::move(setup), context, kind, variant);
}

std::vector<OptionDescription> describe_vt() {
  return describe_options(VtOptions{});
}

}  // namespace

task::TaskEntry entries::vt_entry() {
  return {"vt",
          kVtVersion,
          "variable_tracking",
          "Chains of assignments; which variables end up with a value?",
          "RULER (Hsieh et al. 2024), section 3",
          true,
          &describe_vt,
          &make_vt};
}

}  // namespace fathom::tasks
