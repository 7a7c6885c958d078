#include "harness/analysis/comparison_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "harness/core/text_util.h"

namespace fathom::analysis {
namespace {

using store::PairableRow;
using RowRange = std::pair<std::size_t, std::size_t>;  // [begin, end) into the rows of a side

std::string common_task_label(const store::TaskInfo& info) {
  return info.variant == "balanced" ? info.name : info.name + "@" + info.variant;
}

[[noreturn]] void throw_not_comparable(const ComparisonSide& baseline, const ComparisonSide& candidate,
                                       const std::string& reason) {
  throw ConfigError(fmt::format("compare: '{}' and '{}' are not comparable: {}", baseline.info.run.name,
                                candidate.info.run.name, reason));
}

void match_tasks(const ComparisonSide& baseline, const ComparisonSide& candidate, RunPairing& out) {
  std::vector<bool> found(candidate.tasks.size(), false);
  for (std::size_t b = 0; b < baseline.tasks.size(); ++b) {
    const store::TaskInfo& mine = baseline.tasks[b];
    const store::TaskInfo* same_name = nullptr;
    bool matched = false;
    for (std::size_t c = 0; c < candidate.tasks.size(); ++c) {
      const store::TaskInfo& theirs = candidate.tasks[c];
      if (theirs.name != mine.name || theirs.variant != mine.variant) continue;
      same_name = &theirs;
      if (theirs.version != mine.version || theirs.metric != mine.metric) continue;
      found[c] = true;
      matched = true;
      out.tasks.push_back(
          {common_task_label(mine), mine.blind_guess, static_cast<std::int32_t>(b), static_cast<std::int32_t>(c)});
    }
    if (matched) continue;
    if (same_name != nullptr) {
      const std::string what = same_name->version != mine.version
                                   ? fmt::format("version {} and version {}", mine.version, same_name->version)
                                   : fmt::format("metric {} and metric {}", mine.metric, same_name->metric);
      throw_not_comparable(baseline, candidate,
                           fmt::format("task {} has {}, which score different things; run the baseline again with "
                                       "this build",
                                       common_task_label(mine), what));
    }
    out.only_baseline_tasks.push_back(common_task_label(mine));
  }
  for (std::size_t c = 0; c < candidate.tasks.size(); ++c) {
    if (!found[c]) out.only_candidate_tasks.push_back(common_task_label(candidate.tasks[c]));
  }
}

using VariantRecords = std::vector<eval::VariantRecord>;

bool names_word(const eval::VariantRecord& variant, const std::string& word) {
  const std::vector<std::string> words = split(variant.name, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// A variant's name without the words that every variant of its run has and none of the other run: they are settings
/// that were changed for the whole run, as the dtype.
std::string name_within_run(const std::string& name, const VariantRecords& own, const VariantRecords& other) {
  std::vector<std::string> kept;
  for (const std::string& word : split(name, ' ')) {
    const auto has_word = [&word](const eval::VariantRecord& variant) { return names_word(variant, word); };
    const bool run_wide =
        std::all_of(own.begin(), own.end(), has_word) && std::none_of(other.begin(), other.end(), has_word);
    if (!run_wide) kept.push_back(word);
  }
  return join(kept, " ");
}

void add_renamed_pair(const VariantRecords& before, const VariantRecords& now, std::size_t b, std::size_t c,
                      RunPairing& out) {
  out.variants.push_back({{b, c, before[b].name + " -> " + now[c].name}, {}, {}, 0, {}, {}});
}

/// Takes those pairs out of the lonely ones whose names within their runs are equal, and unlike any other's.
void match_within_runs(const VariantRecords& before, const VariantRecords& now, std::vector<std::size_t>& lonely_before,
                       std::vector<std::size_t>& lonely_now, RunPairing& out) {
  std::map<std::string, std::vector<std::size_t>> before_by_key, now_by_key;
  for (const std::size_t b : lonely_before) before_by_key[name_within_run(before[b].name, before, now)].push_back(b);
  for (const std::size_t c : lonely_now) now_by_key[name_within_run(now[c].name, now, before)].push_back(c);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& [key, indices] : before_by_key) {
    const auto found = now_by_key.find(key);
    if (indices.size() != 1 || found == now_by_key.end() || found->second.size() != 1) continue;
    pairs.emplace_back(indices.front(), found->second.front());
  }
  std::sort(pairs.begin(), pairs.end());  // in the baseline's order
  for (const auto& [b, c] : pairs) {
    add_renamed_pair(before, now, b, c, out);
    lonely_before.erase(std::find(lonely_before.begin(), lonely_before.end(), b));
    lonely_now.erase(std::find(lonely_now.begin(), lonely_now.end(), c));
  }
}

void match_variants(const ComparisonSide& baseline, const ComparisonSide& candidate, RunPairing& out) {
  const auto& before = baseline.info.variants;
  const auto& now = candidate.info.variants;
  std::vector<std::size_t> lonely_baseline;
  std::vector<bool> found(now.size(), false);
  for (std::size_t b = 0; b < before.size(); ++b) {
    const auto same = std::find_if(now.begin(), now.end(), [&](const auto& v) { return v.name == before[b].name; });
    if (same == now.end()) {
      lonely_baseline.push_back(b);
      continue;
    }
    const auto c = static_cast<std::size_t>(same - now.begin());
    found[c] = true;
    out.variants.push_back({{b, c, before[b].name}, {}, {}, 0, {}, {}});
  }
  std::vector<std::size_t> lonely_candidate;
  for (std::size_t c = 0; c < now.size(); ++c) {
    if (!found[c]) lonely_candidate.push_back(c);
  }
  match_within_runs(before, now, lonely_baseline, lonely_candidate, out);
  if (lonely_baseline.size() == 1 && lonely_candidate.size() == 1) {
    // The names spell out settings that were changed on purpose; there is no doubt what belongs together.
    add_renamed_pair(before, now, lonely_baseline.front(), lonely_candidate.front(), out);
    return;
  }
  for (const std::size_t b : lonely_baseline) out.only_baseline_variants.push_back(before[b].name);
  for (const std::size_t c : lonely_candidate) out.only_candidate_variants.push_back(now[c].name);
}

RowRange rows_of(const std::vector<PairableRow>& rows, std::size_t variant, std::int32_t task) {
  const auto place = [](const PairableRow& row) { return std::make_pair(row.outcome.variant, row.outcome.task); };
  const auto wanted = std::make_pair(static_cast<std::int32_t>(variant), task);
  const auto begin =
      std::partition_point(rows.begin(), rows.end(), [&](const PairableRow& row) { return place(row) < wanted; });
  const auto end =
      std::partition_point(begin, rows.end(), [&](const PairableRow& row) { return place(row) == wanted; });
  return {static_cast<std::size_t>(begin - rows.begin()), static_cast<std::size_t>(end - rows.begin())};
}

auto place_in_task(const PairableRow& row) {
  return std::make_tuple(row.outcome.length_tokens, row.outcome.depth_bp, row.outcome.index);
}

bool has_score(const store::OutcomeRow& row) {
  return row.status == eval::SampleStatus::kOk && row.value.has_value();
}

bool is_unfit(const store::OutcomeRow& row) {
  return row.status == eval::SampleStatus::kTooShort || row.status == eval::SampleStatus::kTooLong;
}

/// Joins the rows of one task of one pair of variants; both sides come in the same order.
class TaskJoiner {
 public:
  TaskJoiner(const ComparisonSide& baseline, const ComparisonSide& candidate, const RunPairing& runs,
             VariantPairing& out)
      : baseline_(baseline.rows), candidate_(candidate.rows), runs_(runs), out_(out) {}

  void join(std::size_t task, RowRange before, RowRange now) {
    task_ = task;
    std::size_t b = before.first;
    std::size_t c = now.first;
    while (b < before.second || c < now.second) {
      const bool baseline_left = b < before.second;
      const bool candidate_left = c < now.second;
      if (baseline_left && (!candidate_left || place_in_task(baseline_[b]) < place_in_task(candidate_[c]))) {
        start_cell(baseline_[b].outcome);
        ++count(baseline_[b].outcome).n_only_baseline;
        ++b;
      } else if (candidate_left && (!baseline_left || place_in_task(candidate_[c]) < place_in_task(baseline_[b]))) {
        ++count(candidate_[c].outcome).n_only_candidate;
        ++c;
      } else {
        join_place(b, before.second, c, now.second);
      }
    }
    end_cell();
  }

 private:
  /// All rows at one place of the sweep: normally one of each side.
  void join_place(std::size_t& b, std::size_t b_end, std::size_t& c, std::size_t c_end) {
    const auto place = place_in_task(baseline_[b]);
    std::size_t b_last = b;
    while (b_last < b_end && place_in_task(baseline_[b_last]) == place) ++b_last;
    std::size_t c_last = c;
    while (c_last < c_end && place_in_task(candidate_[c_last]) == place) ++c_last;
    start_cell(baseline_[b].outcome);
    for (std::size_t i = b; i < b_last; ++i) {
      std::size_t k = c;
      while (k < c_last && candidate_[k].address != baseline_[i].address) ++k;
      if (k < c_last) {
        add_pair(baseline_[i], candidate_[k]);
      } else {
        ++count(baseline_[i].outcome).n_other_question;
        if (!out_.other_question)
          out_.other_question = {baseline_[i].outcome.result_id, candidate_[c].outcome.result_id};
      }
    }
    b = b_last;
    c = c_last;
  }

  void add_pair(const PairableRow& before, const PairableRow& now) {
    SharedCount& counted = count(before.outcome);
    cell_has_common_ = true;
    if (is_unfit(before.outcome) && is_unfit(now.outcome)) {
      ++counted.n_unfit;
    } else if (!has_score(before.outcome)) {
      ++counted.n_failed_baseline;
    } else if (!has_score(now.outcome)) {
      ++counted.n_failed_candidate;
    } else {
      ++counted.n_shared;
      out_.rows.push_back({task_, before.outcome.length_tokens, before.outcome.depth_bp, before.outcome.index,
                           *before.outcome.value, *now.outcome.value, before.outcome.result_id, now.outcome.result_id});
    }
  }

  SharedCount& count(const store::OutcomeRow& row) {
    SharedCount& counted = out_.counts[{task_, row.length_tokens}];
    counted.task = runs_.tasks[task_].label;
    counted.length_tokens = row.length_tokens;
    return counted;
  }

  void start_cell(const store::OutcomeRow& row) {
    const auto cell = std::make_pair(row.length_tokens, row.depth_bp);
    if (cell_ == cell) return;
    end_cell();
    cell_ = cell;
  }

  void end_cell() {
    if (cell_ && !cell_has_common_) {
      ++out_.n_baseline_cells_missing;
      if (out_.missing_example.empty()) {
        out_.missing_example = fmt::format("{} at {}", runs_.tasks[task_].label, cell_->first);
      }
    }
    cell_.reset();
    cell_has_common_ = false;
  }

  const std::vector<PairableRow>& baseline_;
  const std::vector<PairableRow>& candidate_;
  const RunPairing& runs_;
  VariantPairing& out_;
  std::size_t task_ = 0;
  std::optional<std::pair<std::int64_t, std::optional<std::int32_t>>> cell_;
  bool cell_has_common_ = false;
};

}  // namespace

RunPairing pair_runs(const ComparisonSide& baseline, const ComparisonSide& candidate) {
  if (baseline.info.run.seed != candidate.info.run.seed) {
    throw_not_comparable(baseline, candidate,
                         fmt::format("their samples have seed {} and seed {}; run both with the same seed",
                                     baseline.info.run.seed, candidate.info.run.seed));
  }
  RunPairing out;
  match_tasks(baseline, candidate, out);
  match_variants(baseline, candidate, out);
  for (std::size_t v = 0; v < out.variants.size(); ++v) {
    VariantPairing& variant = out.variants[v];
    TaskJoiner joiner(baseline, candidate, out, variant);
    for (std::size_t t = 0; t < out.tasks.size(); ++t) {
      joiner.join(t, rows_of(baseline.rows, variant.pair.baseline, out.tasks[t].baseline),
                  rows_of(candidate.rows, variant.pair.candidate, out.tasks[t].candidate));
    }
    for (auto& [place, counted] : variant.counts) counted.pair = v;
  }
  return out;
}

}  // namespace fathom::analysis
