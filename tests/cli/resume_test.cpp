// kill -9 at any instant loses at most the batch in flight, and the final rows equal those of an undisturbed run.

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/process.h"

using fathom::test::contains;
using fathom::test::ProcessResult;
using fathom::test::Workspace;

namespace {

const std::string kRun =
    "name = resume\n[model]\nscaling = none, yarn\n"
    "[train]\ncontext = 64\nmax_steps = 60\nd_model = 64\nheads = 2\n"
    "[sweep]\ntasks = niah_single_2, niah_multikey_1\nlengths = 1x, 2x, 4x\ndepths = 0:100:20\nsamples = 20\n"
    "[engine]\nbatch_tokens = 2048\n";

std::string final_report(const Workspace& work) {
  const ProcessResult report = work.run({"report", "--db", "resume.db", "--format", "json", "--no-timings"});
  INFO(report.err);
  REQUIRE(report.exit_code == 0);
  return report.out;
}

/// Starts the run, kills it after the pause; false if it had already ended.
bool kill_after(const Workspace& work, std::chrono::milliseconds pause, int signal_number) {
  const pid_t child = work.start({"run", "resume.ini"});
  std::this_thread::sleep_for(pause);
  kill(child, signal_number);
  const ProcessResult result = work.wait(child);
  return result.exit_code != 0;
}

}  // namespace

TEST_CASE("cli: a run killed again and again ends with the rows of an undisturbed one", "[cli][resume][slow]") {
  const Workspace undisturbed;
  undisturbed.write("resume.ini", kRun);
  const ProcessResult whole = undisturbed.run({"run", "resume.ini"});
  INFO(whole.err);
  REQUIRE(whole.exit_code == 0);

  const Workspace disturbed;
  disturbed.write("resume.ini", kRun);
  int kills = 0;
  for (int pause_ms = 400; pause_ms < 60000 && kill_after(disturbed, std::chrono::milliseconds(pause_ms), SIGKILL);
       pause_ms = pause_ms * 5 / 4) {
    ++kills;
  }
  CHECK(kills >= 3);
  CHECK(final_report(disturbed) == final_report(undisturbed));

  const ProcessResult again = disturbed.run({"run", "resume.ini"});
  CHECK(again.exit_code == 0);
  CHECK(contains(again.err, "were there already"));
}

TEST_CASE("cli: two variants that resolve to equal settings at a length both get their rows", "[cli][resume]") {
  const Workspace work;
  // At the trained length the factor of `base` is 1: the same frequencies as `none`.
  work.write(
      "twins.ini",
      "name = resume\n[model]\nscaling = none, base\n[train]\ncontext = 64\nmax_steps = 2\nd_model = 32\nheads = "
      "2\nlayers = 1\n[sweep]\ntasks = niah_single_2\nlengths = 1x\ndepths = 0, 100\nsamples = 2\n");
  const ProcessResult run = work.run({"run", "twins.ini", "--quiet", "--db", "resume.db"});
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  const nlohmann::json report = nlohmann::json::parse(final_report(work));
  REQUIRE(report.at("runs").at(0).at("variants").size() == 2);
  for (const nlohmann::json& variant : report.at("runs").at(0).at("variants")) {
    std::int64_t n = 0;
    for (const nlohmann::json& cell : variant.at("cells"))
      n += cell.at("depth").is_null() ? 0 : cell.at("n").get<int>();
    CHECK(n == 4);
  }
}

TEST_CASE("cli: equal runs give byte-identical reports", "[cli][resume]") {
  std::vector<std::string> reports;
  for (int i = 0; i < 2; ++i) {
    const Workspace work;
    work.write(
        "tiny.ini",
        "name = resume\n[train]\ncontext = 64\nmax_steps = 3\nd_model = 32\nheads = 2\nlayers = 1\n[sweep]\ntasks = "
        "niah_multikey_1\nlengths = 1x, 2x\ndepths = 0, 100\nsamples = 2\n");
    REQUIRE(work.run({"run", "tiny.ini", "--quiet", "--db", "resume.db"}).exit_code == 0);
    std::string all;
    for (const std::string format : {"html", "markdown", "terminal", "json", "csv"}) {
      all += work.run({"report", "--db", "resume.db", "--format", format, "--no-timings"}).out;
    }
    reports.push_back(all);
  }
  CHECK(reports[0] == reports[1]);
}

TEST_CASE("cli: Ctrl-C ends with 130, says how to go on, and loses nothing", "[cli][resume][slow]") {
  const Workspace work;
  work.write("resume.ini", kRun);
  const pid_t child = work.start({"run", "resume.ini"});
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  kill(child, SIGINT);
  const ProcessResult stopped = work.wait(child);
  CHECK(stopped.exit_code == 130);
  CHECK(contains(stopped.err, "the same command continues"));
  CHECK(work.run({"run", "resume.ini"}).exit_code == 0);
}

TEST_CASE("cli: a wider run takes over what an earlier one was asked, and is what it would have been alone",
          "[cli][resume][reuse]") {
  const Workspace work;
  work.write(
      "small.ini",
      "name = small\n[train]\ncontext = 64\nmax_steps = 2\nd_model = 32\nheads = 2\nlayers = 1\n[sweep]\ntasks = "
      "niah_single_2\nlengths = 1x, 2x\ndepths = spread\nsamples = 4\ncontrols = needle_only\ncontrol_samples = "
      "3\n");
  const auto wider = [&work](const std::string& db, std::vector<std::string> more) {
    std::vector<std::string> command = {"run", "small.ini", "--db", db, "--set", "name=wide", "--set"};
    command.insert(command.end(), {"sweep.lengths=1x,2x,4x", "--set", "sweep.tasks=niah_single_2,vt"});
    command.insert(command.end(), more.begin(), more.end());
    return work.run(command);
  };
  REQUIRE(work.run({"run", "small.ini", "--quiet", "--db", "shared.db"}).exit_code == 0);
  // Its words may have been dropped meanwhile; three of the 14 prompts are the same at both lengths.
  CHECK(contains(work.run({"prune", "--db", "shared.db", "--texts"}).out, "11 prompts"));
  const ProcessResult reusing = wider("shared.db", {"--reuse", "small"});
  INFO(reusing.err);
  REQUIRE(reusing.exit_code == 0);
  CHECK(contains(reusing.err, "42 samples (14 taken over)"));
  REQUIRE(wider("alone.db", {}).exit_code == 0);
  const auto scores = [&work](const std::string& db) {
    return work.run({"report", "--db", db, "--run", "wide", "--format", "csv", "--no-timings"}).out;
  };
  CHECK(scores("shared.db") == scores("alone.db"));

  const ProcessResult unknown = wider("shared.db", {"--reuse", "smal"});
  CHECK(unknown.exit_code == 1);
  CHECK(contains(unknown.err, "holds no run 'smal'"));
  const ProcessResult both = work.run({"prune", "--db", "shared.db", "--texts", "--older-than", "3"});
  CHECK(both.exit_code == 2);
}
