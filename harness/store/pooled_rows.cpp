#include "harness/store/pooled_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace fathom::store {
namespace {

/// Orders what is pooled as reports show it; SQLite would sort every row by these texts and numbers first.
using PlaceKey = std::tuple<std::int32_t, std::int32_t, std::int64_t>;  // variant, task, length

struct ValueSum {
  std::int64_t n = 0;
  double sum = 0;

  void add(double value) {
    ++n;
    sum += value;
  }
  double mean() const { return sum / static_cast<double>(n); }
};

/// The index of a task with results that are no controls, or nothing.
std::optional<std::int32_t> task_index(const RunScope& run, const SamplePlace& place) {
  const auto found = run.task_of_id.find(place.task_id);
  if (found == run.task_of_id.end()) return std::nullopt;
  return found->second;
}

/// Runs a statement of which the only parameter is a variant and the first column a sample, for every variant of a run.
template <typename Visit>
void for_each_result(const RunScope& run, Statement& select, const Visit& visit) {
  for (const RunVariant& variant : run.variants) {
    select.bind(0, variant.variant_id);
    while (select.step()) visit(variant, run.places.of(select.integer(0)));
    select.reset();
  }
}

struct ReplySums {
  std::int64_t n_samples = 0, n_empty = 0, n_budget_hits = 0, n_tokens = 0;
  std::int64_t largest_slack = 0, n_fit_drift = 0;
};

void add_reply(const SamplePlace& place, const Statement& row, ReplySums& sums) {
  sums.largest_slack = sums.n_samples == 0 ? place.slack_tokens : std::max(sums.largest_slack, place.slack_tokens);
  ++sums.n_samples;
  sums.n_tokens += row.integer(1);
  sums.n_budget_hits += row.integer(2);
  sums.n_empty += row.integer(3);
  // The largest unit of a haystack is not stored; the mean one, prompt included, is at least as large as most.
  const bool drifts =
      place.haystack_units > 0 && place.slack_tokens > 2 * place.prompt_tokens / place.haystack_units + 8;
  sums.n_fit_drift += drifts ? 1 : 0;
}

struct ScorerNames {
  std::vector<std::string> sorted;
  std::map<std::int64_t, std::size_t> place_of_id;  ///< versions of one scorer are pooled
};

ScorerNames read_scorer_names(Database& database) {
  Statement select(database, "SELECT scorer_id, name FROM scorer ORDER BY name");
  ScorerNames out;
  while (select.step()) {
    if (out.sorted.empty() || out.sorted.back() != select.text(1)) out.sorted.emplace_back(select.text(1));
    out.place_of_id[select.integer(0)] = out.sorted.size() - 1;
  }
  return out;
}

}  // namespace

std::vector<ScoreMeanRow> read_score_means(const RunScope& run) {
  const ScorerNames scorers = read_scorer_names(run.database);
  std::map<std::tuple<std::size_t, std::int32_t, std::int32_t, std::int64_t>, ValueSum> sums;
  Statement select(run.database,
                   "SELECT r.sample_id, score.scorer_id, score.value FROM result r INDEXED BY result_by_variant CROSS "
                   "JOIN score ON score.result_id = r.result_id WHERE r.variant_id = ? AND r.status = 'ok' AND value "
                   "IS NOT NULL");
  for_each_result(run, select, [&](const RunVariant& variant, const SamplePlace& place) {
    const auto task = task_index(run, place);
    if (place.is_control || !task) return;
    const std::size_t scorer = scorers.place_of_id.at(select.integer(1));
    sums[{scorer, *task, variant.ordinal, place.length_tokens}].add(select.real(2));
  });
  std::vector<ScoreMeanRow> out;
  for (const auto& [key, sum] : sums) {
    const auto& [scorer, task, variant, length] = key;
    out.push_back({variant, task, scorers.sorted[scorer], length, sum.n, sum.mean()});
  }
  return out;
}

std::vector<ReplyRow> read_replies(const RunScope& run) {
  std::map<PlaceKey, ReplySums> sums;
  Statement select(run.database,
                   "SELECT r.sample_id, c.reply_tokens, c.budget_hit, c.reply_tokens = 0 OR trim(c.reply_text) = '' "
                   "FROM result r INDEXED BY result_by_variant CROSS JOIN completion c ON c.result_id = r.result_id "
                   "WHERE r.variant_id = ? AND r.status = 'ok'");
  for_each_result(run, select, [&](const RunVariant& variant, const SamplePlace& place) {
    const auto task = task_index(run, place);
    if (place.is_control || !task) return;
    add_reply(place, select, sums[{variant.ordinal, *task, place.length_tokens}]);
  });
  std::vector<ReplyRow> out;
  for (const auto& [key, sum] : sums) {
    const auto& [variant, task, length] = key;
    out.push_back({variant, task, length, sum.n_samples, sum.n_empty, sum.n_budget_hits,
                   static_cast<double>(sum.n_tokens) / static_cast<double>(sum.n_samples), sum.largest_slack,
                   sum.n_fit_drift});
  }
  return out;
}

std::vector<ControlRow> read_controls(const RunScope& run) {
  // Controls are few, so their scores are asked for one by one, and the rest is passed over in the index.
  std::map<std::tuple<std::int32_t, std::int32_t, std::string, std::int64_t>, ValueSum> sums;
  Statement select(run.database,
                   "SELECT sample_id, result_id FROM result INDEXED BY result_by_variant WHERE variant_id = ? AND "
                   "status = 'ok'");
  Statement& score = run.database.prepared(
      "SELECT s.control, score.value FROM result r JOIN sample s USING (sample_id) JOIN task t USING (task_id) "
      "JOIN score ON score.result_id = r.result_id JOIN scorer USING (scorer_id) "
      "WHERE r.result_id = ? AND scorer.name = t.metric AND score.value IS NOT NULL");
  for_each_result(run, select, [&](const RunVariant& variant, const SamplePlace& place) {
    const auto task = task_index(run, place);
    if (!place.is_control || !task) return;  // a task of which controls ran and nothing else has no row
    score.bind(0, select.integer(1));
    while (score.step()) {
      sums[{variant.ordinal, *task, std::string(score.text(0)), place.length_tokens}].add(score.real(1));
    }
    score.reset();
  });
  std::vector<ControlRow> out;
  for (const auto& [key, sum] : sums) {
    const auto& [variant, task, control, length] = key;
    out.push_back({variant, task, control, length, sum.n, sum.mean()});
  }
  return out;
}

std::vector<CostRow> read_costs(const RunScope& run, const std::vector<eval::VariantRecord>& variants) {
  std::map<std::pair<std::int32_t, std::int64_t>, CostRow> sums;
  Statement select(run.database,
                   "SELECT sample_id, seconds, computed_tokens, peak_rss_bytes FROM result INDEXED BY "
                   "result_by_variant WHERE variant_id = ?");
  for_each_result(run, select, [&](const RunVariant& variant, const SamplePlace& place) {
    CostRow& row = sums[{variant.ordinal, place.length_tokens}];
    ++row.n_samples;
    row.seconds += select.real(1);
    row.prompt_tokens += place.prompt_tokens;
    row.computed_tokens += select.integer(2);
    row.peak_rss_bytes = std::max(row.peak_rss_bytes, select.integer(3));
  });
  std::vector<CostRow> out;
  for (auto& [key, row] : sums) {
    row.variant = variants[static_cast<std::size_t>(key.first)].name;
    row.length_tokens = key.second;
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace fathom::store
