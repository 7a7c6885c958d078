// What users bring along: prompt packs and haystacks, and what is said when they cannot be used.

#include <algorithm>
#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/process.h"

using fathom::test::contains;
using fathom::test::ProcessResult;
using fathom::test::Workspace;

namespace {

const std::string kTinyRun =
    "[train]\ncontext = 64\nmax_steps = 2\nd_model = 32\nheads = 2\nlayers = 1\n"
    "[sweep]\ntasks = niah_single_2\nlengths = 64\ndepths = 0, 100\nsamples = 2\n";

const std::string kPackHead = "[pack]\nname = mine\nversion = 1\n";  // lines 1 to 3

void check_refused(const ProcessResult& result, int exit_code, const std::string& part) {
  INFO(result.err);
  CHECK(result.exit_code == exit_code);
  CHECK(contains(result.err, part));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
}

}  // namespace

TEST_CASE("cli: a prompt pack that cannot be used is refused with its line", "[cli][errors]") {
  const Workspace work;
  work.write("tiny.ini", kTinyRun);
  const auto refused = [&](const std::string& pack, const std::string& part) {
    work.write("mine.ini", pack);
    for (const std::string command : {"run", "generate"}) {
      std::vector<std::string> arguments = {command, "tiny.ini", "--prompts", "mine.ini"};
      if (command == "run") arguments.emplace_back("--dry-run");
      if (command == "generate") arguments.insert(arguments.end(), {"--out", "p.jsonl", "--quiet"});
      check_refused(work.run(arguments), 2, part);
    }
  };
  const std::string based = kPackHead + "base = synthetic\n";
  refused(based + "[niah]\nneedle = note {kee} {value}\n", "mine.ini:6:15: unknown slot {kee}");
  refused(based + "[niah]\nneedle = note {key}\n", "mine.ini:6:");  // {value} is missing
  refused(based + "[nia]\nneedle = note {key} {value}\n", "mine.ini:5:1: unknown section [nia]; did you mean 'niah'?");
  refused(kPackHead + "language = en\n", "mine.ini:4:1: missing key");  // no section and no base
  refused(based + "[niah]\nneedle = caf\xE9 {key} {value}\n", "mine.ini:6:");
  work.write("mine.ini", based + "[niah]\nneedle = caf\xE9 {key} {value}\n");
  CHECK(contains(work.run({"run", "tiny.ini", "--dry-run", "--prompts", "mine.ini"}).err, "UTF-8"));
  check_refused(work.run({"run", "tiny.ini", "--dry-run", "--prompts", "nowhere.ini"}), 2, "nowhere.ini");
}

TEST_CASE("cli: a prompt pack of one's own changes the prompts and their keys", "[cli]") {
  const Workspace work;
  work.write("tiny.ini", kTinyRun);
  work.write("mine.ini", kPackHead + "base = synthetic\n[niah]\nneedle = set {key} {value}\n");
  const ProcessResult mine =
      work.run({"generate", "tiny.ini", "--prompts", "mine.ini", "--out", "mine.jsonl", "--quiet"});
  INFO(mine.err);
  REQUIRE(mine.exit_code == 0);
  REQUIRE(work.run({"generate", "tiny.ini", "--out", "theirs.jsonl", "--quiet"}).exit_code == 0);
  CHECK(contains(work.read("mine.jsonl"), " set k"));
  CHECK_FALSE(contains(work.read("theirs.jsonl"), " set k"));
  const auto first_key = [&](const std::string& name) {
    const std::string text = work.read(name);
    return text.substr(text.find("\"key\":\""), 39);
  };
  CHECK(first_key("mine.jsonl") != first_key("theirs.jsonl"));
}

TEST_CASE("cli: a haystack that cannot be used is refused with its name", "[cli][errors]") {
  const Workspace work;
  work.write("tiny.ini", kTinyRun);
  const auto refused = [&](const std::string& source, const std::string& part) {
    check_refused(work.run({"run", "tiny.ini", "--dry-run", "--set", "haystack.source=" + source}), 1, part);
  };
  std::filesystem::create_directories(work.path("empty"));
  refused("empty", "haystack folder 'empty' holds no text file");
  refused("nowhere", "haystack 'nowhere' does not exist");
  std::filesystem::create_directories(work.path("mixed"));
  work.write("mixed/a.txt", "All is well. So the day goes.\r\nNo end");
  work.write("mixed/b.txt", std::string("PNG\0\x1A", 5));
  refused("mixed", "haystack file 'mixed/b.txt' is binary: NUL at byte 3");
  work.write("latin.txt", "caf\xE9 au lait.");
  refused("latin.txt", "haystack file 'latin.txt' is not UTF-8: byte 3 is 0xE9");
}
