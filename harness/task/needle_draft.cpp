#include "harness/task/needle_draft.h"

#include <algorithm>
#include <utility>

#include "harness/core/error.h"

namespace fathom::task {

NeedleDraft::NeedleDraft(const TaskContext& context, SampleKeyParts key, NeedlePlan plan)
    : context_(context), key_(std::move(key)), plan_(std::move(plan)) {
  std::int64_t grouped = 0;
  for (const NeedleGroup& group : plan_.groups) grouped += group.n_needles;
  FATHOM_CHECK(grouped == static_cast<std::int64_t>(plan_.needles.size()), "needle groups do not add up");
}

std::vector<bool> NeedleDraft::gold_by_rank() const {
  std::vector<bool> gold;
  for (const NeedleGroup& group : plan_.groups)
    gold.insert(gold.end(), static_cast<std::size_t>(group.n_needles), group.gold);
  return gold;
}

std::vector<Placement> NeedleDraft::place_in_ruler_order(std::vector<Placement> ascending) const {
  const std::vector<std::int64_t> order = ruler_needle_order(static_cast<std::int64_t>(ascending.size()));
  std::vector<Placement> by_rank(ascending.size());
  for (std::size_t p = 0; p < ascending.size(); ++p) by_rank[static_cast<std::size_t>(order[p])] = ascending[p];
  return by_rank;
}

// Chains interleave at random; each keeps its order.
std::vector<Placement> NeedleDraft::place_chains(const std::vector<Placement>& ascending) const {
  std::vector<std::size_t> chain_of_place;
  for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
    chain_of_place.insert(chain_of_place.end(), static_cast<std::size_t>(plan_.groups[g].n_needles), g);
  }
  sample_stream(key_, SampleStream::kOrder).shuffle(chain_of_place);
  std::vector<std::vector<Placement>> chains(plan_.groups.size());
  for (std::size_t p = 0; p < ascending.size(); ++p) chains[chain_of_place[p]].push_back(ascending[p]);
  std::vector<Placement> by_rank;
  for (const auto& chain : chains) by_rank.insert(by_rank.end(), chain.begin(), chain.end());
  return by_rank;
}

std::vector<Placement> NeedleDraft::place(const MeasuredHaystack& measured, std::int64_t n_units) const {
  if (plan_.place) return plan_.place(measured, n_units);
  const PlacementSpace space(measured, n_units);
  const RngKey place_key = stream_key(key_, SampleStream::kPlace);
  const auto n_needles = static_cast<std::int64_t>(plan_.needles.size());
  switch (plan_.rule) {
    case PlacementRule::kBalanced: {
      // One permutation a block of samples, so that every gold rank visits every stratum once a block.
      SampleKeyParts block = key_;
      block.index -= block.index % kDepthStrata;
      return place_balanced(space, {plan_.groups, key_.depth_bp, key_.index},
                            sample_stream(block, SampleStream::kOrder), RngStream(place_key));
    }
    case PlacementRule::kRulerProse: {
      const auto ascending = place_ruler_prose(space, n_needles, RngStream(place_key));
      return plan_.chains ? place_chains(ascending) : place_in_ruler_order(ascending);
    }
    case PlacementRule::kRulerUnits: {
      if (!plan_.chains) return place_in_ruler_order(place_ruler_units(n_units, n_needles, RngStream(place_key)));
      std::vector<Placement> all;
      for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
        const auto chain = place_ruler_units(n_units, plan_.groups[g].n_needles,
                                             RngStream(place_key.child(static_cast<std::int64_t>(g))));
        all.insert(all.end(), chain.begin(), chain.end());
      }
      return all;
    }
  }
  FATHOM_CHECK(false, "unknown placement rule");
}

std::optional<std::int64_t> NeedleDraft::fixed_units() const {
  switch (key_.control) {
    case Control::kNeedleOnly:
    case Control::kOracle:
    case Control::kClosedBook:
      return 0;
    case Control::kNone:
    case Control::kNoNeedle:
    case Control::kWrongKey:
      return std::nullopt;
  }
  FATHOM_CHECK(false, "unknown control");
}

// Needles that are left keep the places, or without filler the order, that they have beside the others.
NeedleDraft::Placed NeedleDraft::place_for_control(const MeasuredHaystack& measured, std::int64_t n_units) const {
  const bool filler = !fixed_units();
  const std::vector<Placement> all = place(measured, filler ? n_units : plan_.min_units);
  const std::vector<bool> gold = gold_by_rank();
  Placed placed;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (key_.control == Control::kNoNeedle && gold[rank]) continue;
    if (key_.control == Control::kOracle && !gold[rank]) continue;
    placed.ranks.push_back(rank);
  }
  if (!filler) {
    std::stable_sort(placed.ranks.begin(), placed.ranks.end(),
                     [&all](std::size_t a, std::size_t b) { return all[a].unit < all[b].unit; });
  }
  for (const std::size_t rank : placed.ranks) {
    placed.places.push_back(all[rank]);
    if (!filler) placed.places.back() = {0, std::nullopt};
  }
  return placed;
}

Sample NeedleDraft::build_closed_book() const {
  Sample sample;
  ContextText context;
  if (!plan_.closed_frame) context.text = context_.pack->text("common", "no_context");
  const PromptPositions positions = fill_prompt(sample, context_, plan_.closed_frame.value_or(plan_.frame), context);
  fill_answer(sample, context_, plan_.answer, positions.context_end_byte);
  return sample;
}

Sample NeedleDraft::build(std::int64_t n_units) const {
  if (key_.control == Control::kClosedBook) return build_closed_book();
  const HaystackCache::Entry entry = plan_.haystack(std::max(n_units, plan_.min_units), 0);
  const MeasuredHaystack& measured = *entry.measured;
  FATHOM_CHECK(measured.size() >= n_units, "the haystack ends before the units asked for");
  const Placed placed = place_for_control(measured, n_units);
  std::vector<NeedleAt> needles;
  for (std::size_t i = 0; i < placed.ranks.size(); ++i) {
    needles.push_back({plan_.needles[placed.ranks[i]], placed.places[i].unit});
  }

  Sample sample;
  const ContextText context = plan_.compose ? plan_.compose(measured, n_units, needles, placed.ranks)
                                            : join_context(measured, n_units, needles, plan_.joiner);
  const PromptPositions positions = fill_prompt(sample, context_, plan_.frame, context);
  fill_answer(sample, context_, plan_.answer, positions.context_end_byte);
  sample.haystack_units = n_units;

  const PlacementSpace space(measured, n_units);
  const std::vector<bool> gold = gold_by_rank();
  for (std::size_t i = 0; i < placed.ranks.size(); ++i) {
    NeedlePlace where;
    where.gold = gold[placed.ranks[i]];
    where.requested_depth_bp = placed.places[i].requested_depth_bp;
    where.actual_depth_bp = space.depth_bp(placed.places[i].unit);
    where.first_token = positions.span_tokens[i].first;
    where.last_token = positions.span_tokens[i].second;
    sample.needles.push_back(where);
  }
  std::stable_sort(sample.needles.begin(), sample.needles.end(),
                   [](const NeedlePlace& a, const NeedlePlace& b) { return a.first_token < b.first_token; });
  return sample;
}

}  // namespace fathom::task
