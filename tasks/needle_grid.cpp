// Needle in a haystack over length and depth (tasks specification 2.1; Kamradt 2023, "Needle In A Haystack").

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/task/haystack_choice.h"
#include "harness/task/needle_draft.h"
#include "tasks/tasks.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

using task::HaystackKind;
using task::TaskVariant;

constexpr std::int32_t kGridVersion = 1;
constexpr std::int64_t kGridTaskBudget = 48;
constexpr std::int64_t kGridLeastSentences = 4;
constexpr char kGridAnswerMark = '|';

struct GridOptions {
  std::int64_t needles = 1;

  void visit(OptionVisitor& v) {
    v.integer("needles", needles, {1, 8},
              "Needles, all asked for: the first at the requested depth, the others evenly behind it.");
  }
};

/// One fact: who keeps the key to which place on which spot.
struct GridFact {
  std::string who;
  std::string where;
  std::string spot;    // as the needle says it
  std::string answer;  // the part that is asked for
};

/// A spot of the pack's list: what the needle says, and the part behind the mark, which is the answer.
std::pair<std::string, std::string> split_spot(const std::string& spot) {
  const std::size_t mark = spot.find(kGridAnswerMark);
  if (mark == std::string::npos) return {spot, spot};
  return {spot.substr(0, mark) + spot.substr(mark + 1), spot.substr(mark + 1)};
}

struct GridPools {
  ValuePool who, where, spot;
};

/// Needles between pre and post where the reference puts them, instead of the haystack's own separator.
task::ContextText compose_grid(const task::MeasuredHaystack& haystack, std::int64_t n_units,
                               const std::vector<task::NeedleAt>& needles, const std::string& pre,
                               const std::string& post) {
  task::ContextText context;
  context.spans.resize(needles.size());
  bool behind_needle = false;
  for (std::int64_t unit = 0; unit <= n_units; ++unit) {
    for (std::size_t i = 0; i < needles.size(); ++i) {
      if (needles[i].unit != unit) continue;
      if (!context.text.empty()) context.text += pre;
      const std::size_t begin = context.text.size();
      context.text += needles[i].text;
      context.spans[i] = {begin, context.text.size()};
      behind_needle = true;
    }
    if (unit == n_units) break;
    const task::HaystackUnit& piece = haystack.units[static_cast<std::size_t>(unit)];
    if (!context.text.empty()) context.text += behind_needle ? post : piece.separator;
    context.text += piece.text;
    behind_needle = false;
  }
  return context;
}

class GridTask : public task::FittedTask {
 public:
  GridTask(task::TaskFrame task_frame, const GridOptions& options, GridPools pools,
           std::unique_ptr<task::TextHaystack> haystack)
      : FittedTask(std::move(task_frame)),
        options_(options),
        pools_(std::move(pools)),
        haystack_(std::move(haystack)) {}

  bool sweeps_depth() const override { return true; }
  std::vector<task::Control> controls() const override {
    return {task::Control::kNoNeedle, task::Control::kNeedleOnly, task::Control::kWrongKey};
  }
  task::TaskMetric metric() const override {
    return options_.needles == 1 ? task::TaskMetric::kSubspan : task::TaskMetric::kAll;
  }
  double in_text_guess(std::int64_t) const override { return 1.0; }
  double blind_guess() const override { return static_cast<double>(options_.needles) / pools_.spot.size; }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;
  std::vector<std::int32_t> probe_depths() const override { return {0, kDepthScale / 2, kDepthScale}; }

 private:
  std::string pack_text(std::string_view name) const { return frame().context.pack->text("grid", name, frame().name); }
  std::vector<GridFact> draw_facts(const task::SampleKeyParts& key) const;
  std::vector<std::string> queried_places(const task::SampleKeyParts& key, const std::vector<GridFact>& facts) const;
  task::PromptFrame prompt_frame(const std::vector<std::string>& queried) const;
  std::vector<task::Placement> place(const task::MeasuredHaystack& haystack, std::int64_t n_units,
                                     std::int32_t depth_bp) const;
  void add_candidates(task::Sample& sample, const task::SampleKeyParts& key, const task::AnswerPlan& answer) const;

  GridOptions options_;
  GridPools pools_;
  std::unique_ptr<task::TextHaystack> haystack_;
};

std::vector<GridFact> GridTask::draw_facts(const task::SampleKeyParts& key) const {
  RngStream rng = task::sample_stream(key, task::SampleStream::kFacts);
  DistinctDraws used;
  std::vector<GridFact> facts;
  for (std::int64_t i = 0; i < options_.needles; ++i) {
    GridFact fact;
    fact.who = pools_.who.draw(rng);
    fact.where = used.draw(pools_.where, rng);
    std::tie(fact.spot, fact.answer) = split_spot(used.draw(pools_.spot, rng));
    facts.push_back(std::move(fact));
  }
  return facts;
}

std::vector<std::string> GridTask::queried_places(const task::SampleKeyParts& key,
                                                  const std::vector<GridFact>& facts) const {
  std::vector<std::string> places;
  places.reserve(facts.size());
  for (const GridFact& fact : facts) places.push_back(fact.where);
  if (key.control != task::Control::kWrongKey) return places;
  DistinctDraws used;
  for (const std::string& place : places) used.add(place);
  RngStream rng(task::stream_key(key, task::SampleStream::kAux).child("wrong key"));
  for (std::string& place : places) place = used.draw(pools_.where, rng);
  return places;
}

task::PromptFrame GridTask::prompt_frame(const std::vector<std::string>& queried) const {
  const std::string suffix = queried.size() == 1 ? "" : ".many";
  text::SlotValues values = {{"where", queried.front()}, {"query", frame().context.pack->join_list(queried)}};
  values.emplace_back("question", text::PromptPack::render(pack_text("question" + suffix), values));
  task::PromptFrame parts = task::render_layout(pack_text("layout"), values,
                                                text::PromptPack::render(pack_text("answer_prefix" + suffix), values));
  parts.system = pack_text("system");
  return parts;
}

// Depths d + i (100 - d) / k, each on the nearest boundary that is free.
std::vector<task::Placement> GridTask::place(const task::MeasuredHaystack& haystack, std::int64_t n_units,
                                             std::int32_t depth_bp) const {
  const task::PlacementSpace space(haystack, n_units);
  std::vector<bool> taken(static_cast<std::size_t>(space.n_boundaries()), false);
  std::vector<task::Placement> places;
  for (std::int64_t i = 0; i < options_.needles; ++i) {
    const auto depth = static_cast<std::int32_t>(depth_bp + i * (kDepthScale - depth_bp) / options_.needles);
    const auto boundary = space.nearest(depth, taken);
    FATHOM_CHECK(boundary.has_value(), "more needles than boundaries");
    taken[static_cast<std::size_t>(*boundary)] = true;
    places.push_back({space.unit(*boundary), depth});
  }
  return places;
}

void GridTask::add_candidates(task::Sample& sample, const task::SampleKeyParts& key,
                              const task::AnswerPlan& answer) const {
  DistinctDraws used;
  for (const std::string& reference : answer.references) used.add(reference);
  ValuePool answers = pools_.spot;
  answers.draw = [this](RngStream& rng) { return split_spot(pools_.spot.draw(rng)).second; };
  RngStream aux = task::sample_stream(key, task::SampleStream::kAux);
  sample.candidates = task::make_candidates(sample, answer, {}, aux, [&]() {
    std::optional<std::vector<std::string>> fresh(std::in_place);
    while (fresh && fresh->size() < answer.references.size()) {
      if (auto value = used.try_draw(answers, aux)) {
        fresh->push_back(*std::move(value));
      } else {
        fresh.reset();
      }
    }
    return fresh;
  });
}

std::unique_ptr<task::SampleDraft> GridTask::draft(const task::SampleKeyParts& key) const {
  const std::vector<GridFact> facts = draw_facts(key);
  task::NeedlePlan plan;
  plan.frame = prompt_frame(queried_places(key, facts));
  for (const GridFact& fact : facts) {
    plan.needles.push_back(
        text::PromptPack::render(pack_text("needle"), {{"who", fact.who}, {"where", fact.where}, {"spot", fact.spot}}));
    plan.groups.push_back({1, true});
    plan.answer.references.push_back(fact.answer);
  }
  plan.min_units = std::max(kGridLeastSentences, options_.needles - 1);
  const std::int64_t stratum = key.index % task::kDepthStrata;
  const auto balanced = static_cast<std::int32_t>(stratum * kDepthScale / (task::kDepthStrata - 1));
  plan.place = [this, depth_bp = key.depth_bp.value_or(balanced)](const task::MeasuredHaystack& haystack,
                                                                  std::int64_t n_units) {
    return place(haystack, n_units, depth_bp);
  };
  plan.compose = [pre = pack_text("needle_pre"), post = pack_text("needle_post")](
                     const task::MeasuredHaystack& haystack, std::int64_t n_units,
                     const std::vector<task::NeedleAt>& needles,
                     const std::vector<std::size_t>&) { return compose_grid(haystack, n_units, needles, pre, post); };
  plan.answer.join = [pack = frame().context.pack](const std::vector<std::string>& spots) {
    return pack->join_list(spots);
  };
  plan.answer.task_budget = kGridTaskBudget;
  plan.answer.metric = metric();
  plan.haystack = [this, key](std::int64_t units, std::int64_t tokens) { return haystack_->get(key, units, tokens); };
  plan.finish = [this, key, answer = plan.answer](task::Sample& sample) { add_candidates(sample, key, answer); };
  return std::make_unique<task::NeedleDraft>(frame().context, key, std::move(plan));
}

/// Words of the answers and places, which the prose must not hold. Short words are left: they answer nothing.
std::vector<std::string> grid_words(const text::PromptPack& pack) {
  constexpr std::size_t kShortWord = 3;
  std::vector<std::string> words;
  if (pack.closed_vocabulary()) return words;
  for (const std::string& entry : split_list(pack.text("lists", "spot"))) {
    const std::string answer = split_spot(entry).second;
    if (pack.language() == "zh") {
      words.push_back(answer);
      continue;
    }
    for (const std::string& word : split(answer, ' ')) {
      if (word.size() > kShortWord) words.push_back(word);
    }
  }
  return words;
}

std::unique_ptr<task::Task> make_grid(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                      const task::TaskContext& context) {
  GridOptions options;
  bind_options(options, source);
  const bool closed = context.pack->closed_vocabulary();
  GridPools pools{closed ? invented_names(context) : list_entries(context, "who"),
                  closed ? word_keys(context) : list_entries(context, "where"), list_entries(context, "spot")};
  // The control wrong_key asks for as many other places.
  if (!pools.where.holds(2 * options.needles) || !pools.spot.holds(options.needles)) {
    throw ConfigError(fmt::format("{}: needles = {} needs {} places and {} spots, but the pack lists {:.0f} and {:.0f}",
                                  entry.name, options.needles, 2 * options.needles, options.needles, pools.where.size,
                                  pools.spot.size));
  }
  const HaystackKind kind = task::resolve_haystack(context.haystack, HaystackKind::kProse);
  auto haystack = std::make_unique<task::TextHaystack>(context, kind, variant, grid_words(*context.pack));
  task::TaskFrame frame{std::string(entry.name),    entry.version,           variant,
                        canonical_options(options), haystack->fingerprint(), context};
  return std::make_unique<GridTask>(std::move(frame), options, std::move(pools), std::move(haystack));
}

std::vector<OptionDescription> describe_grid() {
  return describe_options(GridOptions{});
}

}  // namespace

task::TaskEntry entries::grid_entry() {
  return {"grid",
          kGridVersion,
          "grid",
          "A sentence about a hidden key in prose, over length and depth.",
          "Needle In A Haystack (Kamradt 2023)",
          false,
          &describe_grid,
          &make_grid};
}

}  // namespace fathom::tasks
