#include "harness/store/retention.h"

#include "harness/analysis/history.h"
#include "harness/analysis/kept_summary.h"
#include "harness/core/error.h"
#include "harness/store/result_store.h"
#include "harness/store/sqlite.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/temp_folder.h"

namespace fathom::analysis {
namespace {

class TwoNights {
 public:
  TwoNights() {
    const auto sink = store::open_store(path());
    test::put_made_up_run(*sink, "old", test::made_up_sweep("small"));
    test::MadeUpSweep more = test::made_up_sweep("small");
    more.n_samples = 6;  // four of them shared with the old run
    test::put_made_up_run(*sink, "new", more);
  }
  std::string path() const { return folder_.file("nightly.db"); }
  std::int64_t count(const std::string& sql) const {
    return store::Database({path(), store::OpenMode::kReadOnly}).query_integer("SELECT count(*) FROM " + sql);
  }
  RunSummary summary(const std::string& run) const { return summarise_run(*store::open_reader(path()), run, {}); }

 private:
  test::TempFolder folder_;
};

}  // namespace

TEST_CASE("retention: only finished runs that are old enough and have samples", "[analysis][retention]") {
  const TwoNights nights;
  // Made-up runs started on 2025-01-02.
  CHECK(store::runs_older_than(nights.path(), 30) == std::vector<std::string>{"old", "new"});
  CHECK(store::runs_older_than(nights.path(), 365000).empty());
  prune_run(nights.path(), "old", {});
  CHECK(store::runs_older_than(nights.path(), 30) == std::vector<std::string>{"new"});
}

TEST_CASE("retention: the samples go, the summary stays, the other run is untouched", "[analysis][retention]") {
  const TwoNights nights;
  const RunSummary before = nights.summary("old");
  const RunSummary other = nights.summary("new");
  const std::int64_t n_old = nights.count("result JOIN variant USING (variant_id) WHERE run_id = 1");
  REQUIRE(n_old > 0);
  CHECK(prune_run(nights.path(), "old", {}) == n_old);
  CHECK(nights.count("result JOIN variant USING (variant_id) WHERE run_id = 1") == 0);
  CHECK(nights.count("sample WHERE sample_id NOT IN (SELECT sample_id FROM result)") == 0);
  CHECK(nights.count("prompt WHERE prompt_id NOT IN (SELECT prompt_id FROM sample)") == 0);
  CHECK(nights.count("completion WHERE result_id NOT IN (SELECT result_id FROM result)") == 0);

  const RunSummary after = nights.summary("old");
  CHECK_FALSE(after.info.pruned_at.empty());
  REQUIRE(after.variants.size() == before.variants.size());
  for (std::size_t v = 0; v < after.variants.size(); ++v) {
    CHECK(format_effective(after.variants[v].mean.absolute) == format_effective(before.variants[v].mean.absolute));
    CHECK(format_effective(after.variants[v].mean.relative) == format_effective(before.variants[v].mean.relative));
    CHECK(after.variants[v].mean.average == before.variants[v].mean.average);
    REQUIRE(after.variants[v].tasks[0].curve.size() == before.variants[v].tasks[0].curve.size());
    CHECK(after.variants[v].tasks[0].curve[0].mean == before.variants[v].tasks[0].curve[0].mean);
    CHECK(after.variants[v].tasks[0].curve[0].low == before.variants[v].tasks[0].curve[0].low);
  }
  CHECK(nights.summary("new").n_values == other.n_values);
}

TEST_CASE("retention: the history goes on over dropped samples", "[analysis][retention]") {
  const TwoNights nights;
  const auto before = run_history(*store::open_reader(nights.path()), {}, {});
  prune_run(nights.path(), "old", {});
  const auto after = run_history(*store::open_reader(nights.path()), {}, {});
  REQUIRE(after.size() == before.size());
  REQUIRE(after[0].points.size() == 2);
  CHECK(format_effective(after[0].points[0].absolute) == format_effective(before[0].points[0].absolute));
  CHECK(after[0].points[0].average == before[0].points[0].average);
}

TEST_CASE("retention: an unknown run is an error", "[analysis][retention][errors]") {
  const TwoNights nights;
  CHECK_THROWS_AS(store::drop_samples(nights.path(), "none", {}), StoreError);
}

}  // namespace fathom::analysis
