#include "harness/config/validate.h"

#include "tests/config/config_text.h"

using fathom::config::RunConfig;
using fathom::config::validate;
using fathom::test::config_error;
using fathom::test::config_of;
using Strings = std::vector<std::string>;

TEST_CASE("config: only a sweep needs tasks, so parsing does not ask for them", "[config][validate]") {
  const RunConfig config = config_of("[train]\ncontext = 64\n");
  CHECK(validate(config) ==
        Strings{"[sweep] tasks is missing; name at least one task ('fathom list tasks' shows them)"});
  CHECK(validate(config_of("[sweep]\ntasks = vt\n")).empty());
}

TEST_CASE("config: validate lists every problem of a config made in code", "[config][validate]") {
  RunConfig config = config_of("[sweep]\ntasks = vt\n");
  config.models.clear();
  config.name = "";
  config.report.base_lengths = {"512"};
  CHECK(validate(config) == Strings{"name is empty; the file's name gives none, so write name = ...",
                                    "model is missing; write a section [model]",
                                    "[report] base_lengths = 512 must be two lengths, or auto"});
}

TEST_CASE("config: a run's name is a file's name", "[config][validate][errors]") {
  const std::string rule = " cannot be a file's name; leave out '/' and '\\', and do not start with '.' or '-'";
  CHECK(config_error("name = a/b\n") == "config: t.ini:1: name = a/b" + rule);
  CHECK(config_error("name = ../b\n") == "config: t.ini:1: name = ../b" + rule);
  CHECK(config_error("name = .b\n") == "config: t.ini:1: name = .b" + rule);
  CHECK(config_error("name = -b\n") == "config: t.ini:1: name = -b" + rule);
  CHECK(config_error("name = " + std::string(101, 'n') + "\n") ==
        "config: t.ini:1: name = " + std::string(101, 'n') + " has 101 bytes; at most 100");
  CHECK(config_error("name = nightly run 3 \xE4\xB8\xAD\n").empty());
  try {
    fathom::config::parse_config("", "", {});
    FAIL("an empty name must be refused");
  } catch (const fathom::ConfigError& error) {
    CHECK(std::string(error.what()) == "config: : name is empty; the file's name gives none, so write name = ...");
  }
}

TEST_CASE("config: axes of the model are checked value by value", "[config][validate][errors]") {
  CHECK(config_error("[model]\nrope.base = 10000, 1e400\n") ==
        "config: t.ini:2: [model] rope.base = 1e400 is not a number");
  CHECK(config_error("[model]\nrope.base = 0x10\n") == "config: t.ini:2: [model] rope.base = 0x10 is not a number");
  CHECK(config_error("[model]\nrope.base = -1\n") ==
        "config: t.ini:2: [model] rope.base = -1 is outside 1..1000000000000000");
  CHECK(config_error("[model]\nrope.base = 10000, 1e4\n") ==
        "config: t.ini:2: [model] rope.base = 10000, 10000 has '10000' twice");
  CHECK(config_error("[model]\nrope.partial = 1.5\n") == "config: t.ini:2: [model] rope.partial = 1.5 is outside 0..1");
  CHECK(config_error("[model]\nscaling = yarn, none, yarn\n") ==
        "config: t.ini:2: [model] scaling = yarn, none, yarn has 'yarn' twice");
  CHECK(config_error("[model]\nscaling = declared\n") ==
        "config: t.ini:2: [model] scaling = declared needs a checkpoint; a model trained here declares no scaling, "
        "write none");
  CHECK(config_error("[model]\nsource = a.gguf\nscaling = declared, none\n").empty());
  CHECK(config_error("[model]\nscaling = auto, yarn\n") ==
        "config: t.ini:2: [model] scaling = auto cannot stand in a list; leave the key out, or name the methods");
  CHECK(config_error("[model]\nscaling.factor = 0.5\n") ==
        "config: t.ini:2: [model] scaling.factor = 0.5 is outside 1..1000000");
  CHECK(config_error("[model]\nscaling.factor = auto, 4, two\n") ==
        "config: t.ini:2: [model] scaling.factor = two is not a number");
  CHECK(config_error("[model]\nremap = none, none\n") ==
        "config: t.ini:2: [model] remap = none, none has 'none' twice");
  CHECK(config_error("[model]\ntemperature = none, logn\n") ==
        "config: t.ini:2: [model] temperature = logn is unknown; did you mean 'log_n'?; allowed: none, llama4, "
        "ministral3, log_n, uniform");
}

TEST_CASE("config: layer patterns", "[config][validate][errors]") {
  const std::string rule = " is no layer pattern; write none, every N, or layers counted from 0 (1,3)";
  CHECK(config_error("[model]\nnope_layers = every 4\n").empty());
  CHECK(config_error("[model]\nnope_layers = 1, 3\n").empty());
  CHECK(config_error("[model]\nnope_layers = every 0\n") == "config: t.ini:2: [model] nope_layers = every 0" + rule);
  CHECK(config_error("[model]\nnope_layers = 1,-3\n") == "config: t.ini:2: [model] nope_layers = 1,-3" + rule);
  CHECK(config_error("[model]\nnope_layers = all\n") == "config: t.ini:2: [model] nope_layers = all" + rule);
}

TEST_CASE("config: rules of training, sweep and report", "[config][validate][errors]") {
  CHECK(config_error("[train]\nseeds = 1, 2, 1\n") == "config: t.ini:2: [train] seeds = 1, 2, 1 has '1' twice");
  CHECK(config_error("[train]\nseeds = 1, -2\n") == "config: t.ini:2: [train] seeds = -2 is not an integer >= 0");
  CHECK(config_error("[train]\nseeds = 1.5\n") == "config: t.ini:2: [train] seeds = 1.5 is not an integer >= 0");
  CHECK(config_error("[train]\nd_model = 100\nheads = 3\n") ==
        "config: t.ini:2: [train] d_model = 100 is not a multiple of heads = 3");
  CHECK(
      config_error("[sweep]\nlengths = 512, 4k\n") ==
      "config: t.ini:2: [sweep] lengths: '4k' is not a length: it cannot be read; write tokens (512, 4K) or times the "
      "trained length (1.5x)");
  CHECK(config_error("[sweep]\nlengths = auto, 4K\n") ==
        "config: t.ini:2: [sweep] lengths = auto cannot stand in a list; leave the key out, or name the lengths");
  CHECK(config_error("[sweep]\ndepths = 50, 101\n") ==
        "config: t.ini:2: [sweep] depths: depth '101' is outside 0..100 percent");
  CHECK(config_error("[sweep]\ndepths = spread, 50\n") ==
        "config: t.ini:2: [sweep] depths: 'spread' cannot stand in a list; it leaves the depths to the tasks, one for "
        "each sample");
  CHECK(config_error("[sweep]\ndepths = spread\n").empty());
  CHECK(config_error("[report]\nbase_lengths = 512\n") ==
        "config: t.ini:2: [report] base_lengths = 512 must be two lengths, or auto");
  CHECK(config_error("[report]\nbase_lengths = 512, 0\n") ==
        "config: t.ini:2: [report] base_lengths: '0' is not a length: 0 tokens, at least 1 is needed; write tokens "
        "(512, 4K) "
        "or times the trained length (1.5x)");
  CHECK(config_error("[report]\nbase_lengths = 512, 1K\n").empty());
  CHECK(config_error("[sweep]\ntasks = vt, vt\n") == "config: t.ini:2: [sweep] tasks = vt, vt has 'vt' twice");
}
