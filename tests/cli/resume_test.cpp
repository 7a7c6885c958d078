// kill -9 at any instant loses at most the batch in flight, and the final rows equal those of an undisturbed run.

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
