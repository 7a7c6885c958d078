// Notes on persons and things, spread over a story (tasks specification 2.7; Kuratov et al. 2024, "BABILong").

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/task/haystack_choice.h"
#include "harness/task/needle_draft.h"
#include "tasks/fact_world.h"
#include "tasks/tasks.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

using task::HaystackKind;
using task::TaskVariant;

constexpr std::int32_t kFactsVersion = 1;
constexpr std::int64_t kFactsTaskBudget = 16;
constexpr std::int64_t kFactQuestions = 3;

struct FactsOptions {
  std::optional<std::int64_t> question;

  void visit(OptionVisitor& v) {
    v.optional_integer("question", question, {1, kFactQuestions},
                       "1: where is a person, 2: where is a thing, 3: where was a thing before; auto: in turn.");
  }
};

/// Names of one sample's world; the last person and object are in no note, for the control wrong_key.
struct FactNames {
  std::vector<std::string> persons;
  std::vector<std::string> places;
  std::vector<std::string> objects;
};

class FactsTask : public task::FittedTask {
 public:
  FactsTask(task::TaskFrame task_frame, const FactsOptions& options, std::unique_ptr<task::TextHaystack> haystack)
      : FittedTask(std::move(task_frame)), options_(options), haystack_(std::move(haystack)) {}

  bool sweeps_depth() const override { return false; }
  std::vector<task::Control> controls() const override {
    return {task::Control::kNoNeedle, task::Control::kNeedleOnly, task::Control::kWrongKey};
  }
  task::TaskMetric metric() const override { return task::TaskMetric::kLabel; }
  double in_text_guess(std::int64_t) const override { return blind_guess(); }
  double blind_guess() const override;

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  std::string pack_text(std::string_view name) const { return frame().context.pack->text("facts", name, frame().name); }
  std::int64_t question_of(std::int64_t index) const { return options_.question.value_or(index % kFactQuestions + 1); }
  FactNames draw_names(RngStream& rng) const;
  std::string render_event(const FactEvent& event, const FactNames& names) const;
  task::PromptFrame prompt_frame(const FactWorld& world, const FactNames& names, bool wrong_key) const;
  task::AnswerPlan answer_plan(const FactWorld& world, const FactNames& names, bool wrong_key) const;

  FactsOptions options_;
  std::unique_ptr<task::TextHaystack> haystack_;
};

// The third question names a place, which leaves one label less.
double FactsTask::blind_guess() const {
  constexpr double kAll = 1.0 / static_cast<double>(kFactPlaces);
  constexpr double kLess = 1.0 / static_cast<double>(kFactPlaces - 1);
  if (options_.question) return *options_.question == 3 ? kLess : kAll;
  return (2 * kAll + kLess) / 3;
}

std::vector<std::string> pick(std::vector<std::string> all, std::int64_t count, RngStream& rng) {
  rng.shuffle(all);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

std::vector<std::string> pool_slice(const char letter, std::int64_t count) {
  std::vector<std::string> words;
  for (std::int64_t i = 0; i < count; ++i) words.push_back(letter + std::to_string(i));
  return words;
}

FactNames FactsTask::draw_names(RngStream& rng) const {
  const text::PromptPack& pack = *frame().context.pack;
  FactNames names;
  if (pack.closed_vocabulary()) {
    names.persons = DistinctDraws().draw(invented_names(frame().context), rng, kFactPersons + 1);
    names.objects = DistinctDraws().draw(word_keys(frame().context), rng, kFactObjects + 1);
    names.places = pool_slice('v', kFactPlaces);
    rng.shuffle(names.places);
    return names;
  }
  names.persons = pick(split_list(pack.text("lists", "persons")), kFactPersons + 1, rng);
  names.objects = pick(split_list(pack.text("lists", "objects")), kFactObjects + 1, rng);
  names.places = pick(split_list(pack.text("lists", "places")), kFactPlaces, rng);
  return names;
}

std::string FactsTask::render_event(const FactEvent& event, const FactNames& names) const {
  const auto at = [](const std::vector<std::string>& list, int i) { return list[static_cast<std::size_t>(i)]; };
  text::SlotValues values = {{"person", at(names.persons, event.person)}};
  switch (event.kind) {
    case FactEvent::Kind::kGo:
      values.emplace_back("place", at(names.places, event.target));
      return text::PromptPack::render(pack_text("go"), values);
    case FactEvent::Kind::kTake:
      values.emplace_back("object", at(names.objects, event.target));
      return text::PromptPack::render(pack_text("take"), values);
    case FactEvent::Kind::kDrop:
      values.emplace_back("object", at(names.objects, event.target));
      return text::PromptPack::render(pack_text("drop"), values);
  }
  FATHOM_CHECK(false, "unknown event");
}

task::PromptFrame FactsTask::prompt_frame(const FactWorld& world, const FactNames& names, bool wrong_key) const {
  const FactQuestion& asked = world.question;
  const bool person = asked.kind == 1;
  const auto& subjects = person ? names.persons : names.objects;
  const std::string subject = wrong_key ? subjects.back() : subjects[static_cast<std::size_t>(asked.subject)];
  text::SlotValues values = {{person ? "person" : "object", subject}};
  if (asked.kind == 3) values.emplace_back("place", names.places[static_cast<std::size_t>(asked.place)]);
  text::SlotValues parts = {{"intro", pack_text("intro")}};
  parts.emplace_back("question", text::PromptPack::render(pack_text("q" + std::to_string(asked.kind)), values));
  return task::render_layout(pack_text("layout"), parts, text::PromptPack::render(pack_text("answer_prefix"), values));
}

task::AnswerPlan FactsTask::answer_plan(const FactWorld& world, const FactNames& names, bool wrong_key) const {
  task::AnswerPlan plan;
  plan.references = {names.places[static_cast<std::size_t>(world.answer)]};
  plan.labels = names.places;
  if (world.question.kind == 3) plan.labels.erase(plan.labels.begin() + world.question.place);
  if (wrong_key) plan.said = std::exchange(plan.references, plan.labels);
  plan.join = [](const std::vector<std::string>& places) { return places.front(); };
  plan.task_budget = kFactsTaskBudget;
  plan.metric = metric();
  return plan;
}

std::unique_ptr<task::SampleDraft> FactsTask::draft(const task::SampleKeyParts& key) const {
  RngStream rng = task::sample_stream(key, task::SampleStream::kFacts);
  const FactNames names = draw_names(rng);
  const FactWorld world = draw_fact_world(static_cast<int>(question_of(key.index)), rng);
  const bool wrong_key = key.control == task::Control::kWrongKey;
  task::NeedlePlan plan;
  plan.frame = prompt_frame(world, names, wrong_key);
  for (std::size_t i = 0; i < world.events.size(); ++i) {
    plan.needles.push_back(render_event(world.events[i], names));
    const bool supports = std::find(world.support.begin(), world.support.end(), i) != world.support.end();
    plan.groups.push_back({1, supports});
  }
  plan.min_units = static_cast<std::int64_t>(world.events.size()) - 1;
  plan.joiner = haystack_->joiner();
  plan.answer = answer_plan(world, names, wrong_key);
  // In the order of the events, on different boundaries.
  plan.place = [key, n = world.events.size()](const task::MeasuredHaystack& haystack, std::int64_t n_units) {
    const task::PlacementSpace space(haystack, n_units);
    RngStream place = task::sample_stream(key, task::SampleStream::kPlace);
    auto boundaries = place.sample_without_replacement(static_cast<std::uint64_t>(space.n_boundaries()), n);
    std::sort(boundaries.begin(), boundaries.end());
    std::vector<task::Placement> places;
    places.reserve(boundaries.size());
    for (const std::uint64_t b : boundaries) places.push_back({space.unit(static_cast<std::int64_t>(b)), std::nullopt});
    return places;
  };
  plan.haystack = [this, key](std::int64_t units, std::int64_t tokens) { return haystack_->get(key, units, tokens); };
  plan.finish = [key, answer = plan.answer](task::Sample& sample) {
    const std::string gold = answer.said.empty() ? answer.references.front() : answer.said.front();
    std::vector<std::vector<std::string>> others;
    for (const std::string& label : answer.labels) {
      if (label != gold) others.push_back({label});
    }
    RngStream aux = task::sample_stream(key, task::SampleStream::kAux);
    sample.candidates = task::make_candidates(sample, answer, std::move(others), aux,
                                              []() { return std::optional<std::vector<std::string>>(); });
  };
  return std::make_unique<task::NeedleDraft>(frame().context, key, std::move(plan));
}

/// The words of the notes, which the story must not hold.
std::vector<std::string> fact_words(const text::PromptPack& pack) {
  std::vector<std::string> words;
  if (pack.closed_vocabulary()) return words;
  for (const char* list : {"persons", "places", "objects"}) {
    for (std::string& word : split_list(pack.text("lists", list))) words.push_back(std::move(word));
  }
  return words;
}

void check_fact_lists(const task::TaskEntry& entry, const task::TaskContext& context) {
  const text::PromptPack& pack = *context.pack;
  if (pack.closed_vocabulary()) return;
  const std::pair<const char*, std::int64_t> needed[] = {
      {"persons", kFactPersons + 1}, {"places", kFactPlaces}, {"objects", kFactObjects + 1}};
  for (const auto& [list, count] : needed) {
    const auto n = static_cast<std::int64_t>(split_list(pack.text("lists", list)).size());
    if (n < count) {
      throw ConfigError(
          fmt::format("{}: pack '{}' lists {} {}, but {} are needed", entry.name, pack.name(), n, list, count));
    }
  }
}

std::unique_ptr<task::Task> make_facts(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                       const task::TaskContext& context) {
  FactsOptions options;
  bind_options(options, source);
  check_fact_lists(entry, context);
  const HaystackKind kind = task::resolve_haystack(context.haystack, HaystackKind::kProse);
  auto haystack = std::make_unique<task::TextHaystack>(context, kind, variant, fact_words(*context.pack));
  task::TaskFrame frame{std::string(entry.name),    entry.version,           variant,
                        canonical_options(options), haystack->fingerprint(), context};
  return std::make_unique<FactsTask>(std::move(frame), options, std::move(haystack));
}

std::vector<OptionDescription> describe_facts() {
  return describe_options(FactsOptions{});
}

}  // namespace

task::TaskEntry entries::facts_entry() {
  return {"facts",
          kFactsVersion,
          "facts",
          "Notes on who went where and took what, spread over a story; where is someone or something?",
          "BABILong (Kuratov et al. 2024)",
          false,
          &describe_facts,
          &make_facts};
}

}  // namespace fathom::tasks
