#include "harness/analysis/paired_bootstrap.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "harness/analysis/paired_tests.h"
#include "harness/analysis/resample.h"
#include "harness/core/error.h"

namespace fathom::analysis {
namespace {

/// After this many resamples a p that cannot come below 0.05 is given up.
constexpr std::int64_t kFirstLook = 2000;

std::vector<PairedSample> samples_in_common(const PairedLength& length) {
  std::vector<PairedSample> out;
  std::copy_if(length.samples.begin(), length.samples.end(), std::back_inserter(out),
               [](const PairedSample& sample) { return sample.n_values > 0; });
  return out;
}

std::vector<std::vector<double>> difference_rows(const std::vector<PairedSample>& samples) {
  std::vector<std::vector<double>> rows;
  rows.reserve(samples.size());
  for (const PairedSample& sample : samples) {
    rows.push_back({sample.candidate_sum - sample.baseline_sum, static_cast<double>(sample.n_values)});
  }
  return rows;
}

/// Answers that pass between right and wrong without having done so yet: half a one each way, as Agresti and Min 2005
/// add for matched pairs, so that no flip among few answers does not mean that none can be. In units of one value.
double unseen_flips(RngStream& rng) {
  // Poisson with mean 1/2 by inversion: what a resample holds of a cell with half a count.
  const auto draw = [&rng] {
    double chance = std::exp(-0.5);
    double left = rng.uniform_double();
    int n = 0;
    while (left >= chance && n < 20) {
      left -= chance;
      ++n;
      chance *= 0.5 / n;
    }
    return n;
  };
  const int won = draw();
  return won - draw();
}

/// Whether sums can be counts of right answers; scores in other units have no unit flip.
bool counts_answers(const std::vector<PairedSample>& samples) {
  return std::all_of(samples.begin(), samples.end(), [](const PairedSample& sample) {
    const auto most = static_cast<double>(sample.n_values);
    const auto is_count = [most](double sum) { return sum >= 0 && sum <= most && sum == std::floor(sum); };
    return is_count(sample.baseline_sum) && is_count(sample.candidate_sum);
  });
}

/// One task of a difference, as it is resampled.
struct ResampledTask {
  OutcomeGroups groups;
  bool counts_answers = false;
};

Interval difference_interval(const std::vector<ResampledTask>& tasks, const RngKey& key, int resamples) {
  std::vector<double> drawn(static_cast<std::size_t>(resamples), 0.0);
  std::vector<double> sums;
  std::int64_t fewest = INT64_MAX;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    RngStream rng(key.child(static_cast<std::int64_t>(t)));
    RngStream flips(key.child(static_cast<std::int64_t>(t)).child("flips"));
    fewest = std::min(fewest, tasks[t].groups.n_samples());
    for (double& value : drawn) {
      tasks[t].groups.draw_sums(rng, sums);
      const double change = tasks[t].counts_answers ? sums[0] + unseen_flips(flips) : sums[0];
      value += change / sums[1] / static_cast<double>(tasks.size());
    }
  }
  const double tail = expanded_tail(fewest);
  return {quantile(drawn, tail), quantile(drawn, 1 - tail)};
}

/// Lengths that every task has, shortest first, with the tasks' parts.
struct CommonLengths {
  std::vector<std::int64_t> lengths;
  std::vector<bool> scored;
};

CommonLengths common_lengths(const std::vector<PairedTask>& tasks) {
  std::map<std::int64_t, std::size_t> n_tasks_with;
  std::map<std::int64_t, bool> scored;
  for (const PairedTask& task : tasks) {
    for (const PairedLength& length : task) {
      ++n_tasks_with[length.length_tokens];
      const bool has_values = std::any_of(length.samples.begin(), length.samples.end(),
                                          [](const PairedSample& sample) { return sample.n_values > 0; });
      const auto found = scored.emplace(length.length_tokens, true).first;
      found->second = found->second && length.scored && has_values;
    }
  }
  CommonLengths out;
  for (const auto& [length, n_with] : n_tasks_with) {
    if (n_with < tasks.size()) continue;
    out.lengths.push_back(length);
    out.scored.push_back(scored.at(length));
  }
  return out;
}

/// Per sample: for each common length baseline sum, candidate sum, number of values.
std::vector<std::vector<double>> effective_rows(const PairedTask& task, const CommonLengths& common) {
  std::size_t n_samples = 0;
  for (const PairedLength& length : task) n_samples = std::max(n_samples, length.samples.size());
  std::vector<std::vector<double>> rows(n_samples, std::vector<double>(3 * common.lengths.size(), 0.0));
  for (const PairedLength& length : task) {
    const auto found = std::lower_bound(common.lengths.begin(), common.lengths.end(), length.length_tokens);
    if (found == common.lengths.end() || *found != length.length_tokens) continue;
    const auto column = 3 * static_cast<std::size_t>(found - common.lengths.begin());
    for (std::size_t i = 0; i < length.samples.size(); ++i) {
      rows[i][column] = length.samples[i].baseline_sum;
      rows[i][column + 1] = length.samples[i].candidate_sum;
      rows[i][column + 2] = static_cast<double>(length.samples[i].n_values);
    }
  }
  return rows;
}

/// The two settings' places on the ordered grid under both rules: 0 = left of the first length.
struct Places {
  std::size_t absolute[2] = {0, 0};
  std::size_t relative[2] = {0, 0};
};

class EffectiveComparer {
 public:
  EffectiveComparer(const std::vector<PairedTask>& tasks, const RuleSettings& rules)
      : common_(common_lengths(tasks)), rules_(rules) {
    for (const PairedTask& task : tasks) groups_.emplace_back(effective_rows(task, common_));
    actual_means_ =
        means_of([](const OutcomeGroups& task, std::size_t, std::vector<double>& sums) { task.actual_sums(sums); });
    for (double& mean : actual_means_) {
      if (std::isnan(mean)) mean = 0;  // of an unscored length
    }
  }

  bool is_empty() const { return common_.lengths.empty(); }
  std::size_t n_tasks() const { return groups_.size(); }

  BothRules actual(std::size_t setting) const { return rules_of(actual_means_, setting); }
  Places actual_places() const { return places_of(actual(0), actual(1)); }

  Places draw(std::vector<RngStream>& streams) const {
    std::vector<double> means = means_of(
        [&](const OutcomeGroups& task, std::size_t t, std::vector<double>& sums) { task.draw_sums(streams[t], sums); });
    for (std::size_t i = 0; i < means.size(); ++i) {
      // Only samples without values at this length were drawn.
      if (std::isnan(means[i])) means[i] = actual_means_[i];
    }
    return places_of(rules_of(means, 0), rules_of(means, 1));
  }

 private:
  /// [n_lengths * 2]: mean over tasks at each length, of baseline and candidate; not a number without values.
  template <typename SumsOf>
  std::vector<double> means_of(SumsOf&& sums_of) const {
    std::vector<double> means(2 * common_.lengths.size(), 0.0);
    std::vector<double> sums;
    for (std::size_t t = 0; t < groups_.size(); ++t) {
      sums_of(groups_[t], t, sums);
      for (std::size_t l = 0; l < common_.lengths.size(); ++l) {
        const double weight = 1 / (sums[3 * l + 2] * static_cast<double>(groups_.size()));
        for (std::size_t setting = 0; setting < 2; ++setting) means[2 * l + setting] += weight * sums[3 * l + setting];
      }
    }
    return means;
  }

  BothRules rules_of(const std::vector<double>& means, std::size_t setting) const {
    std::vector<LengthPoint> points;
    points.reserve(common_.lengths.size());
    for (std::size_t l = 0; l < common_.lengths.size(); ++l) {
      const double score = 100 * means[2 * l + setting];
      points.push_back({common_.lengths[l], common_.scored[l] ? std::optional<double>(score) : std::nullopt});
    }
    return effective_by_both_rules(points, rules_);
  }

  std::size_t place(const EffectiveValue& value) const {
    if (!value.tokens) return 0;
    const auto found = std::lower_bound(common_.lengths.begin(), common_.lengths.end(), *value.tokens);
    return static_cast<std::size_t>(found - common_.lengths.begin()) + 1;
  }

  Places places_of(const BothRules& baseline, const BothRules& candidate) const {
    return {{place(baseline.absolute), place(candidate.absolute)},
            {place(baseline.relative), place(candidate.relative)}};
  }

  CommonLengths common_;
  RuleSettings rules_;
  std::vector<OutcomeGroups> groups_;
  std::vector<double> actual_means_;
};

int steps_between(const std::size_t (&places)[2]) {
  return static_cast<int>(places[1]) - static_cast<int>(places[0]);
}

}  // namespace

PairedDifference paired_difference(const std::vector<const PairedLength*>& tasks, const RngKey& key, int resamples) {
  FATHOM_CHECK(!tasks.empty(), "paired_difference needs a task");
  PairedDifference out;
  std::vector<ResampledTask> groups;
  std::vector<double> flips;
  const auto n_tasks = static_cast<double>(tasks.size());
  bool resampled = resamples > 0;
  std::vector<std::vector<PairedSample>> by_task;
  // Whole weights keep the exact test within reach: least common multiple of the tasks' numbers of values.
  std::int64_t common_multiple = 1;
  for (const PairedLength* task : tasks) {
    by_task.push_back(samples_in_common(*task));
    std::int64_t n_values = 0;
    for (const PairedSample& sample : by_task.back()) n_values += sample.n_values;
    FATHOM_CHECK(n_values > 0, "paired_difference needs values in common");
    if (common_multiple < 1'000'000'000) common_multiple = std::lcm(common_multiple, n_values);
  }
  for (const std::vector<PairedSample>& samples : by_task) {
    double baseline = 0;
    double candidate = 0;
    std::int64_t n_values = 0;
    for (const PairedSample& sample : samples) {
      baseline += sample.baseline_sum;
      candidate += sample.candidate_sum;
      n_values += sample.n_values;
    }
    const double weight = static_cast<double>(common_multiple) / static_cast<double>(n_values);
    for (const PairedSample& sample : samples) {
      flips.push_back(weight * (sample.candidate_sum - sample.baseline_sum));
    }
    out.baseline += baseline / static_cast<double>(n_values) / n_tasks;
    out.candidate += candidate / static_cast<double>(n_values) / n_tasks;
    out.n_samples += static_cast<std::int64_t>(samples.size());
    out.n_values += n_values;
    resampled = resampled && samples.size() > 1;
    if (resampled) groups.push_back({OutcomeGroups(difference_rows(samples)), counts_answers(samples)});
  }
  out.difference = out.candidate - out.baseline;
  out.p = sign_flip_p(flips, key.child("flip"));
  if (resampled) out.interval = difference_interval(groups, key.child("bootstrap"), resamples);
  return out;
}

EffectiveChanges paired_effective_context(const std::vector<PairedTask>& tasks, const RuleSettings& rules,
                                          const RngKey& key, std::int64_t resamples) {
  EffectiveChanges out;
  if (tasks.empty()) return out;
  const EffectiveComparer comparer(tasks, rules);
  if (comparer.is_empty()) return out;
  const BothRules baseline = comparer.actual(0);
  const BothRules candidate = comparer.actual(1);
  const Places actual = comparer.actual_places();
  out.absolute = {baseline.absolute, candidate.absolute, {}, {}, steps_between(actual.absolute), 1, 0};
  out.relative = {baseline.relative,
                  candidate.relative,
                  baseline.base_score,
                  candidate.base_score,
                  steps_between(actual.relative),
                  1,
                  0};
  struct Counted {
    EffectiveChange* change;
    std::int64_t n_not_lower = 0;
    bool open = true;
  };
  Counted counted[] = {{&out.absolute, 0, out.absolute.steps < 0}, {&out.relative, 0, out.relative.steps < 0}};
  std::vector<RngStream> streams;
  for (std::size_t t = 0; t < comparer.n_tasks(); ++t) streams.emplace_back(key.child(static_cast<std::int64_t>(t)));
  for (std::int64_t b = 0; b < resamples && (counted[0].open || counted[1].open); ++b) {
    const Places drawn = comparer.draw(streams);
    const int steps[] = {steps_between(drawn.absolute), steps_between(drawn.relative)};
    for (std::size_t rule = 0; rule < 2; ++rule) {
      Counted& one = counted[rule];
      if (!one.open) continue;
      ++one.change->n_resamples;
      if (steps[rule] >= 0) ++one.n_not_lower;
      // 0.05 of the resamples or more, with room: even twice as many draws would not make this significant.
      if (one.change->n_resamples == kFirstLook && 10 * one.n_not_lower >= kFirstLook) one.open = false;
    }
  }
  for (Counted& one : counted) {
    if (one.change->n_resamples == 0) continue;
    const auto n = static_cast<double>(one.change->n_resamples);
    one.change->p = std::min(1.0, 2 * (static_cast<double>(one.n_not_lower) + 1) / (n + 1));
  }
  return out;
}

}  // namespace fathom::analysis
