// One clear line and the right exit code for what users get wrong.

#include <algorithm>
#include <cstdint>

#include "tests/support/catch.h"
#include "tests/support/process.h"

using fathom::test::contains;
using fathom::test::ProcessResult;
using fathom::test::Workspace;

namespace {

const std::string kTinyRun =
    "[train]\ncontext = 64\nmax_steps = 2\nd_model = 32\nheads = 2\nlayers = 1\n"
    "[sweep]\ntasks = niah_single_2\nlengths = 64\ndepths = 0, 100\nsamples = 2\n";

void check_one_line(const ProcessResult& result, int exit_code, const std::string& part) {
  INFO("stderr: " << result.err);
  CHECK(result.exit_code == exit_code);
  CHECK(contains(result.err, part));
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
}

void append_u32(std::string& bytes, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
}

void append_u64(std::string& bytes, std::uint64_t value) {
  append_u32(bytes, static_cast<std::uint32_t>(value));
  append_u32(bytes, static_cast<std::uint32_t>(value >> 32));
}

std::string gguf_header(std::uint64_t n_tensors, std::uint64_t n_metadata) {
  std::string bytes = "GGUF";
  append_u32(bytes, 3);
  append_u64(bytes, n_tensors);
  append_u64(bytes, n_metadata);
  return bytes;
}

std::string run_of(const std::string& model) {
  return "[model]\nsource = " + model + "\n[sweep]\ntasks = niah_single_2\nlengths = 512\nsamples = 1\n";
}

}  // namespace

TEST_CASE("cli: usage errors exit with 2 and help with 0", "[cli][errors]") {
  const Workspace work;
  CHECK(work.run({}).exit_code == 2);
  CHECK(work.run({"--help"}).exit_code == 0);
  check_one_line(work.run({"rnu"}), 2, "unknown command 'rnu'; did you mean 'run'?");
  check_one_line(work.run({"run"}), 2, "CONFIG is missing");
  check_one_line(work.run({"run", "a.ini", "--treads", "2"}), 2, "did you mean '--threads'");
  check_one_line(work.run({"run", "a.ini", "--device", "tpu"}), 2, "not one of cpu, cuda");
  check_one_line(work.run({"run", "nowhere.ini"}), 2, "nowhere.ini");
  check_one_line(work.run({"report", "--db", "x.db", "extra"}), 2, "unexpected argument 'extra'");
  check_one_line(work.run({"report", "--db", "nowhere.db"}), 1, "nowhere.db");
  for (const std::string command : {"run", "train", "generate", "score", "check", "report", "compare", "import",
                                    "inspect", "theory", "tokenize", "logits", "bench", "list", "doctor"}) {
    const ProcessResult help = work.run({command, "--help"});
    CHECK(help.exit_code == 0);
    CHECK(contains(help.out, "examples:"));
  }
}

TEST_CASE("cli: configuration errors exit with 2, name the key and the nearest one", "[cli][errors]") {
  const Workspace work;
  work.write("unknown.ini", kTinyRun + "sampels = 3\n");
  check_one_line(work.run({"run", "unknown.ini"}), 2, "did you mean 'sweep.samples'");
  work.write("empty.ini", "[sweep]\ntasks =\nlengths = 64\n");
  check_one_line(work.run({"run", "empty.ini"}), 2, "tasks");
  work.write("short.ini", "[train]\ncontext = 64\n[sweep]\ntasks = niah_single_2, niah_multikey_1\nlengths = 8, 64\n");
  check_one_line(work.run({"run", "short.ini"}), 2, "8 tokens is too short for every task of the run");
  work.write("tiny.ini", kTinyRun);
  check_one_line(work.run({"run", "tiny.ini", "--set", "sweep.tasks=niah_sngle_2"}), 2, "did you mean 'niah_single_2'");
  check_one_line(work.run({"run", "tiny.ini", "--set", "report.effective=each, niah_single_3"}), 2,
                 "effective = niah_single_3 names no task of this run; did you mean 'niah_single_2'?; allowed: each, "
                 "mean, niah_single_2");
  check_one_line(work.run({"run", "tiny.ini", "--set", "scaling=yran"}), 2, "did you mean 'yarn'");
  check_one_line(work.run({"run", "tiny.ini", "--set", "sweep.adaptive=on"}), 2, "not available in this version");
  check_one_line(work.run({"run", "tiny.ini", "--set", "remap=reropee"}), 2, "did you mean 'rerope'");
  check_one_line(work.run({"run", "tiny.ini", "--dry-run", "--set", "scaling=yarn", "--set", "scaling.beta_fst=3"}), 2,
                 "did you mean 'scaling.beta_fast'");
  check_one_line(work.run({"run", "tiny.ini", "--dry-run", "--set", "alibi.max_bais=4"}), 2, "alibi.max_bais");
}

TEST_CASE("cli: keys that change nothing are refused, by the run and by its dry run", "[cli][errors]") {
  const Workspace work;
  work.write("tiny.ini", kTinyRun);
  const auto refused = [&](std::vector<std::string> settings, const std::string& part) {
    std::vector<std::string> arguments = {"run", "tiny.ini", "--dry-run"};
    for (const std::string& setting : settings) {
      arguments.emplace_back("--set");
      arguments.push_back(setting);
    }
    INFO(settings.front());
    check_one_line(work.run(arguments), 2, part);
  };
  refused({"scaling.mode=frozen"}, "scaling.mode changes nothing in this run");
  refused({"scaling.mode=hf", "scaling=yarn"}, "scaling.mode changes nothing in this run");
  refused({"scaling.frozen_length=64", "scaling=dynamic"}, "scaling.frozen_length changes nothing in this run");
  refused({"scaling.original_context=32"}, "scaling.original_context changes nothing in this run");
  refused({"temperature.scale=0.2"}, "temperature.scale changes nothing in this run");
  refused({"temperature=uniform"}, "temperature.scale is missing");
  refused({"temperature.length=20", "temperature=uniform", "temperature.scale=2"},
          "temperature.length changes nothing");
  refused({"rope.side=suffix"}, "rope.side changes nothing in this run");
  refused({"rope.table_dtype=bf16", "position=alibi"}, "rope.table_dtype changes nothing in this run");
  refused({"remap.window=20"}, "remap.window = 20 is an option of nothing");
  refused({"remap=rerope", "remap.window=0"}, "window");
  refused({"remap=rerope", "scaling=dynamic", "scaling.mode=hf"}, "scaling.mode = hf");
}

TEST_CASE("cli: a dry run refuses what the training would refuse", "[cli][errors]") {
  const Workspace work;
  work.write("tiny.ini", kTinyRun);
  const auto refused = [&](const std::string& setting, const std::string& part) {
    INFO(setting);
    check_one_line(work.run({"run", "tiny.ini", "--dry-run", "--set", setting}), 2, part);
  };
  refused("train.tasks=niah, copyy", "copyy");
  refused("nope_layers=7", "nope_layers");
  refused("rope.partial=0", "rope_partial");
  refused("scaling=longrope", "short_factor");
  refused("train.heads=3", "heads");
  const ProcessResult remapped = work.run({"run", "tiny.ini", "--dry-run", "--set", "position=rope, alibi", "--set",
                                           "remap=none, rerope", "--set", "temperature=none, log_n"});
  INFO(remapped.err);
  CHECK(remapped.exit_code == 0);
  CHECK(contains(remapped.out, "rope rerope temperature=log_n"));
  CHECK_FALSE(contains(remapped.out, "alibi rerope"));
}

TEST_CASE("cli: a dry run says where every token of an answer costs a whole prompt", "[cli]") {
  const Workspace work;
  work.write("tiny.ini", kTinyRun);
  const std::string costly = "at most: at 128, 256 tokens the angles change with every token";
  const auto output = [&](const std::string& mode) {
    const ProcessResult result = work.run({"run", "tiny.ini", "--dry-run", "--set", "scaling=dynamic", "--set",
                                           "sweep.lengths=64, 128, 256", "--set", "scaling.mode=" + mode});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return result.out;
  };
  CHECK(contains(output("consistent"), costly));
  CHECK_FALSE(contains(output("frozen"), "angles change"));
  CHECK_FALSE(contains(output("hf"), "angles change"));
}

TEST_CASE("cli: missing, truncated and hostile GGUF files give one line", "[cli][errors]") {
  const Workspace work;
  work.write("missing.ini", run_of("nowhere.gguf"));
  check_one_line(work.run({"run", "missing.ini"}), 2, "nowhere.gguf");
  work.write("cut.gguf", gguf_header(3, 2).substr(0, 20));
  work.write("cut.ini", run_of("cut.gguf"));
  check_one_line(work.run({"run", "cut.ini"}), 1, "cut.gguf");
  work.write("huge.gguf", gguf_header(UINT64_C(1) << 60, 1));
  work.write("huge.ini", run_of("huge.gguf"));
  check_one_line(work.run({"run", "huge.ini"}), 1, "1152921504606846976");
  work.write("not.gguf", "this is a text\n");
  check_one_line(work.run({"inspect", "not.gguf"}), 1, "not.gguf");
}

TEST_CASE("cli: a database that can't be used says why", "[cli][errors]") {
  const Workspace work;
  work.write("tiny.ini", kTinyRun);
  check_one_line(work.run({"run", "tiny.ini", "--quiet", "--db", "/proc/nothing/x.db"}), 1, "/proc/nothing/x.db");
  work.write("text.db", std::string(5000, 'x'));
  check_one_line(work.run({"run", "tiny.ini", "--quiet", "--db", "text.db"}), 1, "text.db");

  const ProcessResult first = work.run({"run", "tiny.ini", "--quiet", "--db", "good.db"});
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  std::string bytes = work.read("good.db");
  REQUIRE(bytes.size() > 100);
  bytes[63] = 99;  // user_version: 4 bytes, big-endian, at offset 60 of the file header
  work.write("newer.db", bytes);
  check_one_line(work.run({"report", "--db", "newer.db"}), 1, "schema 99");
  check_one_line(work.run({"run", "tiny.ini", "--quiet", "--db", "newer.db"}), 1, "schema 99");

  const ProcessResult changed = work.run({"run", "tiny.ini", "--quiet", "--db", "good.db", "--set", "sweep.samples=3"});
  CHECK(changed.exit_code == 1);
  CHECK(contains(changed.err, "sweep.samples: 2 before, 3 now"));
  CHECK(contains(changed.err, "another database"));
}
