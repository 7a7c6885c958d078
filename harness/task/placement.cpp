#include "harness/task/placement.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "harness/core/error.h"
#include "harness/core/types.h"

namespace fathom::task {
namespace {

constexpr std::int64_t kRulerDepths = 40;

std::int32_t stratum_depth_bp(std::int64_t stratum) {
  return static_cast<std::int32_t>(stratum * kDepthScale / (kDepthStrata - 1));
}

/// round(j * 11 / m), halves up, in integers.
std::int64_t gold_stratum(std::int64_t index, std::int64_t j, std::int64_t n_gold) {
  return (index + (2 * j * kDepthStrata + n_gold) / (2 * n_gold)) % kDepthStrata;
}

/// Keeps track of what is taken while needles are placed one after the other.
class BalancedPlacer {
 public:
  BalancedPlacer(const PlacementSpace& space, const BalancedRequest& request)
      : space_(space),
        request_(request),
        boundary_taken_(static_cast<std::size_t>(space.n_boundaries()), false),
        stratum_taken_(static_cast<std::size_t>(kDepthStrata), false) {}

  std::vector<Placement> run(RngStream order, RngStream place) {
    place_gold(order);
    std::vector<std::int64_t> strata(static_cast<std::size_t>(kDepthStrata));
    for (std::int64_t s = 0; s < kDepthStrata; ++s) strata[static_cast<std::size_t>(s)] = s;
    place.shuffle(strata);
    std::vector<std::vector<Placement>> groups(request_.groups.size());
    std::size_t next_gold = 0;
    for (std::size_t g = 0; g < request_.groups.size(); ++g) {
      const NeedleGroup& group = request_.groups[g];
      for (std::int64_t k = 0; k < group.n_needles; ++k) {
        if (group.gold) groups[g].push_back(gold_[next_gold++]);
      }
    }
    // Distractors come after all gold needles, whatever their order in the request.
    std::vector<Placement> all;
    for (std::size_t g = 0; g < request_.groups.size(); ++g) {
      if (!request_.groups[g].gold) groups[g] = place_distractors(request_.groups[g].n_needles, strata, place);
      all.insert(all.end(), groups[g].begin(), groups[g].end());
    }
    return all;
  }

 private:
  Placement take(std::int32_t depth_bp) {
    const auto boundary = space_.nearest(depth_bp, boundary_taken_);
    FATHOM_CHECK(boundary.has_value(), "more needles than boundaries");
    boundary_taken_[static_cast<std::size_t>(*boundary)] = true;
    return {space_.unit(*boundary), depth_bp};
  }

  void place_gold(RngStream& order) {
    std::int64_t n_gold = 0;
    for (const NeedleGroup& group : request_.groups) n_gold += group.gold ? group.n_needles : 0;
    if (request_.depth_bp) {
      FATHOM_CHECK(n_gold == 1, "a depth sweep has one gold needle");
      const std::int64_t stratum =
          (std::int64_t{2} * *request_.depth_bp * (kDepthStrata - 1) + kDepthScale) / (std::int64_t{2} * kDepthScale);
      stratum_taken_[static_cast<std::size_t>(stratum)] = true;
      gold_.push_back(take(*request_.depth_bp));
      return;
    }
    std::vector<std::int64_t> ranks(static_cast<std::size_t>(n_gold));
    for (std::int64_t j = 0; j < n_gold; ++j) ranks[static_cast<std::size_t>(j)] = j;
    order.shuffle(ranks);
    for (const std::int64_t j : ranks) {
      const std::int64_t stratum = gold_stratum(request_.index, j, n_gold);
      stratum_taken_[static_cast<std::size_t>(stratum)] = true;
      gold_.push_back(take(stratum_depth_bp(stratum)));
    }
    sort_chains();
  }

  void sort_chains() {
    auto begin = gold_.begin();
    for (const NeedleGroup& group : request_.groups) {
      if (!group.gold) continue;
      std::sort(begin, begin + group.n_needles, [](const Placement& a, const Placement& b) { return a.unit < b.unit; });
      begin += group.n_needles;
    }
  }

  std::vector<Placement> place_distractors(std::int64_t n, const std::vector<std::int64_t>& strata, RngStream& place) {
    std::vector<Placement> placed;
    for (const std::int64_t stratum : strata) {
      if (static_cast<std::int64_t>(placed.size()) == n) break;
      if (stratum_taken_[static_cast<std::size_t>(stratum)]) continue;
      stratum_taken_[static_cast<std::size_t>(stratum)] = true;
      placed.push_back(take(stratum_depth_bp(stratum)));
    }
    while (static_cast<std::int64_t>(placed.size()) < n) placed.push_back(take_any_free(place));
    std::sort(placed.begin(), placed.end(), [](const Placement& a, const Placement& b) { return a.unit < b.unit; });
    return placed;
  }

  Placement take_any_free(RngStream& place) {
    std::vector<std::size_t> free;
    for (std::size_t b = 0; b < boundary_taken_.size(); ++b) {
      if (!boundary_taken_[b]) free.push_back(b);
    }
    FATHOM_CHECK(!free.empty(), "more needles than boundaries");
    const std::size_t chosen = free[place.uniform_index(free.size())];
    boundary_taken_[chosen] = true;
    return {space_.unit(static_cast<std::int64_t>(chosen)), std::nullopt};
  }

  const PlacementSpace& space_;
  const BalancedRequest& request_;
  std::vector<bool> boundary_taken_;
  std::vector<bool> stratum_taken_;
  std::vector<Placement> gold_;
};

}  // namespace

PlacementSpace::PlacementSpace(const MeasuredHaystack& haystack, std::int64_t n_units)
    : haystack_(haystack), total_tokens_(haystack.tokens(n_units)) {
  for (std::int64_t unit = 0; unit < n_units; ++unit) {
    if (unit == 0 || haystack.units[static_cast<std::size_t>(unit)].boundary) units_.push_back(unit);
  }
  units_.push_back(n_units);
}

std::int32_t PlacementSpace::depth_bp(std::int64_t unit) const {
  if (total_tokens_ == 0) return 0;
  return static_cast<std::int32_t>((2 * haystack_.tokens(unit) * kDepthScale + total_tokens_) / (2 * total_tokens_));
}

std::optional<std::int64_t> PlacementSpace::nearest(std::int32_t depth_bp, const std::vector<bool>& taken) const {
  std::optional<std::int64_t> best;
  std::int64_t best_distance = 0;
  for (std::int64_t b = 0; b < n_boundaries(); ++b) {
    if (taken[static_cast<std::size_t>(b)]) continue;
    const std::int64_t distance = std::llabs(haystack_.tokens(unit(b)) * kDepthScale - depth_bp * total_tokens_);
    if (!best || distance < best_distance) {
      best = b;
      best_distance = distance;
    }
  }
  return best;
}

std::vector<Placement> place_balanced(const PlacementSpace& space, const BalancedRequest& request, RngStream order,
                                      RngStream place) {
  return BalancedPlacer(space, request).run(order, place);
}

std::vector<Placement> place_ruler_prose(const PlacementSpace& space, std::int64_t n, RngStream place) {
  FATHOM_CHECK(n <= kRulerDepths, "more needles than RULER has depths");
  std::vector<std::int64_t> depths;
  for (const std::uint64_t j : place.sample_without_replacement(kRulerDepths, static_cast<std::uint64_t>(n))) {
    depths.push_back(std::lround(100.0 * static_cast<double>(j) / (kRulerDepths - 1)));
  }
  std::sort(depths.begin(), depths.end());
  std::vector<Placement> placed;
  const std::int64_t n_sentences = space.n_boundaries() - 1;
  for (const std::int64_t depth : depths) {
    // In double and truncated, as the reference does it: 29 of 100 sentences gives 28.
    const double sentence = static_cast<double>(n_sentences) * (static_cast<double>(depth) / 100.0);
    placed.push_back({space.unit(static_cast<std::int64_t>(sentence)), static_cast<std::int32_t>(depth * 100)});
  }
  return placed;
}

std::vector<Placement> place_ruler_units(std::int64_t n_units, std::int64_t n, RngStream place) {
  FATHOM_CHECK(n <= n_units, "more needles than haystack units");
  std::vector<Placement> placed;
  for (const std::uint64_t unit :
       place.sample_without_replacement(static_cast<std::uint64_t>(n_units), static_cast<std::uint64_t>(n))) {
    placed.push_back({static_cast<std::int64_t>(unit), std::nullopt});
  }
  std::sort(placed.begin(), placed.end(), [](const Placement& a, const Placement& b) { return a.unit < b.unit; });
  return placed;
}

std::vector<std::int64_t> ruler_needle_order(std::int64_t n) {
  if (n == 4) return {2, 1, 3, 0};
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
  RngStream(RngKey("fathom/1|ruler-needle-order").child(n)).shuffle(order);
  return order;
}

}  // namespace fathom::task
