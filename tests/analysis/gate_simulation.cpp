#include "tests/analysis/gate_simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "harness/core/random.h"

namespace fathom::test {
namespace {

/// With this chance a depth repeats its sample's common luck.
constexpr double kDepthsAlike = 0.5;

analysis::ComparisonSide empty_side(const GateGrid& grid, const std::string& run) {
  analysis::ComparisonSide side;
  side.info.run.name = run;
  eval::VariantRecord variant;
  variant.name = "model";
  variant.claimed_context = 1024;
  side.info.variants.push_back(variant);
  for (int t = 0; t < grid.n_tasks_with_depths + grid.n_tasks_without_depths; ++t) {
    side.tasks.push_back({fmt::format("task_{:02}", t), "balanced", 1, "all", 0.0});
  }
  return side;
}

store::PairableRow row_at(std::int32_t task, std::int64_t length, std::optional<std::int32_t> depth,
                          std::int64_t index) {
  store::PairableRow row;
  row.outcome.task = task;
  row.outcome.length_tokens = length;
  row.outcome.depth_bp = depth;
  row.outcome.index = index;
  row.address = {static_cast<std::uint64_t>(task * 100000 + length),
                 static_cast<std::uint64_t>(index * 20000 + depth.value_or(-1))};
  return row;
}

/// Uniform luck of one sample: what its depths have in common, or each depth's own.
class SampleLuck {
 public:
  explicit SampleLuck(RngStream& rng) : rng_(rng), common_(rng.uniform_double()) {}
  double draw() { return rng_.uniform_double() < kDepthsAlike ? common_ : rng_.uniform_double(); }

 private:
  RngStream& rng_;
  double common_;
};

/// Chances that an answer is lost or won between the runs, so that the accuracy falls from `before` to `now` and
/// `discordance` of the answers differ besides.
struct FlipChances {
  double lost, won;
};

FlipChances flip_chances(double before, double now, double discordance) {
  const double spare = std::min({discordance / 2, now, 1 - before});
  return {(before - now + spare) / before, before < 1 ? spare / (1 - before) : 0};
}

/// Scores of one sample of one cell group, appended to both sides.
void add_sample(const GateGrid& grid, std::int32_t task, std::size_t length, std::int64_t index, double drop,
                RngStream& rng, analysis::ComparisonSide& baseline, analysis::ComparisonSide& candidate) {
  const double before = grid.accuracies[length];
  const FlipChances flips = flip_chances(before, before - drop, grid.discordance);
  const bool sweeps_depth = task < grid.n_tasks_with_depths;
  SampleLuck outcome(rng);
  SampleLuck flip(rng);
  for (int d = 0; d < (sweeps_depth ? grid.n_depths : 1); ++d) {
    const auto depth = sweeps_depth ? std::optional<std::int32_t>(1000 * d) : std::nullopt;
    store::PairableRow row = row_at(task, std::int64_t{256} << length, depth, index);
    const bool right = outcome.draw() < before;
    const double luck = flip.draw();
    row.outcome.value = right ? 1 : 0;
    baseline.rows.push_back(row);
    row.outcome.value = right ? (luck < flips.lost ? 0 : 1) : (luck < flips.won ? 1 : 0);
    candidate.rows.push_back(row);
  }
}

void sort_rows(std::vector<store::PairableRow>& rows) {
  std::sort(rows.begin(), rows.end(), [](const store::PairableRow& a, const store::PairableRow& b) {
    return std::tie(a.outcome.task, a.outcome.length_tokens, a.outcome.depth_bp, a.outcome.index) <
           std::tie(b.outcome.task, b.outcome.length_tokens, b.outcome.depth_bp, b.outcome.index);
  });
}

/// Whether the gate of `fathom compare` finds a regression.
bool raises_alarm(const analysis::ComparisonSide& baseline, const analysis::ComparisonSide& candidate) {
  analysis::GateSettings settings;
  settings.resamples = 0;  // intervals decide nothing
  settings.n_worst_cells = 0;
  // The scores alone first. A smaller p of the effective context can only add to what Holm rejects, so an alarm that is
  // there without its 20,000 resamples is there with them.
  const std::int64_t effective_resamples = std::exchange(settings.effective_resamples, 0);
  const analysis::Comparison scores = analysis::compare_sides(baseline, candidate, settings);
  FATHOM_CHECK(scores.incomplete.empty(), "a simulated comparison is complete");
  if (scores.count(analysis::Verdict::kRegression) > 0) return true;
  const bool effective_fell = std::any_of(scores.units.begin(), scores.units.end(), [](const analysis::GateUnit& unit) {
    return unit.is_effective() && unit.effective.steps < 0;
  });
  if (!effective_fell) return false;
  settings.effective_resamples = effective_resamples;
  return analysis::compare_sides(baseline, candidate, settings).count(analysis::Verdict::kRegression) > 0;
}

}  // namespace

GateGrid nightly_grid() {
  GateGrid grid;
  grid.name = "nightly.ini";
  return grid;
}

GateGrid ruler_grid() {
  GateGrid grid;
  grid.name = "13 tasks of RULER";
  grid.n_tasks_with_depths = 8;
  grid.n_tasks_without_depths = 5;
  return grid;
}

GateSimulation simulate_gate(const GateGrid& grid, double drop, std::int64_t n_comparisons) {
  GateSimulation out;
  for (std::int64_t i = 0; i < n_comparisons; ++i) {
    RngStream rng(RngKey("gate simulation").child(grid.name).child(std::to_string(drop)).child(i));
    analysis::ComparisonSide baseline = empty_side(grid, "baseline");
    analysis::ComparisonSide candidate = empty_side(grid, "candidate");
    const std::size_t damaged = rng.uniform_index(grid.accuracies.size());
    for (std::int32_t task = 0; task < static_cast<std::int32_t>(baseline.tasks.size()); ++task) {
      for (std::size_t length = 0; length < grid.accuracies.size(); ++length) {
        for (std::int64_t index = 0; index < grid.n_samples; ++index) {
          add_sample(grid, task, length, index, length == damaged ? drop : 0, rng, baseline, candidate);
        }
      }
    }
    sort_rows(baseline.rows);
    sort_rows(candidate.rows);
    ++out.n_comparisons;
    if (raises_alarm(baseline, candidate)) ++out.n_alarms;
  }
  return out;
}

}  // namespace fathom::test
