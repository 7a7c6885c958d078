#include "harness/config/sweep.h"

#include "tests/config/config_text.h"

using fathom::ConfigError;
using fathom::config::expand_variants;
using fathom::config::ModelVariant;
using fathom::config::RunConfig;
using fathom::config::SweepTraits;
using fathom::test::config_of;
using Strings = std::vector<std::string>;

namespace {

SweepTraits plain_traits() {
  return {[](const std::string& scheme) { return scheme == "rope" || scheme == "xpos"; },
          [](const std::string& scaling) { return scaling != "none"; }};
}

SweepTraits full_traits() {
  SweepTraits traits = plain_traits();
  traits.scheme_options = [](const std::string& scheme) { return scheme == "alibi" ? Strings{"max_bias"} : Strings{}; };
  traits.scaling_options = [](const std::string& scaling) {
    return scaling == "yarn" ? Strings{"beta_fast", "beta_slow"} : Strings{};
  };
  traits.remap_options = [](const std::string&) { return Strings{"window"}; };
  traits.schemes = {"alibi", "nope", "rope"};
  return traits;
}

Strings names_of(const std::string& text, const SweepTraits& traits = plain_traits()) {
  Strings names;
  for (const ModelVariant& variant : expand_variants(config_of(text), traits)) names.push_back(variant.name);
  return names;
}

std::string expand_error(const std::string& text, const SweepTraits& traits) {
  try {
    expand_variants(config_of(text), traits);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sweep: names come from the values that are not the default", "[config][sweep]") {
  CHECK(names_of("") == Strings{"rope"});
  CHECK(names_of("[model]\nrope.base = 10000\nscaling = yarn\n") == Strings{"rope yarn"});
  CHECK(names_of("[model]\nposition = rope, alibi\nrope.base = 10000\nscaling = none, linear, ntk, dynamic, yarn\n") ==
        Strings{"rope", "rope linear", "rope ntk", "rope dynamic", "rope yarn", "alibi"});
  CHECK(
      names_of("[model]\nrope.partial = 0.25\nrope.layout = interleaved\nnope_layers = every 2\ndtype = bf16\n"
               "remap = rerope\nscaling = yarn\nscaling.factor = 4\nscaling.mode = hf\nscaling.original_context = 64\n"
               "[train]\nseeds = 2\n") ==
      Strings{
          "rope partial=0.25 layout=interleaved nope_layers=every2 rerope seed=2 yarn factor=4 mode=hf L0=64 bf16"});
}

TEST_CASE("sweep: a temperature is an axis of every scheme, and names its variants", "[config][sweep]") {
  CHECK(names_of("[model]\nposition = rope, alibi\ntemperature = none, log_n\n") ==
        Strings{"rope", "rope temperature=log_n", "alibi", "alibi temperature=log_n"});
  const auto variants = expand_variants(
      config_of("[model]\nsource = a.gguf\ntemperature = uniform\ntemperature.scale = 1.5\n"), plain_traits());
  REQUIRE(variants.size() == 1);
  CHECK(variants[0].name == "a temperature=uniform");
  CHECK(variants[0].temperature_scale == std::optional<double>(1.5));
  CHECK(expand_variants(config_of("[model]\nsource = a.gguf\n"), plain_traits())[0].temperature == "declared");
  CHECK(expand_variants(config_of(""), plain_traits())[0].temperature == "none");
}

TEST_CASE("sweep: the mode names only variants whose scaling depends on the length", "[config][sweep]") {
  SweepTraits traits = plain_traits();
  traits.depends_on_length = [](const std::string& scaling, const fathom::OptionSource&) {
    return scaling == "dynamic";
  };
  CHECK(names_of("[model]\nscaling = none, yarn, dynamic\nscaling.mode = hf\n", traits) ==
        Strings{"rope", "rope yarn", "rope dynamic mode=hf"});
}

TEST_CASE("sweep: the rotated side shows where a share rotates", "[config][sweep]") {
  CHECK(names_of("[model]\nrope.partial = 1, 0.5\nrope.side = suffix\n") ==
        Strings{"rope", "rope partial=0.5 side=suffix"});
}

TEST_CASE("sweep: the table's format shows where something rotates", "[config][sweep]") {
  CHECK(names_of("[model]\nposition = rope, alibi\nrope.table_dtype = bf16\n") == Strings{"rope table=bf16", "alibi"});
  CHECK(names_of("[model]\nsource = a.gguf\nrope.table_dtype = fp16\n") == Strings{"a table=fp16"});
  CHECK(names_of("[model]\nsource = a.gguf\nrope.layers = all\nscaling = yarn\n") == Strings{"a layers=all yarn"});
}

TEST_CASE("sweep: the reading of a GGUF file shows where it is not the usual one", "[config][sweep]") {
  CHECK(names_of("[model]\nsource = a.gguf\nrope.gguf = lcpp\n") == Strings{"a gguf=lcpp"});
  CHECK(names_of("[model]\nsource = a.gguf\nrope.gguf = strict\n") == Strings{"a"});
}

TEST_CASE("sweep: checkpoints are called after their file, and declare their scaling", "[config][sweep]") {
  const std::vector<ModelVariant> variants = expand_variants(
      config_of("[model]\nsource = models/Smol.Q4_1.gguf\nscaling = declared, none, yarn\n[train]\nseeds = 1, 2\n"),
      plain_traits());
  REQUIRE(variants.size() == 3);
  CHECK(variants[0].name == "Smol.Q4_1");
  CHECK(variants[1].name == "Smol.Q4_1 none");
  CHECK(variants[2].name == "Smol.Q4_1 yarn");
  for (const ModelVariant& variant : variants) {
    CHECK(variant.position.empty());
    CHECK_FALSE(variant.train_seed.has_value());
    CHECK_FALSE(variant.trained_here());
  }
  CHECK(names_of("[model]\nsource = models/llama/\n") == Strings{"llama"});
  CHECK(expand_variants(config_of("[model]\nsource = a.gguf\n"), plain_traits())[0].scaling == "declared");
}

TEST_CASE("sweep: the order is fixed, the last axis runs fastest", "[config][sweep]") {
  const Strings names = names_of(
      "[model]\nrope.base = 100, 200\nrope.partial = 1, 0.5\nremap = none, rerope\nscaling = none, yarn\n"
      "scaling.factor = 2, 4\n[train]\nseeds = 1, 2\n");
  // Two each of base, partial, remap and seed; of scaling and factor: none, yarn 2, yarn 4.
  REQUIRE(names.size() == 2 * 2 * 2 * 2 * 3);
  CHECK(Strings(names.begin(), names.begin() + 7) ==
        Strings{"rope base=100", "rope base=100 yarn factor=2", "rope base=100 yarn factor=4", "rope base=100 seed=2",
                "rope base=100 seed=2 yarn factor=2", "rope base=100 seed=2 yarn factor=4", "rope base=100 rerope"});
  CHECK(names[12] == "rope base=100 partial=0.5");
  CHECK(names[24] == "rope base=200");
}

TEST_CASE("sweep: axes that do not apply collapse to one value", "[config][sweep]") {
  const std::string axes =
      "rope.base = 100, 200\nrope.partial = 0.5, 1\nremap = none, rerope\nscaling = linear, yarn\nscaling.factor = 2, "
      "4\n";
  const std::vector<ModelVariant> nope =
      expand_variants(config_of("[model]\nposition = nope\n" + axes), plain_traits());
  REQUIRE(nope.size() == 1);
  CHECK(nope[0].name == "nope");
  CHECK_FALSE(nope[0].rope_base.has_value());
  CHECK(nope[0].rope_partial == 1);
  CHECK(nope[0].scaling == "none");
  CHECK(nope[0].remap == "none");
  CHECK_FALSE(nope[0].scaling_factor.has_value());

  SweepTraits traits = plain_traits();
  traits.checkpoint_rotates = [](const std::string& source) { return source != "bloom"; };
  // Partial rotation is a matter of training: on a checkpoint the key is refused, the other axes apply.
  CHECK(fathom::test::config_error("[model]\nsource = llama\n" + axes).find("rope.partial = 0.5, 1 has no effect") !=
        std::string::npos);
  const std::string test_time_axes =
      "rope.base = 100, 200\nremap = none, rerope\nscaling = linear, yarn\nscaling.factor = 2, 4\n";
  const std::vector<ModelVariant> bloom =
      expand_variants(config_of("[model]\nsource = bloom\n" + test_time_axes), traits);
  REQUIRE(bloom.size() == 1);
  CHECK(bloom[0].scaling == "declared");
  CHECK(expand_variants(config_of("[model]\nsource = llama\n" + test_time_axes), traits).size() == 2 * 2 * 2 * 2);

  CHECK(names_of("[model]\nscaling = none, base\nscaling.factor = 2, 4\n") ==
        Strings{"rope", "rope base factor=2", "rope base factor=4"});
  CHECK(names_of("[model]\nsource = a.gguf\nscaling.factor = 2, 4\n") == Strings{"a"});
}

TEST_CASE("sweep: a named section stands for its fixed settings", "[config][sweep][models]") {
  CHECK(names_of("[model]\nrope.base = 10000\n[model.plain]\n[model.wide]\nrope.base = 100, 200\nscaling = yarn\n"
                 "[model.real]\nsource = x.gguf\nscaling = declared, yarn\n") ==
        Strings{"plain", "wide base=100", "wide base=200", "real", "real yarn"});
  const std::vector<ModelVariant> variants =
      expand_variants(config_of("[model.a]\nscaling.factor = 8\nscaling = yarn\n"), plain_traits());
  REQUIRE(variants.size() == 1);
  CHECK(variants[0].section == "a");
  CHECK(variants[0].scaling == "yarn");
  CHECK(variants[0].scaling_factor == 8);
}

TEST_CASE("sweep: each variant gets the plug-in options that are its own", "[config][sweep][plugins]") {
  const std::string text =
      "[model]\nposition = rope, alibi\nscaling = linear, yarn\nremap = none, rerope\nscaling.beta_fast = 16\n"
      "alibi.max_bias = 4\nremap.window = 64\n";
  const std::vector<ModelVariant> variants = expand_variants(config_of(text), full_traits());
  REQUIRE(variants.size() == 5);
  CHECK(variants[0].name == "rope linear");
  CHECK(variants[0].scaling_options.values().empty());
  CHECK(variants[0].remap_options.values().empty());
  CHECK(variants[0].scheme_options.values().empty());
  CHECK(variants[3].name == "rope rerope yarn");
  CHECK(variants[3].scaling_options.values() == std::map<std::string, std::string>{{"beta_fast", "16"}});
  CHECK(variants[3].scaling_options.where() == "[model] scaling:");
  CHECK(variants[3].remap_options.values() == std::map<std::string, std::string>{{"window", "64"}});
  CHECK(variants[4].name == "alibi");
  CHECK(variants[4].scheme_options.values() == std::map<std::string, std::string>{{"max_bias", "4"}});
  CHECK(variants[4].scaling_options.values().empty());
}

TEST_CASE("sweep: without the declared names every option goes on unread", "[config][sweep][plugins]") {
  const std::vector<ModelVariant> variants = expand_variants(
      config_of("[model]\nscaling = yarn\nscaling.beta_fast = 16\nalibi.max_bias = 4\n"), plain_traits());
  CHECK(variants[0].scaling_options.values() == std::map<std::string, std::string>{{"beta_fast", "16"}});
}

TEST_CASE("sweep: an option that no variant takes is an error", "[config][sweep][plugins][errors]") {
  CHECK(expand_error("[model]\nscaling = yarn\nscaling.beta_fats = 16\n", full_traits()) ==
        "config: [model] scaling.beta_fats = 16 is an option of nothing that this run uses; did you mean "
        "'scaling.beta_fast'?");
  CHECK(expand_error("[model]\nalibi.max_bias = 4\n", full_traits()) ==
        "config: [model] alibi.max_bias = 4 is an option of nothing that this run uses");
  CHECK(expand_error("[model.a]\nsource = x.gguf\nscaling.beta_fast = 4\n", full_traits()).empty());
  CHECK(expand_error("[model]\nscaling.beta_fast = 4\n[model.a]\nscaling = none\n[model.b]\nscaling = yarn\n",
                     full_traits())
            .empty());
}

TEST_CASE("sweep: a model cannot be called like a scheme", "[config][sweep][errors]") {
  CHECK(expand_error("[model.alibi]\nposition = alibi\n", full_traits()) ==
        "config: section [model.alibi]: 'alibi' is a position scheme, so keys such as alibi.* would be read as this "
        "model's; rename it, for example [model.alibi_1]");
}

TEST_CASE("sweep: bad axes of a config made in code are errors, not crashes", "[config][sweep][errors]") {
  RunConfig config = config_of("");
  config.models[0].position.clear();
  CHECK_THROWS_AS(expand_variants(config, plain_traits()), ConfigError);
  CHECK_THROWS_WITH(expand_variants(config, plain_traits()), "config: [model] position is an empty list");
  config = config_of("");
  config.models[0].rope_base = {"many"};
  CHECK_THROWS_WITH(expand_variants(config, plain_traits()), "config: [model] rope.base = many is not a number");
  config = config_of("");
  config.models[0].scaling = {"yarn", "yarn"};
  CHECK_THROWS_WITH(expand_variants(config, plain_traits()),
                    "config: two variants are called 'rope yarn'; leave out the value that is given twice");
  config = config_of("");
  config.train.seeds = {"first"};
  CHECK_THROWS_WITH(expand_variants(config, plain_traits()), "config: [train] seeds = first is not an integer");
}
