#include "harness/store/outcome_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::store {
namespace {

/// A result before it is put in order: a million of them are sorted by whole numbers.
struct PlacedResult {
  std::int32_t variant = 0;
  std::int32_t task = 0;
  std::size_t place = 0;  ///< number of its sample
  std::int64_t result_id = 0;
  eval::SampleStatus status = eval::SampleStatus::kOk;
  std::optional<double> value;
};

/// Which scorers give the asked value, by task_id.
std::map<std::int64_t, std::set<std::int64_t>> scorers_of_tasks(const RunScope& run, const std::string& scorer) {
  std::map<std::int64_t, std::set<std::int64_t>> out;
  Statement select(run.database,
                   "SELECT task_id, scorer_id FROM task JOIN scorer ON scorer.name = iif(?1 = '', task.metric, ?1)");
  select.bind(0, scorer);
  while (select.step()) {
    if (run.task_of_id.count(select.integer(0)) > 0) out[select.integer(0)].insert(select.integer(1));
  }
  return out;
}

class OutcomeReader {
 public:
  OutcomeReader(const RunScope& run, const std::string& scorer)
      : run_(run), scorers_of_task_(scorers_of_tasks(run, scorer)) {}

  std::vector<PlacedResult> read() {
    std::set<std::string> ids;
    for (const auto& [task, scorers] : scorers_of_task_) {
      for (const std::int64_t id : scorers) ids.insert(std::to_string(id));
    }
    // Everything else of a result stands in the index; the samples are known.
    Statement select(
        run_.database,
        fmt::format("SELECT r.sample_id, r.status, r.result_id, score.scorer_id, score.value FROM result r "
                    "INDEXED BY result_by_variant LEFT JOIN score ON score.result_id = r.result_id AND "
                    "score.scorer_id IN ({}) WHERE r.variant_id = ?",
                    join(std::vector<std::string>(ids.begin(), ids.end()), ", ")));
    for (const RunVariant& variant : run_.variants) {
      select.bind(0, variant.variant_id);
      current_result_.reset();
      while (select.step()) add(variant.ordinal, select);
      select.reset();
    }
    put_in_order();
    return std::move(results_);
  }

 private:
  void add(std::int32_t variant, const Statement& row) {
    // A result with scores of several scorers comes once for each.
    if (current_result_ != row.integer(2)) start_result(variant, row);
    if (!scorers_of_current_ || value_found_ || row.is_null(3)) return;
    if (scorers_of_current_->count(row.integer(3)) == 0) return;
    results_.back().value = row.optional_real(4);
    value_found_ = true;
  }

  void start_result(std::int32_t variant, const Statement& row) {
    current_result_ = row.integer(2);
    value_found_ = false;
    scorers_of_current_ = nullptr;
    const std::size_t number = run_.places.number(row.integer(0));
    const SamplePlace& place = run_.places.at(number);
    if (place.is_control) return;
    results_.push_back({variant, run_.task_of_id.at(place.task_id), number, *current_result_,
                        eval::parse_sample_status(row.text(1)), std::nullopt});
    const auto scorers = scorers_of_task_.find(place.task_id);
    if (scorers != scorers_of_task_.end()) scorers_of_current_ = &scorers->second;
  }

  /// By variant, task, length, depth and index; equal places (another prompt) by result.
  void put_in_order() {
    using PlaceOrder = std::tuple<std::int32_t, std::int64_t, std::optional<std::int32_t>, std::int64_t>;
    std::vector<PlaceOrder> places;
    for (std::size_t i = 0; i < run_.places.size(); ++i) {
      const SamplePlace& p = run_.places.at(i);
      const auto task = run_.task_of_id.find(p.task_id);
      places.emplace_back(task == run_.task_of_id.end() ? -1 : task->second, p.length_tokens, p.depth_bp, p.index);
    }
    std::vector<std::size_t> order(places.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
    std::vector<std::size_t> rank(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool same = i > 0 && places[order[i]] == places[order[i - 1]];
      rank[order[i]] = same ? rank[order[i - 1]] : i;
    }
    std::sort(results_.begin(), results_.end(), [&](const PlacedResult& a, const PlacedResult& b) {
      return std::make_tuple(a.variant, rank[a.place], a.result_id) <
             std::make_tuple(b.variant, rank[b.place], b.result_id);
    });
  }

  const RunScope& run_;
  std::map<std::int64_t, std::set<std::int64_t>> scorers_of_task_;
  std::vector<PlacedResult> results_;
  std::optional<std::int64_t> current_result_;
  const std::set<std::int64_t>* scorers_of_current_ = nullptr;  // of results_.back(); null: a control
  bool value_found_ = false;
};

OutcomeRow outcome_of(const PlacedResult& result, const SamplePlace& place) {
  return {result.variant, result.task,   place.length_tokens, place.depth_bp,
          place.index,    result.status, result.value,        result.result_id};
}

[[noreturn]] void throw_damaged_address(Database& database, std::int64_t sample_id) {
  throw StoreError(
      fmt::format("store: sample address '{}' is not 32 hexadecimal digits; the row is damaged",
                  database.query_text(fmt::format("SELECT address FROM sample WHERE sample_id = {}", sample_id))));
}

}  // namespace

std::vector<OutcomeRow> read_outcomes(const RunScope& run, const std::string& scorer) {
  const std::vector<PlacedResult> results = OutcomeReader(run, scorer).read();
  std::vector<OutcomeRow> out;
  out.reserve(results.size());
  for (const PlacedResult& result : results) out.push_back(outcome_of(result, run.places.at(result.place)));
  return out;
}

std::vector<PairableRow> read_pairable_rows(const RunScope& run, const std::string& scorer) {
  const std::vector<PlacedResult> results = OutcomeReader(run, scorer).read();
  std::vector<PairableRow> out;
  out.reserve(results.size());
  for (const PlacedResult& result : results) {
    const SamplePlace& place = run.places.at(result.place);
    if (!place.address) throw_damaged_address(run.database, place.sample_id);
    out.push_back({outcome_of(result, place), *place.address});
  }
  return out;
}

}  // namespace fathom::store
