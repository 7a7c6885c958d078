// The gate as a nightly job meets it: two runs, an exit code and its reason.

#include <nlohmann/json.hpp>

#include "harness/store/result_store.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_run.h"
#include "tests/support/process.h"

using fathom::test::contains;
using fathom::test::MadeUpCell;
using fathom::test::ProcessResult;
using fathom::test::Workspace;

namespace {

/// One variant, two lengths, 30 samples; the first `n_wrong` samples at 256 tokens are answered wrong.
void put_run(const std::string& path, const std::string& name, std::int64_t n_wrong) {
  const auto sink = fathom::store::open_store(path);
  sink->begin_run(fathom::test::made_up_run_record(name));
  sink->put_variant(fathom::test::made_up_variant("rope"));
  std::vector<fathom::eval::SampleRecord> rows;
  for (const std::int64_t length : {128, 256}) {
    for (std::int64_t i = 0; i < 30; ++i) {
      const double score = length == 256 && i < n_wrong ? 0.0 : 1.0;
      rows.push_back(fathom::test::made_up_sample("rope", MadeUpCell{"niah_single_2", length, 5000}, i, score));
    }
  }
  sink->put_batch(rows);
  sink->end_run();
}

}  // namespace

TEST_CASE("cli: compare exits with 0, 4 or 5 and says why", "[cli][compare]") {
  const Workspace work;
  put_run(work.path("nightly.db"), "monday", 0);
  put_run(work.path("nightly.db"), "tuesday", 1);
  put_run(work.path("nightly.db"), "wednesday", 15);

  const ProcessResult same =
      work.run({"compare", "--db", "nightly.db", "--baseline", "monday", "--candidate", "tuesday"});
  CHECK(same.exit_code == 0);
  CHECK(contains(same.out, "no regression in 4 tests"));

  // Without names: the newest run against the one before.
  const ProcessResult worse = work.run({"compare", "--db", "nightly.db"});
  CHECK(worse.exit_code == 4);
  CHECK(contains(worse.out, "baseline   'tuesday' of nightly.db"));
  CHECK(contains(worse.out, "rope: niah_single_2 at 256"));
  CHECK(contains(worse.out, "effective context (absolute)"));
  CHECK(contains(worse.out, "expected 1007919"));

  CHECK(work.run({"compare", "--db", "nightly.db", "--tolerance", "60"}).exit_code == 4);  // effective context
  CHECK(work.run({"compare", "--db", "nightly.db", "--alpha", "0"}).exit_code == 0);
  const ProcessResult few = work.run({"compare", "--db", "nightly.db", "--min-samples", "31"});
  CHECK(few.exit_code == 5);
  CHECK(contains(few.out, "fewer than 31 samples in common"));
}

TEST_CASE("cli: compare of two databases, in every form", "[cli][compare]") {
  const Workspace work;
  put_run(work.path("main.db"), "nightly", 0);
  put_run(work.path("branch.db"), "nightly", 20);
  const std::vector<std::string> command = {"compare", "--db", "main.db", "--candidate-db", "branch.db", "--format"};
  const auto in_form = [&](const std::string& form) {
    std::vector<std::string> args = command;
    args.push_back(form);
    const ProcessResult result = work.run(args);
    CHECK(result.exit_code == 4);
    return result.out;
  };
  CHECK(nlohmann::json::parse(in_form("json")).at("verdict") == "regression");
  CHECK(contains(in_form("junit"), "<failure type=\"regression\""));
  CHECK(contains(in_form("github"), "::error title=fathom compare::regression"));
  const ProcessResult file = work.run(
      {"compare", "--db", "main.db", "--candidate-db", "branch.db", "--format", "junit", "--out", "out/compare.xml"});
  CHECK(file.exit_code == 4);
  CHECK(contains(work.read("out/compare.xml"), "</testsuites>"));
}

TEST_CASE("cli: compare refuses what cannot be compared", "[cli][compare][errors]") {
  const Workspace work;
  put_run(work.path("one.db"), "monday", 0);
  const ProcessResult one = work.run({"compare", "--db", "one.db"});
  CHECK(one.exit_code == 2);
  CHECK(contains(one.err, "one.db holds 1 run; name the baseline with --baseline RUN"));
  CHECK(work.run({"compare"}).exit_code == 2);
  CHECK(work.run({"compare", "--db", "one.db", "--baseline", "monday", "--candidate", "monday"}).exit_code == 2);
  CHECK(work.run({"compare", "--db", "one.db", "--baseline", "mondey", "--candidate", "monday"}).exit_code == 1);
  CHECK(work.run({"compare", "--db", "one.db", "--tolerance", "much"}).exit_code == 2);
  CHECK(work.run({"compare", "--db", "nowhere.db"}).exit_code == 1);
}

TEST_CASE("cli: a nightly model whose scaling was switched off fails the gate with the reason",
          "[cli][compare][slow]") {
  const Workspace work;
  const std::string config = std::string(FATHOM_TEST_DIR) + "/../configs/nightly.ini";
  const auto nightly = [&](const std::string& db, const std::vector<std::string>& more) {
    std::vector<std::string> args = {
        "run",   config,          "--quiet", "--db", db, "--set", "sweep.samples=30", "--set", "sweep.depths=0:100:25",
        "--set", "report.out=out"};
    args.insert(args.end(), more.begin(), more.end());
    const ProcessResult run = work.run(args);
    INFO(run.err);
    REQUIRE(run.exit_code == 0);
  };
  nightly("good.db", {});
  nightly("again.db", {"--set", "engine.threads=1", "--set", "engine.batch_tokens=4096"});
  nightly("damaged.db", {"--set", "scaling=none"});

  const ProcessResult same = work.run({"compare", "--db", "good.db", "--candidate-db", "again.db"});
  INFO(same.out);
  CHECK(same.exit_code == 0);

  const ProcessResult worse = work.run({"compare", "--db", "good.db", "--candidate-db", "damaged.db"});
  INFO(worse.out);
  CHECK(worse.exit_code == 4);
  CHECK(contains(worse.out, "config model.scaling: yarn before, none now"));
  CHECK(contains(worse.out, "effective context (relative)"));
}
