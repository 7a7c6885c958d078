#include "harness/config/parse.h"

#include <filesystem>
#include <fstream>

#include "tests/config/config_text.h"

using fathom::ConfigError;
using fathom::config::RunConfig;
using fathom::test::config_error;
using fathom::test::config_of;
using Strings = std::vector<std::string>;

namespace {

const char* const kQuickstart = R"(name = rope-scaling   # a comment
seed = 3

# [sweep] in a comment is no section
[model]
source = train
position = rope, alibi
rope.base = 10000
scaling = none, linear , yarn
scaling.beta_fast = 16
alibi.max_bias = 8

[train]
context = 512
tasks = niah, variable_tracking
vocab.keys = 50

[sweep]
tasks = niah_single_2
lengths = 0.5x, 4K
depths = 0:100:50
max_failed = 2.5
controls = on

[task.niah_single_2]
value_digits = 5

[prompt]
template = chatml

[report]
effective = mean
)";

}  // namespace

TEST_CASE("config: every section reaches its struct", "[config][parse]") {
  const RunConfig config = config_of(kQuickstart);
  CHECK(config.name == "rope-scaling");
  CHECK(config.seed == 3);
  REQUIRE(config.models.size() == 1);
  CHECK(config.models[0].name.empty());
  CHECK(config.models[0].position == Strings{"rope", "alibi"});
  CHECK(config.models[0].rope_base == Strings{"10000"});
  CHECK(config.models[0].scaling == Strings{"none", "linear", "yarn"});
  CHECK(config.models[0].plugin_options ==
        std::map<std::string, std::string>{{"scaling.beta_fast", "16"}, {"alibi.max_bias", "8"}});
  CHECK(config.train.context == 512);
  CHECK(config.train.vocab_keys == 50);
  CHECK(config.sweep.lengths == Strings{"0.5x", "4K"});
  CHECK(config.sweep.max_failed == 2.5);
  CHECK(config.sweep.controls == Strings{"on"});
  CHECK(config.sweep.graded);
  REQUIRE(config.task_options.count("niah_single_2") == 1);
  CHECK(config.task_options.at("niah_single_2").values() == std::map<std::string, std::string>{{"value_digits", "5"}});
  CHECK(config.task_options.at("niah_single_2").where() == "t.ini: [task.niah_single_2]");
  CHECK(config.prompt.chat_template == "chatml");
  CHECK(config.report.effective == Strings{"mean"});
}

TEST_CASE("config: an empty file gives the defaults and the file's name", "[config][parse]") {
  const RunConfig config = fathom::config::parse_config("", "some/folder/night.run.ini", {});
  CHECK(config.name == "night.run");
  CHECK(config.seed == 1);
  REQUIRE(config.models.size() == 1);
  CHECK(config.models[0].source == "train");
  CHECK(config.models[0].scaling.empty());
  CHECK(config.models[0].rope_base.empty());
  CHECK(config.sweep.depths == Strings{"0:100:10"});
  CHECK(config.sweep.lengths.empty());
}

TEST_CASE("config: a byte-order mark, CRLF, blanks and full keys outside sections are read", "[config][parse]") {
  const RunConfig config =
      config_of("\xEF\xBB\xBFsweep.samples = 4\r\nmodel.rope.base =  1e6 \r\n[sweep]\r\n  tasks=a,b\t\r\n\r\n");
  CHECK(config.sweep.samples == 4);
  CHECK(config.models[0].rope_base == Strings{"1000000"});
  CHECK(config.sweep.tasks == Strings{"a", "b"});
}

TEST_CASE("config: auto leaves a value to the program", "[config][parse]") {
  const RunConfig config = config_of(
      "[model]\nscaling = auto\nrope.base = auto\nscaling.original_context = auto\n[engine]\nthreads = auto\n"
      "[train]\nlayers = auto\n[sweep]\nlengths = auto\n");
  CHECK(config.models[0].scaling.empty());
  CHECK(config.models[0].rope_base.empty());
  CHECK_FALSE(config.models[0].original_context.has_value());
  CHECK_FALSE(config.engine.threads.has_value());
  CHECK_FALSE(config.train.layers.has_value());
  CHECK(config.sweep.lengths.empty());
}

TEST_CASE("config: [model] holds the defaults of several [model.NAME]", "[config][parse][models]") {
  const RunConfig config = config_of(
      "[model.small]\nrope.base = 500\n[model]\nrope.base = 10000\nscaling = none, yarn\nscaling.beta_fast = 16\n"
      "[model.big]\nsource = preset:llama\nscaling.beta_fast = 64\nscaling = linear\n");
  REQUIRE(config.models.size() == 2);
  CHECK(config.models[0].name == "small");
  CHECK(config.models[0].rope_base == Strings{"500"});
  CHECK(config.models[0].scaling == Strings{"none", "yarn"});
  CHECK(config.models[0].plugin_options.at("scaling.beta_fast") == "16");
  CHECK(config.models[1].name == "big");
  CHECK(config.models[1].rope_base == Strings{"10000"});
  CHECK(config.models[1].scaling == Strings{"linear"});
  CHECK(config.models[1].plugin_options.at("scaling.beta_fast") == "64");
}

TEST_CASE("config: --set beats the file, for one model or for all", "[config][parse][set]") {
  const std::string text = "[model]\nscaling = none\n[model.a]\nscaling = linear\n[model.b]\nalibi.max_bias = 4\n";
  RunConfig config = config_of(text, {"scaling=yarn", "sweep.samples=3", "seed=9", "name=other"});
  CHECK(config.models[0].scaling == Strings{"yarn"});
  CHECK(config.models[1].scaling == Strings{"yarn"});
  CHECK(config.sweep.samples == 3);
  CHECK(config.seed == 9);
  CHECK(config.name == "other");

  config = config_of(text, {"model.b.scaling=ntk"});
  CHECK(config.models[0].scaling == Strings{"linear"});
  CHECK(config.models[1].scaling == Strings{"ntk"});

  config = config_of(text, {"b.scaling=ntk", "scaling=yarn", "alibi.max_bias = 16", "scaling.beta_fast=2"});
  CHECK(config.models[0].scaling == Strings{"yarn"});
  CHECK(config.models[1].scaling == Strings{"ntk"});
  CHECK(config.models[0].plugin_options.at("alibi.max_bias") == "16");
  CHECK(config.models[1].plugin_options.at("alibi.max_bias") == "16");
  CHECK(config.models[1].plugin_options.at("scaling.beta_fast") == "2");

  config = config_of("[task.niah_single_1]\nx = 1\n", {"task.niah_single_1.x=2", "task.vt.hops=3"});
  CHECK(config.task_options.at("niah_single_1").values().at("x") == "2");
  CHECK(config.task_options.at("vt").values().at("hops") == "3");
}

TEST_CASE("config: --set text that is no key=value is refused", "[config][parse][set][errors]") {
  using fathom::config::parse_setting;
  CHECK(parse_setting(" sweep.samples = 4 ").key == "sweep.samples");
  CHECK(parse_setting("out=a=b").value == "a=b");
  CHECK_THROWS_AS(parse_setting("samples"), ConfigError);
  CHECK_THROWS_WITH(parse_setting("samples"),
                    "config: --set 'samples' is not key=value; write for example --set scaling=yarn");
  CHECK_THROWS_WITH(parse_setting("=4"), "config: --set '=4' is not key=value; write for example --set scaling=yarn");
  CHECK_THROWS_WITH(parse_setting("seed="), "config: --set 'seed=' gives no value after '='");
  CHECK_THROWS_WITH(parse_setting("name=a#b"),
                    "config: --set 'name=a#b' holds '#' or a line break, which no value can");
}

TEST_CASE("config: a bad --set value names --set", "[config][parse][set][errors]") {
  CHECK(config_error("", {"sweep.samples=x"}) == "config: --set: [sweep] samples = x is not an integer");
  CHECK(config_error("", {"sweep.sampels=3"}) ==
        "config: --set: unknown key 'sweep.sampels'; did you mean 'sweep.samples'?");
  CHECK(config_error("", {"samples=3"}) == "config: --set: unknown key 'model.samples'; did you mean 'sweep.samples'?");
  CHECK(config_error("", {"scaling=yarn", "model.scaling=ntk"}) ==
        "config: --set: key 'model.scaling' is given twice; keep one (a list is one value: a, b)");
  CHECK(config_error("[model.smol]\n", {"model.smoll.scaling=yarn"}) ==
        "config: --set: unknown key 'model.smoll.scaling'; there is no section [model.smoll], did you mean 'smol'?; "
        "models: smol");
  CHECK(config_error("", {"model.smol.scaling=yarn"}) ==
        "config: --set: unknown key 'model.smol.scaling'; there is no section [model.smol]");
  CHECK(config_error("", {"rope.base=0"}) == "config: --set: [model] rope.base = 0 is outside 1..1000000000000000");
}

TEST_CASE("config: an unknown key is an error that names the nearest key", "[config][parse][errors]") {
  CHECK(config_error("[sweep]\nsampels = 4\n") ==
        "config: t.ini:2: unknown key 'sweep.sampels'; did you mean 'sweep.samples'?");
  CHECK(config_error("[model]\nsamples = 4\n") ==
        "config: t.ini:2: unknown key 'model.samples'; did you mean 'sweep.samples'?");
  CHECK(config_error("[model]\nname = x\n") ==
        "config: t.ini:2: unknown key 'model.name'; 'name' stands outside sections, before the first one");
  CHECK(config_error("samples = 4\n") == "config: t.ini:1: unknown key 'samples'; did you mean 'sweep.samples'?");
  CHECK(config_error("[model]\nfactor = 4\n") ==
        "config: t.ini:2: unknown key 'model.factor'; did you mean 'model.scaling.factor'?");
  CHECK(config_error("[model]\nscaling.factr = 4\n") ==
        "config: t.ini:2: unknown key 'model.scaling.factr'; did you mean 'model.scaling.factor'?");
  CHECK(config_error("[model.smol]\nrope.bas = 4\n") ==
        "config: t.ini:2: unknown key 'model.smol.rope.bas'; did you mean 'model.smol.rope.base'?");
  CHECK(config_error("[model]\ndtype.x = 4\n") ==
        "config: t.ini:2: unknown key 'model.dtype.x'; did you mean 'model.dtype'?");
  CHECK(config_error("[engine]\nqqqqqqqqqqqqqq = 4\n") ==
        "config: t.ini:2: unknown key 'engine.qqqqqqqqqqqqqq'; 'fathom list options' shows every key");
}

TEST_CASE("config: an unknown section is reported once, not key by key", "[config][parse][errors]") {
  CHECK(config_error("[sweeep]\nsamples = 4\ndepths = 0\n") ==
        "config: t.ini:1: unknown section [sweeep]; did you mean [sweep]?; sections: model, train, sweep, prompt, "
        "haystack, engine, report, task.NAME");
  CHECK(config_error("[task]\nx = 1\n") ==
        "config: t.ini:1: section [task] lacks the task's name; write for example [task.niah_single_2]");
  CHECK(config_error("[task.vt@ruler]\nx = 1\n") ==
        "config: t.ini:1: section [task.vt@ruler]: a task's options are those of both variants; write its bare name");
  CHECK(
      config_error("[model.rope]\nsource = train\n") ==
      "config: t.ini:1: section [model.rope]: 'rope' is the first word of a model's key, so no model can be called so; "
      "rename it, for example [model.rope_1]");
  CHECK(config_error("[model.a.b]\nsource = train\n") ==
        "config: t.ini:1: section [model.a.b]: a model's name takes letters, digits, '_' and '-' only");
}

TEST_CASE("config: repeated keys are errors, in collected sections too", "[config][parse][errors]") {
  CHECK(config_error("[sweep]\nsamples = 4\ndepths = 0\nsamples = 5\n") ==
        "config: t.ini:4: key 'sweep.samples' is given twice; it stands in line 2 too, keep one (a list is one line: "
        "a, b)");
  CHECK(config_error("[task.vt]\nhops = 4\n[sweep]\n[task.vt]\nhops = 4\n") ==
        "config: t.ini:5: key 'task.vt.hops' is given twice; it stands in line 2 too, keep one (a list is one line: a, "
        "b)");
  CHECK(config_error("[model]\nalibi.max_bias = 4\nalibi.max_bias = 8\n") ==
        "config: t.ini:3: key 'model.alibi.max_bias' is given twice; it stands in line 2 too, keep one (a list is one "
        "line: a, b)");
  CHECK(config_error("sweep.samples = 1\n[sweep]\nsamples = 1\n") ==
        "config: t.ini:3: key 'sweep.samples' is given twice; it stands in line 1 too, keep one (a list is one line: "
        "a, b)");
}

TEST_CASE("config: lines that cannot be read carry their number", "[config][parse][errors]") {
  CHECK(config_error("\n[sweep]\nsamples 4\n") ==
        "config: t.ini:3: 'samples 4' is neither [section] nor key = value nor a # comment");
  CHECK(config_error("; old style\n") ==
        "config: t.ini:1: '; old style' starts with ';', which is no comment here; use '#'");
  CHECK(config_error("[sweep\nsamples = 4\n") == "config: t.ini:1: section '[sweep' lacks its closing bracket");
  CHECK(config_error("[]\nsamples = 4\n") == "config: t.ini:1: a section without a name; write for example [model]");
  CHECK(config_error("[ model ]\n") ==
        "config: t.ini:1: section [ model ] has a blank or bracket in its name; write for example [model]");
  CHECK(config_error("[task..x]\n") == "config: t.ini:1: section [task..x] has an empty part between its dots");
  CHECK(config_error("[model.]\n") == "config: t.ini:1: section [model.] has an empty part between its dots");
  CHECK(config_error("= 4\n") == "config: t.ini:1: '= 4' has no key before '='");
  CHECK(config_error("name = caf\xE9\n") == "config: t.ini:1: bytes that are not UTF-8; save the file as UTF-8 text");
  CHECK(config_error(std::string("name = a\0b\n", 11)) == "config: t.ini:1: a NUL byte; the file must be text");
}

TEST_CASE("config: bad values say where, what and what is allowed", "[config][parse][errors]") {
  CHECK(config_error("[sweep]\nsamples = 0\n") == "config: t.ini:2: [sweep] samples = 0 is outside 1..1000000");
  CHECK(config_error("[sweep]\nsamples = -3\n") == "config: t.ini:2: [sweep] samples = -3 is outside 1..1000000");
  CHECK(config_error("[sweep]\nsamples = 99999999999999999999\n") ==
        "config: t.ini:2: [sweep] samples = 99999999999999999999 is not an integer");
  CHECK(config_error("[sweep]\nsamples = 0x10\n") == "config: t.ini:2: [sweep] samples = 0x10 is not an integer");
  CHECK(config_error("[sweep]\nmax_failed = 1e400\n") == "config: t.ini:2: [sweep] max_failed = 1e400 is not a number");
  CHECK(config_error("[sweep]\nwidth = nan\n") == "config: t.ini:2: [sweep] width = nan is not a number");
  CHECK(config_error("[sweep]\ncontrols = yes\n") ==
        "config: t.ini:2: [sweep] controls = yes is unknown; allowed: off, on, no_needle, needle_only, wrong_key, "
        "closed_book, oracle");
  CHECK(config_error("[sweep]\ncontrols = on, oracle\n") ==
        "config: t.ini:2: [sweep] controls = on cannot stand in a list; name the controls, or write on or off alone");
  CHECK(config_error("[sweep]\ncontrols = needle_only, oracle\n").empty());
  CHECK(config_error("[sweep]\npair = all\n") ==
        "config: t.ini:2: [sweep] pair = all must be one of none, depth, length, both");
  CHECK(config_error("[sweep]\ntasks =\n") == "config: t.ini:2: [sweep] tasks has no value");
  CHECK(config_error("[sweep]\ntasks = a,,b\n") == "config: t.ini:2: [sweep] tasks = a,,b has an empty entry");
  CHECK(config_error("[sweep]\ntasks = a,\n") == "config: t.ini:2: [sweep] tasks = a, has an empty entry");
  CHECK(config_error("[model]\nsource = # none\n") == "config: t.ini:2: [model] source has no value");
  CHECK(config_error("[task.vt]\nhops =\n") == "config: t.ini:2: task.vt.hops has no value");
  CHECK(config_error("seed = one\n") == "config: t.ini:1: seed = one is not an integer");
  CHECK(config_error("[model.a]\nposition = alibi\nsource = a.gguf\n") ==
        "config: t.ini:2: model.a.position = alibi has no effect on source = a.gguf; a checkpoint brings its own "
        "positions, and only source = train takes others");
}

TEST_CASE("config: every problem comes at once, a default's mistake only once", "[config][parse][errors]") {
  const std::string message = config_error(
      "seed = x\n[model]\nrope.base = big\ndtype = int8\n[model.a]\nsource = train\n[model.b]\nsource = train\n"
      "[sweep]\nsampels = 2\ndepths = 0:100:0\n",
      {"train.context=3"});
  CHECK(message ==
        "config: t.ini:10: unknown key 'sweep.sampels'; did you mean 'sweep.samples'?\n"
        "config: t.ini:1: seed = x is not an integer\n"
        "config: t.ini:4: [model] dtype = int8 must be one of auto, float32, bf16\n"
        "config: --set: [train] context = 3 is outside 16..1073741824\n"
        "config: t.ini:3: [model.a] rope.base = big is not a number\n"
        "config: t.ini:3: [model.b] rope.base = big is not a number\n"
        "config: t.ini:11: [sweep] depths: range '0:100:0' has a step that is not above zero");
}

TEST_CASE("config: a checkpoint takes no position from the defaults of trained models", "[config][parse][models]") {
  const RunConfig config = config_of("[model]\nposition = rope, alibi\n[model.tiny]\n[model.real]\nsource = a.gguf\n");
  CHECK(config.models[0].position == Strings{"rope", "alibi"});
  CHECK(config.models[1].position == Strings{"rope"});
}

TEST_CASE("config: files that cannot be read say so", "[config][parse][errors]") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "fathom_config_test";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "tiny.ini").string();
  std::ofstream(path) << "[sweep]\ntasks = vt\n";
  CHECK(fathom::config::load_config(path, {}).name == "tiny");
  CHECK_THROWS_WITH(fathom::config::load_config(folder.string(), {}),
                    "config: '" + folder.string() + "' is a folder; name the .ini file in it");
  CHECK_THROWS_WITH(fathom::config::load_config(path + ".none", {}),
                    "config: cannot open '" + path + ".none'; check the path and the permissions");
  CHECK_THROWS_AS(fathom::config::load_config(path + ".none", {}), ConfigError);
  std::filesystem::remove_all(folder);
}
