#include "harness/analysis/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/analysis/comparison_cells.h"
#include "harness/analysis/comparison_pairs.h"
#include "harness/analysis/paired_tests.h"
#include "harness/analysis/run_summary.h"
#include "harness/core/text_util.h"
#include "harness/store/config_diff.h"

namespace fathom::analysis {
namespace {

/// Resamples of an effective context at most: a family that needs more is larger than any nightly one.
constexpr double kMostResamples = 200'000;

/// Scores of one task of a pair of variants, by length and sample.
struct GroupedTask {
  std::size_t task = 0;  // index into RunPairing::tasks
  PairedTask lengths;
};

bool too_many_failed(const SharedCount& counted, double max_share) {
  const std::int64_t n_failed = counted.n_failed_baseline + counted.n_failed_candidate;
  return static_cast<double>(n_failed) > max_share * static_cast<double>(n_failed + counted.n_shared);
}

std::vector<GroupedTask> group_by_sample(const VariantPairing& variant, const GateSettings& settings) {
  std::vector<GroupedTask> out;
  std::size_t begin = 0;
  while (begin < variant.rows.size()) {
    const std::size_t task = variant.rows[begin].task;
    std::size_t end = begin;
    std::map<std::int64_t, std::size_t> place_of_index;
    for (; end < variant.rows.size() && variant.rows[end].task == task; ++end) {
      place_of_index.emplace(variant.rows[end].index, 0);
    }
    std::size_t n_places = 0;
    for (auto& [index, place] : place_of_index) place = n_places++;
    GroupedTask grouped{task, {}};
    for (std::size_t i = begin; i < end; ++i) {
      const PairedRow& row = variant.rows[i];
      if (grouped.lengths.empty() || grouped.lengths.back().length_tokens != row.length_tokens) {
        const bool scored = !too_many_failed(variant.counts.at({task, row.length_tokens}), settings.max_failed_share);
        grouped.lengths.push_back({row.length_tokens, std::vector<PairedSample>(n_places), scored});
      }
      PairedSample& sample = grouped.lengths.back().samples[place_of_index.at(row.index)];
      sample.baseline_sum += row.baseline;
      sample.candidate_sum += row.candidate;
      ++sample.n_values;
    }
    out.push_back(std::move(grouped));
    begin = end;
  }
  return out;
}

const PairedLength* length_of(const GroupedTask& task, std::int64_t length_tokens) {
  for (const PairedLength& length : task.lengths) {
    if (length.length_tokens == length_tokens) return &length;
  }
  return nullptr;
}

/// Builds the family of one pair of variants.
class UnitBuilder {
 public:
  UnitBuilder(const RunPairing& runs, const GateSettings& settings, const eval::VariantRecord& baseline,
              std::size_t pair)
      : runs_(runs),
        settings_(settings),
        baseline_(baseline),
        pair_(pair),
        tasks_(group_by_sample(runs.variants[pair], settings)),
        key_(RngKey("fathom/1|compare").child(runs.variants[pair].pair.name)) {}

  void add_scores(std::vector<GateUnit>& units) const {
    std::set<std::int64_t> lengths;
    for (const GroupedTask& task : tasks_) {
      for (const PairedLength& length : task.lengths) {
        lengths.insert(length.length_tokens);
        const std::string& label = runs_.tasks[task.task].label;
        add_unit(UnitKind::kTaskLength, label, length.length_tokens, {&length}, units);
      }
    }
    if (tasks_.size() < 2) return;  // the mean over one task is that task
    for (const std::int64_t length_tokens : lengths) {
      std::vector<const PairedLength*> parts;
      for (const GroupedTask& task : tasks_) {
        if (const PairedLength* length = length_of(task, length_tokens)) parts.push_back(length);
      }
      if (parts.size() == tasks_.size()) add_unit(UnitKind::kMeanLength, "", length_tokens, parts, units);
    }
  }

  /// \param resamples  enough for the smallest p that Holm's first step asks for
  void add_effective(std::int64_t resamples, std::vector<GateUnit>& units) const {
    if (tasks_.empty()) return;
    RuleSettings rules;
    rules.absolute_threshold = settings_.absolute_threshold;
    std::vector<PairedTask> tasks;
    std::map<std::int64_t, std::size_t> n_tasks_with;
    for (const GroupedTask& task : tasks_) {
      tasks.push_back(task.lengths);
      rules.blind_guess += runs_.tasks[task.task].blind_guess / static_cast<double>(tasks_.size());
      for (const PairedLength& length : task.lengths) ++n_tasks_with[length.length_tokens];
    }
    std::vector<std::int64_t> tested;
    for (const auto& [length, n_with] : n_tasks_with) {
      if (n_with == tasks_.size()) tested.push_back(length);
    }
    rules.base_lengths = base_lengths_of(tested, baseline_, settings_.base_lengths);
    const EffectiveChanges changes = paired_effective_context(tasks, rules, key_.child("effective"), resamples);
    add_effective_unit(UnitKind::kEffectiveAbsolute, changes.absolute, units);
    add_effective_unit(UnitKind::kEffectiveRelative, changes.relative, units);
  }

 private:
  void add_unit(UnitKind kind, const std::string& task, std::int64_t length_tokens,
                const std::vector<const PairedLength*>& parts, std::vector<GateUnit>& units) const {
    GateUnit unit;
    unit.kind = kind;
    unit.pair = pair_;
    unit.task = task;
    unit.length_tokens = length_tokens;
    const RngKey key = key_.child(to_string(kind)).child(task).child(length_tokens);
    unit.scores = paired_difference(parts, key, settings_.resamples);
    unit.p = unit.scores.p;
    units.push_back(std::move(unit));
  }

  void add_effective_unit(UnitKind kind, const EffectiveChange& change, std::vector<GateUnit>& units) const {
    if (change.baseline.kind == Censoring::kNone) return;  // nothing could be said, so nothing can be lost
    GateUnit unit;
    unit.kind = kind;
    unit.pair = pair_;
    unit.effective = change;
    unit.p = change.p;
    units.push_back(std::move(unit));
  }

  const RunPairing& runs_;
  const GateSettings& settings_;
  const eval::VariantRecord& baseline_;
  std::size_t pair_;
  std::vector<GroupedTask> tasks_;
  RngKey key_;
};

Verdict verdict_of(const GateUnit& unit, const GateSettings& settings) {
  const bool significant = unit.p_adjusted < settings.alpha;
  if (unit.is_effective()) {
    if (unit.effective.steps > 0) return Verdict::kBetter;
    if (unit.effective.steps == 0) return Verdict::kSame;
    return significant ? Verdict::kRegression : Verdict::kWarning;
  }
  const double drop_points = -100 * unit.scores.difference;
  // Means are sums of floating-point numbers: a drop of exactly the tolerance is not larger than it.
  const bool large = drop_points > settings.tolerance_points + 1e-9;
  if (drop_points > 0)
    return significant && large ? Verdict::kRegression : significant || large ? Verdict::kWarning : Verdict::kSame;
  return significant ? Verdict::kBetter : Verdict::kSame;
}

void judge(std::vector<GateUnit>& units, const GateSettings& settings) {
  std::vector<double> p_values;
  p_values.reserve(units.size());
  for (const GateUnit& unit : units) p_values.push_back(unit.p);
  const std::vector<double> adjusted = holm_adjust(p_values);
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i].p_adjusted = adjusted[i];
    units[i].verdict = verdict_of(units[i], settings);
  }
}

std::vector<GateUnit> test_family(const RunPairing& runs, const ComparisonSide& baseline,
                                  const GateSettings& settings) {
  std::vector<UnitBuilder> builders;
  std::vector<GateUnit> units;
  for (std::size_t v = 0; v < runs.variants.size(); ++v) {
    builders.emplace_back(runs, settings, baseline.info.variants[runs.variants[v].pair.baseline], v);
    builders.back().add_scores(units);
  }
  // The smallest p of B resamples is 2 / (B + 1); Holm's first step needs alpha / units.
  const double n_units = static_cast<double>(units.size() + 2 * builders.size());
  const double needed = settings.alpha > 0 ? std::min(4 * n_units / settings.alpha, kMostResamples) : 0;
  const std::int64_t resamples =
      settings.effective_resamples == 0 ? 0 : std::max(settings.effective_resamples, static_cast<std::int64_t>(needed));
  for (const UnitBuilder& builder : builders) builder.add_effective(resamples, units);
  judge(units, settings);
  std::stable_sort(units.begin(), units.end(), [](const GateUnit& a, const GateUnit& b) { return a.pair < b.pair; });
  return units;
}

void add_missing(const RunPairing& runs, Comparison& out) {
  if (runs.variants.empty()) out.incomplete.emplace_back("no variant is in both runs");
  if (!runs.only_baseline_variants.empty()) {
    out.incomplete.push_back("the candidate lacks " + join(runs.only_baseline_variants, ", "));
  }
  if (!runs.only_baseline_tasks.empty()) {
    out.incomplete.push_back("the candidate lacks task " + join(runs.only_baseline_tasks, ", "));
  }
  for (const VariantPairing& variant : runs.variants) {
    if (variant.n_baseline_cells_missing == 0) continue;
    out.incomplete.push_back(
        fmt::format("{}: {} cells of the baseline have no sample in common with the candidate, {} "
                    "among them",
                    variant.pair.name, variant.n_baseline_cells_missing, variant.missing_example));
  }
}

std::string count_place(const Comparison& out, const SharedCount& counted) {
  return fmt::format("{}, {} at {}", out.pairs[counted.pair].name, counted.task, counted.length_tokens);
}

void add_thin_units(Comparison& out) {
  const GateUnit* thinnest = nullptr;
  std::int64_t n_thin = 0;
  for (const GateUnit& unit : out.units) {
    if (unit.kind != UnitKind::kTaskLength || unit.scores.n_samples >= out.settings.min_samples) continue;
    ++n_thin;
    if (thinnest == nullptr || unit.scores.n_samples < thinnest->scores.n_samples) thinnest = &unit;
  }
  if (thinnest == nullptr) return;
  out.incomplete.push_back(fmt::format(
      "{} of the tasks' lengths have fewer than {} samples in common, {} at {} has {}; more samples, or a lower "
      "--min-samples",
      n_thin, out.settings.min_samples, thinnest->task, thinnest->length_tokens, thinnest->scores.n_samples));
}

void add_failures(Comparison& out) {
  for (const SharedCount& counted : out.shared) {
    if (!too_many_failed(counted, out.settings.max_failed_share)) continue;
    out.incomplete.push_back(fmt::format("{}: {} of {} samples asked in both runs failed", count_place(out, counted),
                                         counted.n_failed_baseline + counted.n_failed_candidate,
                                         counted.n_failed_baseline + counted.n_failed_candidate + counted.n_shared));
  }
}

void add_difference(const std::string& what, const std::string& before, const std::string& now,
                    std::vector<std::string>& out) {
  if (before != now) out.push_back(fmt::format("{}: {} before, {} now", what, before, now));
}

std::string shown_number(const std::optional<double>& value) {
  return value ? format_double(*value) : "auto";
}

void add_variant_differences(const VariantPair& pair, const eval::VariantRecord& before, const eval::VariantRecord& now,
                             std::vector<std::string>& out) {
  const std::string& name = pair.name;
  add_difference(name + ": model", before.model, now.model, out);
  add_difference(name + ": weights", before.weights_hash, now.weights_hash, out);
  add_difference(name + ": position", before.position, now.position, out);
  add_difference(name + ": base", shown_number(before.rope_base), shown_number(now.rope_base), out);
  add_difference(name + ": scaling", before.scaling, now.scaling, out);
  add_difference(name + ": factor", shown_number(before.factor), shown_number(now.factor), out);
  add_difference(name + ": position settings", before.position_description, now.position_description, out);
  add_difference(name + ": claimed context", std::to_string(before.claimed_context),
                 std::to_string(now.claimed_context), out);
  add_difference(name + ": dtype", before.dtype, now.dtype, out);
  add_difference(name + ": device", before.device, now.device, out);
  add_difference(name + ": kernel", before.kernel, now.kernel, out);
}

std::vector<std::string> side_differences(const ComparisonSide& baseline, const ComparisonSide& candidate,
                                          const RunPairing& runs) {
  const eval::RunRecord& before = baseline.info.run;
  const eval::RunRecord& now = candidate.info.run;
  std::vector<std::string> out;
  for (const std::string& line : store::config_differences(before.canonical_config, now.canonical_config)) {
    // The name and the page's folder say nothing about the measurement.
    if (!starts_with(line, "name: ") && !starts_with(line, "report.out: ")) out.push_back("config " + line);
  }
  add_difference("fathom", before.tool_version, now.tool_version, out);
  add_difference("source revision", before.source_revision, now.source_revision, out);
  add_difference("libraries", before.library_versions, now.library_versions, out);
  add_difference("hardware", before.hardware, now.hardware, out);
  for (const VariantPairing& variant : runs.variants) {
    add_variant_differences(variant.pair, baseline.info.variants[variant.pair.baseline],
                            candidate.info.variants[variant.pair.candidate], out);
  }
  return out;
}

}  // namespace

std::string_view to_string(UnitKind kind) {
  switch (kind) {
    case UnitKind::kTaskLength:
      return "task";
    case UnitKind::kMeanLength:
      return "mean";
    case UnitKind::kEffectiveAbsolute:
      return "effective_absolute";
    case UnitKind::kEffectiveRelative:
      return "effective_relative";
  }
  throw InvariantError("unknown UnitKind");
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSame:
      return "same";
    case Verdict::kBetter:
      return "better";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kRegression:
      return "regression";
  }
  throw InvariantError("unknown Verdict");
}

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(units.begin(), units.end(), [&](const GateUnit& unit) { return unit.verdict == verdict; }));
}

ExitCode Comparison::exit_code() const {
  if (!incomplete.empty()) return ExitCode::kIncomplete;
  return count(Verdict::kRegression) > 0 ? ExitCode::kRegression : ExitCode::kOk;
}

Comparison compare_sides(const ComparisonSide& baseline, const ComparisonSide& candidate,
                         const GateSettings& settings) {
  const RunPairing runs = pair_runs(baseline, candidate);
  Comparison out;
  out.settings = settings;
  out.baseline_database = baseline.database;
  out.candidate_database = candidate.database;
  out.baseline = baseline.info;
  out.candidate = candidate.info;
  out.only_baseline_variants = runs.only_baseline_variants;
  out.only_candidate_variants = runs.only_candidate_variants;
  for (const VariantPairing& variant : runs.variants) {
    out.pairs.push_back(variant.pair);
    for (const auto& [place, counted] : variant.counts) out.shared.push_back(counted);
  }
  out.units = test_family(runs, baseline, settings);
  add_worst_cells(runs, settings, out);
  out.differences = side_differences(baseline, candidate, runs);
  add_missing(runs, out);
  if (out.units.empty() && out.incomplete.empty()) out.incomplete.emplace_back("the runs share no scored sample");
  add_thin_units(out);
  add_failures(out);
  return out;
}

}  // namespace fathom::analysis
