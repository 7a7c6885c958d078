#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/position/position_registry.h"
#include "harness/train/recipe.h"
#include "harness/train/trainer.h"

namespace fathom::train {
namespace {

constexpr std::int64_t kSinusoidalPositions =
    512;  // random starts up to here; without them four needles reach .95 at the trained length

Recipe recipe_by_name(const std::string& name) {
  Recipe recipe;
  if (name == "A") {
    recipe.name = "A";
  } else if (name == "B") {
    recipe.name = "B";
    recipe.n_layers = 3;
    recipe.bos = true;
    recipe.auxiliary_heads = 2;
  } else {
    throw ConfigError(fmt::format("train: unknown recipe '{}'; known: A, B", name));
  }
  return recipe;
}

void require_in_range(const char* name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    throw ConfigError(fmt::format("train: {} = {} is outside {}..{}", name, value, low, high));
}

std::string canonical_scheme_options(const TrainSpec& spec, const position::PositionInfo& info) {
  std::string out;
  const auto& given = spec.scheme_options.values();
  for (const OptionDescription& option : info.describe()) {
    const auto found = given.find(option.name);
    out += fmt::format("{}={},", option.name, found == given.end() ? option.default_value : found->second);
  }
  return out;
}

}  // namespace

Recipe make_recipe(const TrainSpec& spec) {
  Recipe recipe = recipe_by_name(spec.recipe);
  recipe.n_layers = spec.n_layers.value_or(recipe.n_layers);
  recipe.d_model = spec.d_model.value_or(recipe.d_model);
  recipe.n_heads = spec.n_heads.value_or(recipe.n_heads);
  recipe.d_ff = spec.d_ff.value_or(spec.d_model ? 2 * *spec.d_model : recipe.d_ff);
  require_in_range("n_layers", recipe.n_layers, 1, 64);
  require_in_range("d_model", recipe.d_model, 8, 4096);
  require_in_range("n_heads", recipe.n_heads, 1, 128);
  require_in_range("d_ff", recipe.d_ff, 8, 16384);
  require_in_range("context", spec.context, 32, 8192);
  require_in_range("max_steps", spec.max_steps, 1, 10000000);
  if (recipe.d_model % recipe.n_heads != 0) {
    throw ConfigError(fmt::format("train: n_heads = {} does not divide d_model = {}", recipe.n_heads, recipe.d_model));
  }
  const bool absolute = spec.position == "learned" || spec.position == "sinusoidal";
  if (absolute && spec.recipe == "B") {
    recipe.position_limit = spec.position == "learned" ? spec.context : std::max(kSinusoidalPositions, spec.context);
    if (spec.position == "learned") {
      recipe.position_edge = 32;
      recipe.varied_queries_share = 0.5;
      recipe.decay_steps = 300;
    }
  }
  return recipe;
}

std::string TrainSpec::canonical() const {
  const Recipe r = make_recipe(*this);
  const position::PositionInfo& info = position::position_infos().at(position);
  std::string out = fmt::format("recipe={}/{};position={}/{};", recipe, r.version, position, info.version);
  out += fmt::format("options={};", canonical_scheme_options(*this, info));
  if (info.rotates)
    out += fmt::format("rope_base={};rope_layout={};rope_partial={};", format_double(rope_base), rope_layout,
                       format_double(rope_partial));
  if (info.rotates && rope_side != "prefix") out += fmt::format("rope_side={};", rope_side);
  out += fmt::format("nope_layers={};context={};tasks={};seed={};", nope_layers, context, join(tasks, ","), seed);
  out += fmt::format("n_layers={};d_model={};n_heads={};d_ff={};max_steps={};", r.n_layers, r.d_model, r.n_heads,
                     r.d_ff, max_steps);
  const text::VocabularySpec& v = vocabulary;
  out += fmt::format("vocabulary=k{},v{},f{},e{},c{},t{},d{}", v.n_keys, v.n_values, v.n_fillers, v.n_names, v.n_cues,
                     v.n_targets, v.n_digits);
  return out;
}

std::string cache_folder(const TrainSpec& spec, const std::string& cache_root) {
  return cache_root + "/models/" + hash_hex(spec.canonical());
}

}  // namespace fathom::train
