// The bench command as a user calls it: shapes and refusals, never figures.

#include <nlohmann/json.hpp>

#include <set>

#include "tests/support/catch.h"
#include "tests/support/process.h"
#include "tests/support/shared_dir.h"

using fathom::test::contains;
using fathom::test::ProcessResult;
using fathom::test::Workspace;
using nlohmann::json;

TEST_CASE("cli: bench measures every scheme and remap beside nope", "[cli][bench]") {
  const ProcessResult result = Workspace().run({"bench", "--lengths", "64,96", "--json", "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  std::set<std::string> seen;
  for (const json& row : json::parse(result.out)) {
    if (row.at("length") != 96) continue;
    const std::string position = row.at("position"), remap = row.at("remap");
    INFO(position << " " << remap);
    CHECK(row.at("seconds").get<double>() > 0);
    CHECK((row.at("times_nope") == 1.0) == (position == "nope"));
    CHECK((row.at("extra_bytes").is_null() || row.at("extra_bytes").get<std::int64_t>() >= 0));
    CHECK(seen.insert(remap == "none" ? position : remap).second);
  }
  for (const char* name : {"nope", "rope", "alibi", "cope", "self_extend"}) CHECK(seen.count(name) == 1);
}

TEST_CASE("cli: bench refuses what it cannot measure", "[cli][bench]") {
  const auto refused = [](const std::vector<std::string>& args, const std::string& word) {
    const ProcessResult result = Workspace().run(args);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.err, word));
  };
  refused({"bench", "--positions", "rop"}, "rope");
  refused({"bench", "--lengths", "0"}, "'0'");
  refused({"bench", "--lengths", "1K"}, "'1K'");
  refused({"bench", "--dtype", "bf16"}, "MODEL");
  refused({"bench", "some_model", "--positions", "rope"}, "--set");
}

TEST_CASE("cli: bench of a checkpoint gives a row for every length and dtype", "[cli][bench]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/config.json");
  const ProcessResult result =
      Workspace().run({"bench", fathom::test::shared_path("fixtures/tiny/llama"), "--lengths", "16,32", "--dtype",
                       "float32,bf16", "--decode", "4", "--threads", "1", "--json", "--quiet"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json rows = json::parse(result.out);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].at("dtype") == "float32");
  CHECK(rows[3].at("dtype") == "bf16");
  CHECK(rows[3].at("length") == 32);
  for (const json& row : rows) {
    CHECK(row.at("threads") == 1);
    for (const char* name : {"prefill_tokens_per_second", "decode_tokens_per_second", "peak_rss_bytes"}) {
      CHECK(row.at(name).get<double>() > 0);
    }
  }
  const ProcessResult missing = Workspace().run({"bench", "no_such_model", "--lengths", "16"});
  CHECK(missing.exit_code != 0);
  CHECK(contains(missing.err, "no_such_model"));
}

TEST_CASE("cli: bench --load tells time to the first token and memory while the weights are read", "[cli][bench]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/config.json");
  const ProcessResult result = Workspace().run({"bench", fathom::test::shared_path("fixtures/tiny/llama"), "--load",
                                                "--lengths", "16,32", "--threads", "1", "--json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json rows = json::parse(result.out);
  REQUIRE(rows.size() == 2);
  for (const json& row : rows) {
    double total = 0;
    for (const char* part : {"start_seconds", "open_seconds", "load_seconds", "first_token_seconds"}) {
      CHECK(row.at(part).get<double>() >= 0);
      total += row.at(part).get<double>();
    }
    CHECK_THAT(row.at("total_seconds").get<double>(), Catch::Matchers::WithinAbs(total, 1e-9));
    CHECK(row.at("weight_bytes").get<std::int64_t>() == 123520);  // the data of its safetensors
    CHECK(row.at("peak_load_bytes").get<double>() >= row.at("rss_before_bytes").get<double>());
    CHECK(row.at("peak_rss_bytes").get<double>() >= row.at("peak_load_bytes").get<double>());
    CHECK(row.contains("load_times_weights"));
  }
  const ProcessResult both = Workspace().run({"bench", "some_model", "--load", "--decode", "4"});
  CHECK(both.exit_code == 2);
  CHECK(contains(both.err, "--decode does not go with --load"));
}
