// Prompts out, predictions of another engine in: `generate` and `score`.

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "harness/core/text_util.h"
#include "harness/store/sqlite.h"
#include "tests/support/catch.h"
#include "tests/support/process.h"

using fathom::test::contains;
using fathom::test::ProcessResult;
using fathom::test::Workspace;
using nlohmann::json;

namespace {

const std::string kConfig =
    "name = outside\n[train]\ncontext = 64\nmax_steps = 2\nd_model = 32\nheads = 2\nlayers = 1\n"
    "[sweep]\ntasks = niah_single_2, niah_multiquery\nlengths = 64, 96\ndepths = 0, 50, 100\nsamples = 2\n";

std::vector<json> json_lines(const std::string& text) {
  std::vector<json> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(json::parse(line));
  return out;
}

/// A workspace with generated prompts.
struct Prompts {
  Workspace work;
  std::vector<json> lines;

  explicit Prompts(const std::string& config = kConfig) {
    work.write("outside.ini", config);
    const ProcessResult generated = work.run({"generate", "outside.ini", "--out", "prompts.jsonl", "--quiet"});
    INFO(generated.err);
    REQUIRE(generated.exit_code == 0);
    lines = json_lines(work.read("prompts.jsonl"));
    REQUIRE_FALSE(lines.empty());
  }

  std::string right_answer(const json& line) const {
    return fathom::join(line.at("outputs").get<std::vector<std::string>>(), " ");
  }
  std::string answers_but(std::size_t left_out) const {
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i != left_out) text += json{{"key", lines[i].at("key")}, {"pred", right_answer(lines[i])}}.dump() + "\n";
    }
    return text;
  }
  ProcessResult score(const std::string& predictions) const {
    work.write("engine.jsonl", predictions);
    return work.run({"score", "prompts.jsonl", "engine.jsonl", "--db", "outside.db", "--quiet"});
  }
  void refused(const std::string& predictions, const std::string& part) const {
    const ProcessResult result = score(predictions);
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, part));
  }
};

json report_of(const Workspace& work) {
  const ProcessResult report = work.run({"report", "--db", "outside.db", "--format", "json"});
  INFO(report.err);
  REQUIRE(report.exit_code == 0);
  return json::parse(report.out).at("runs").at(0);
}

}  // namespace

TEST_CASE("generate: lines have RULER's fields, exact lengths and unique keys", "[cli][exchange]") {
  const Prompts prompts;
  // niah_single_2 sweeps depth: 2 lengths x 2 samples x 3 depths; niah_multiquery does not: 2 x 2.
  REQUIRE(prompts.lines.size() == 16);
  std::set<std::string> keys;
  for (std::size_t i = 0; i < prompts.lines.size(); ++i) {
    const json& line = prompts.lines[i];
    INFO(line.dump());
    CHECK(line.at("index") == i);
    CHECK(keys.insert(line.at("key").get<std::string>()).second);
    CHECK(line.at("variant") == "balanced");
    const json& own = line.at("fathom");
    CHECK(own.at("prompt_tokens").get<int>() + line.at("max_new_tokens").get<int>() ==
          line.at("length_w_model_temp").get<int>());
    CHECK(line.at("length_w_model_temp").get<int>() <= line.at("length").get<int>());
    CHECK(line.at("token_position_answer").size() == line.at("outputs").size());
    if (line.at("task") == "niah_single_2") {
      const double depth = line.at("depth").get<double>();
      CHECK((depth == 0 || depth == 50 || depth == 100));
      CHECK(contains(line.at("input").get<std::string>(), line.at("outputs").at(0).get<std::string>()));
    } else {
      CHECK(line.at("depth").is_null());
    }
    CHECK(own.contains("head") == (i == 0));
    CHECK_FALSE(line.contains("input_ids"));
  }
  const std::string first = prompts.work.read("prompts.jsonl");
  REQUIRE(prompts.work.run({"generate", "outside.ini", "--out", "again.jsonl", "--quiet", "--ids"}).exit_code == 0);
  const std::vector<json> again = json_lines(prompts.work.read("again.jsonl"));
  REQUIRE(again.size() == prompts.lines.size());
  for (std::size_t i = 0; i < again.size(); ++i) {
    CHECK(again[i].at("key") == prompts.lines[i].at("key"));
    CHECK(again[i].at("input") == prompts.lines[i].at("input"));
    CHECK(again[i].at("input_ids").size() == again[i].at("fathom").at("prompt_tokens").get<std::size_t>());
  }
}

TEST_CASE("score: right answers are 1, and a missing one is counted, never scored 0", "[cli][exchange]") {
  const Prompts prompts;
  const ProcessResult whole = prompts.score(prompts.answers_but(1000));
  INFO(whole.err);
  CHECK(whole.exit_code == 0);
  CHECK(contains(whole.out, "16 of 16 prompts scored as variant 'engine' of run 'outside'"));
  const json variant = report_of(prompts.work).at("variants").at(0);
  CHECK(variant.at("model") == "rope");
  CHECK(variant.at("position") == "external");
  CHECK(variant.at("claimed") == 64);
  for (const json& cell : variant.at("cells")) CHECK(cell.at("mean") == 1);

  // Of another run, so that the row of before is not replaced: one of 16 missing is more than 1 %.
  prompts.work.write("engine.jsonl", prompts.answers_but(3));
  const ProcessResult partly = prompts.work.run(
      {"score", "prompts.jsonl", "engine.jsonl", "--db", "outside.db", "--run", "partly", "--variant", "half"});
  INFO(partly.err);
  CHECK(partly.exit_code == 5);
  CHECK(contains(partly.err, "1 of 16 prompts have no prediction and 0 failed"));
  CHECK(contains(partly.out, "15 of 16"));
  const json half = report_of(prompts.work);
  CHECK(half.at("name") == "partly");
  for (const json& cell : half.at("variants").at(0).at("cells"))
    CHECK((cell.at("mean").is_null() || cell.at("mean") == 1));
}

TEST_CASE("score: by index, null for a failure, and other fields ignored", "[cli][exchange]") {
  const Prompts prompts;
  std::string text;
  for (const json& line : prompts.lines) {
    json prediction{{"index", line.at("index")}, {"pred", prompts.right_answer(line)}, {"others", {{"id", 1}}}};
    if (line.at("index") == 2) prediction["pred"] = nullptr;
    text += prediction.dump() + "\r\n\n";
  }
  const ProcessResult result = prompts.score(text);
  INFO(result.err);
  CHECK(result.exit_code == 5);
  CHECK(contains(result.err, "0 of 16 prompts have no prediction and 1 failed"));
}

TEST_CASE("score: what is wrong with predictions is said with file and line", "[cli][exchange][errors]") {
  const Prompts prompts;
  const std::string key = prompts.lines[0].at("key").get<std::string>();
  const std::string good = json{{"key", key}, {"pred", "x"}}.dump() + "\n";
  prompts.refused(good + "{\"key\": \n", "engine.jsonl:2: not JSON");
  prompts.refused("\n[1]\n", "engine.jsonl:2: a JSON object is expected");
  prompts.refused(good + "{\"key\": \"abc\", \"pred\": \"x\"}\n",
                  "engine.jsonl:2: key 'abc' is that of none of the 16");
  prompts.refused(good + "\n" + good, "engine.jsonl:3: a second prediction of '" + key + "'; the first is in line 1");
  prompts.refused("{\"key\": \"" + key + "\"}\n", "engine.jsonl:1: \"pred\" is missing");
  prompts.refused("{\"key\": \"" + key + "\", \"pred\": 3}\n", "\"pred\" must be a string");
  prompts.refused("{\"pred\": \"x\"}\n", "neither \"key\" nor \"index\"");
  prompts.refused("{\"index\": 16, \"pred\": \"x\"}\n", "index 16 is that of none");
  const std::string prompt =
      prompts.lines[0].at("input").get<std::string>() + prompts.lines[0].at("answer_prefix").get<std::string>();
  prompts.refused(json{{"key", key}, {"pred", prompt + " v1"}}.dump(),
                  "engine.jsonl:1: the prediction repeats its prompt");
  const ProcessResult nowhere = prompts.work.run({"score", "prompts.jsonl", "nowhere.jsonl"});
  CHECK(nowhere.exit_code == 1);
  CHECK(contains(nowhere.err, "nowhere.jsonl"));
}

TEST_CASE("score: what is wrong with the file of prompts is said with its line", "[cli][exchange][errors]") {
  const Prompts prompts;
  const std::string text = prompts.work.read("prompts.jsonl");
  prompts.work.write("engine.jsonl", "");
  const auto refused = [&](const std::string& changed, const std::string& part) {
    prompts.work.write("changed.jsonl", changed);
    const ProcessResult result = prompts.work.run({"score", "changed.jsonl", "engine.jsonl", "--db", "x.db"});
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK(contains(result.err, part));
  };
  refused("", "changed.jsonl: no prompts");
  refused(text + text, "changed.jsonl:17: the prompt of line 1 a second time");
  refused(text.substr(text.find('\n') + 1), "changed.jsonl:1: the first line does not describe the file");
  refused(text + "{\"index\": 16}\n", "changed.jsonl:17: not a line of 'fathom generate'");
  refused(text.substr(0, text.size() / 2), "not JSON");
  // Two files in one: the index no longer tells which prompt is meant.
  json extra = prompts.lines[1];
  extra["key"] = "another";
  prompts.work.write("two.jsonl", text + extra.dump() + "\n");
  prompts.work.write("engine.jsonl", "{\"index\": 1, \"pred\": \"x\"}\n");
  const ProcessResult two = prompts.work.run({"score", "two.jsonl", "engine.jsonl", "--db", "x.db"});
  CHECK(two.exit_code == 1);
  CHECK(contains(two.err, "index 1 stands for 2 prompts; give \"key\" instead"));
}

TEST_CASE("generate: what it cannot write is refused", "[cli][exchange][errors]") {
  const Workspace work;
  work.write("outside.ini", kConfig);
  const auto refused = [&](std::vector<std::string> arguments, int exit_code, const std::string& part) {
    arguments.insert(arguments.begin(), {"generate", "outside.ini"});
    const ProcessResult result = work.run(arguments);
    INFO(result.err);
    CHECK(result.exit_code == exit_code);
    CHECK(contains(result.err, part));
  };
  refused({}, 2, "--out FILE is missing");
  refused({"--out", "p.jsonl", "--set", "sweep.tasks=ppl"}, 2, "ppl scores the probabilities of a text");
  refused({"--out", "/proc/nothing/p.jsonl"}, 1, "/proc/nothing/p.jsonl");
  // The closed vocabulary has too few keys for such a length.
  refused({"--out", "p.jsonl", "--set", "sweep.tasks=niah_multikey_2", "--set", "sweep.lengths=64K"}, 1,
          "no prompt can be built: niah_multikey_2: length 65536 is too long");
  refused({"--out", "p.jsonl", "--set", "train.contxt=3"}, 2, "did you mean 'train.context'");
  CHECK_FALSE(std::filesystem::exists(work.path("p.jsonl")));
}

TEST_CASE("score: a run's own replies, sent through files, score as in the run and stand beside it",
          "[cli][exchange]") {
  const Prompts prompts;
  const ProcessResult run = prompts.work.run({"run", "outside.ini", "--quiet", "--db", "outside.db"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  std::string predictions;
  {
    fathom::store::Database db({prompts.work.path("outside.db"), fathom::store::OpenMode::kReadOnly});
    fathom::store::Statement rows(
        db, "SELECT address, reply_text FROM sample JOIN result USING (sample_id) JOIN completion USING (result_id)");
    while (rows.step()) predictions += json{{"key", rows.text(0)}, {"pred", rows.text(1)}}.dump() + "\n";
  }
  const ProcessResult scored = prompts.score(predictions);
  INFO(scored.err);
  CHECK(scored.exit_code == 0);
  const json report = report_of(prompts.work);
  REQUIRE(report.at("variants").size() == 2);
  CHECK(report.at("variants").at(0).at("cells") == report.at("variants").at(1).at("cells"));
  fathom::store::Database db({prompts.work.path("outside.db"), fathom::store::OpenMode::kReadOnly});
  // The samples are the same rows, and every scorer that needs no model says the same of both.
  CHECK(db.query_integer("SELECT count(*) FROM sample") == 16);
  CHECK(db.query_integer("SELECT count(*) FROM result") == 32);
  CHECK(db.query_integer("SELECT count(*) FROM score a JOIN result ra ON ra.result_id = a.result_id JOIN result rb ON "
                         "rb.sample_id = ra.sample_id AND rb.result_id <> ra.result_id JOIN score b ON b.result_id = "
                         "rb.result_id AND b.scorer_id = a.scorer_id WHERE a.value IS NOT b.value") == 0);
  CHECK(db.query_integer("SELECT count(*) FROM run WHERE finished_at IS NOT NULL") == 1);
}
