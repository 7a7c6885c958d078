#include "harness/analysis/kept_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/error.h"

namespace fathom::analysis {
namespace {

constexpr std::pair<Censoring, std::string_view> kKindNames[] = {
    {Censoring::kExact, "exact"}, {Censoring::kNone, "none"}, {Censoring::kLeft, "left"}, {Censoring::kRight, "right"}};

std::string kind_name(Censoring kind) {
  for (const auto& [value, name] : kKindNames) {
    if (value == kind) return std::string(name);
  }
  throw InvariantError("unknown Censoring");
}

Censoring parse_kind(const std::string& text) {
  for (const auto& [value, name] : kKindNames) {
    if (name == text) return value;
  }
  throw StoreError(
      fmt::format("store: unknown kind '{}' of a kept effective context; known: exact, none, left, right", text));
}

store::KeptEffective kept_effective(const std::string& variant, const EffectiveContext& mean, bool absolute) {
  const EffectiveValue& value = absolute ? mean.absolute : mean.relative;
  const auto& low = absolute ? mean.absolute_low : mean.relative_low;
  const auto& high = absolute ? mean.absolute_high : mean.relative_high;
  store::KeptEffective out;
  out.variant = variant;
  out.rule = absolute ? "absolute" : "relative";
  out.kind = kind_name(value.kind);
  out.tokens = value.tokens;
  out.first_tested = value.first_tested;
  out.has_interval = low.has_value();
  if (low) out.low_tokens = low->tokens;
  if (high) out.high_tokens = high->tokens;
  out.average = mean.average;
  return out;
}

void add_kept_scores(const std::string& variant, const std::string& task, const std::vector<ScorePoint>& curve,
                     store::KeptRun& out) {
  for (const ScorePoint& point : curve) {
    out.scores.push_back({variant, task, point.length_tokens, point.n_values, point.mean, point.low, point.high});
  }
}

/// An end of an interval: without tokens it lies left of the first length.
EffectiveValue interval_end(const std::optional<std::int64_t>& tokens, const store::KeptEffective& kept) {
  EffectiveValue value;
  value.kind = tokens ? Censoring::kExact : Censoring::kLeft;
  value.tokens = tokens;
  value.first_tested = kept.first_tested;
  return value;
}

void restore_effective(const store::KeptEffective& kept, EffectiveContext& mean) {
  const bool absolute = kept.rule == "absolute";
  EffectiveValue& value = absolute ? mean.absolute : mean.relative;
  value.kind = parse_kind(kept.kind);
  value.tokens = kept.tokens;
  value.first_tested = kept.first_tested;
  mean.average = kept.average;
  if (!kept.has_interval) return;
  (absolute ? mean.absolute_low : mean.relative_low) = interval_end(kept.low_tokens, kept);
  (absolute ? mean.absolute_high : mean.relative_high) = interval_end(kept.high_tokens, kept);
}

}  // namespace

store::KeptRun kept_summary(const RunSummary& run) {
  store::KeptRun out;
  for (const VariantSummary& variant : run.variants) {
    const std::string& name = variant.record.name;
    for (const bool absolute : {true, false}) out.effective.push_back(kept_effective(name, variant.mean, absolute));
    add_kept_scores(name, "", variant.mean_curve, out);
    for (std::size_t t = 0; t < variant.tasks.size(); ++t) {
      add_kept_scores(name, run.tasks[t].label, variant.tasks[t].curve, out);
    }
  }
  return out;
}

void restore_kept(const store::KeptRun& kept, RunSummary& run) {
  std::set<std::int64_t> lengths(run.lengths.begin(), run.lengths.end());
  for (VariantSummary& variant : run.variants) {
    for (const store::KeptEffective& one : kept.effective) {
      if (one.variant == variant.record.name) restore_effective(one, variant.mean);
    }
    for (const store::KeptScore& one : kept.scores) {
      if (one.variant != variant.record.name) continue;
      ScorePoint point;
      point.length_tokens = one.length_tokens;
      point.n_values = one.n_values;
      point.mean = one.mean;
      point.low = one.low;
      point.high = one.high;
      if (one.low) point.estimator = Estimator::kBootstrap;
      lengths.insert(one.length_tokens);
      if (one.task.empty()) {
        variant.mean_curve.push_back(point);
        continue;
      }
      for (std::size_t t = 0; t < run.tasks.size(); ++t) {
        if (run.tasks[t].label != one.task) continue;
        variant.tasks[t].curve.push_back(point);
        run.n_values += one.n_values;
      }
    }
  }
  run.lengths.assign(lengths.begin(), lengths.end());
}

std::int64_t prune_run(const std::string& database, const std::string& run, const SummarySettings& settings) {
  SummarySettings without_misses = settings;
  without_misses.max_misses_per_cell = 0;
  const store::KeptRun kept = kept_summary(summarise_run(*store::open_reader(database), run, without_misses));
  return store::drop_samples(database, run, kept);
}

}  // namespace fathom::analysis
