#include "harness/config/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::config {
namespace {

/// What models trained here use where the configuration names no base: stating it changes nothing, so it names nothing.
constexpr double kDefaultRopeBase = 10000;

std::string section_label(const ModelSection& model) {
  return model.name.empty() ? "[model]" : fmt::format("[model.{}]", model.name);
}

double axis_number(const ModelSection& model, const std::string& key, const std::string& text) {
  const auto number = parse_double(text);
  if (!number) throw ConfigError(fmt::format("config: {} {} = {} is not a number", section_label(model), key, text));
  return *number;
}

std::int64_t axis_seed(const std::string& text) {
  const auto seed = parse_int(text);
  if (!seed) throw ConfigError(fmt::format("config: [train] seeds = {} is not an integer", text));
  return *seed;
}

/// The file or folder name of a checkpoint without its extension: what a reader calls the model.
std::string checkpoint_stem(std::string source) {
  while (source.size() > 1 && source.back() == '/') source.pop_back();
  source = source.substr(source.find_last_of('/') + 1);
  return ends_with(source, ".gguf") ? source.substr(0, source.size() - 5) : source;
}

/// Options of `plugin_options` whose key starts with `prefix`, prefix removed; with `declared`, only those.
OptionSource own_options(const ModelSection& model, const std::string& prefix,
                         const std::optional<std::vector<std::string>>& declared) {
  std::map<std::string, std::string> own;
  for (const auto& [key, value] : model.plugin_options) {
    if (!starts_with(key, prefix)) continue;
    const std::string name = key.substr(prefix.size());
    if (declared && std::find(declared->begin(), declared->end(), name) == declared->end()) continue;
    own.emplace(name, value);
  }
  return OptionSource(fmt::format("{} {}:", section_label(model), prefix.substr(0, prefix.size() - 1)), std::move(own));
}

/// Multiplies the axes of one model section.
class SectionExpander {
 public:
  SectionExpander(const ModelSection& model, const TrainSection& train, const SweepTraits& traits)
      : model_(model), train_(train), traits_(traits) {}

  std::vector<ModelVariant> expand();

 private:
  struct Axes {
    std::vector<std::string> base, partial, remap, temperature, seeds, scaling;
  };

  void require_axes() const;
  Axes axes_of(const std::string& position) const;
  std::vector<std::string> factors_of(const std::string& scaling) const;
  bool rotates(const std::string& position) const;
  bool trained() const { return model_.source == "train"; }
  std::string default_scaling() const { return trained() ? "none" : "declared"; }
  std::string default_temperature() const { return trained() ? "none" : "declared"; }
  ModelVariant make(const std::string& position) const;
  void expand_seeds(const Axes& axes, const ModelVariant& start);
  void expand_scaling(const Axes& axes, const ModelVariant& start);
  void add_options(ModelVariant& variant) const;
  std::string name_of(const ModelVariant& variant) const;

  const ModelSection& model_;
  const TrainSection& train_;
  const SweepTraits& traits_;
  std::vector<ModelVariant> variants_;
};

void SectionExpander::require_axes() const {
  const std::vector<std::pair<std::string, bool>> empty_axes = {{"position", model_.position.empty()},
                                                                {"rope.partial", model_.rope_partial.empty()},
                                                                {"scaling.factor", model_.scaling_factor.empty()},
                                                                {"remap", model_.remap.empty()},
                                                                {"train.seeds", trained() && train_.seeds.empty()}};
  for (const auto& [key, empty] : empty_axes) {
    if (empty) throw ConfigError(fmt::format("config: {} {} is an empty list", section_label(model_), key));
  }
}

bool SectionExpander::rotates(const std::string& position) const {
  if (trained()) return traits_.scheme_rotates(position);
  return traits_.checkpoint_rotates == nullptr || traits_.checkpoint_rotates(model_.source);
}

SectionExpander::Axes SectionExpander::axes_of(const std::string& position) const {
  Axes axes;
  axes.seeds = trained() ? train_.seeds : std::vector<std::string>{""};
  // A temperature acts on the queries of every scheme.
  axes.temperature = model_.temperature.empty() ? std::vector<std::string>{default_temperature()} : model_.temperature;
  if (!rotates(position)) {
    axes.base = {""};
    axes.partial = {"1"};
    axes.remap = {"none"};
    axes.scaling = {default_scaling()};
    return axes;
  }
  axes.base = model_.rope_base.empty() ? std::vector<std::string>{""} : model_.rope_base;
  axes.partial = model_.rope_partial;
  axes.remap = model_.remap;
  axes.scaling = model_.scaling.empty() ? std::vector<std::string>{default_scaling()} : model_.scaling;
  return axes;
}

std::vector<std::string> SectionExpander::factors_of(const std::string& scaling) const {
  if (scaling == "declared") return {"auto"};
  // theta x factor: the one method that is no entry of the scaling registry.
  if (scaling == "base" || traits_.scaling_uses_factor(scaling)) return model_.scaling_factor;
  return {"auto"};
}

ModelVariant SectionExpander::make(const std::string& position) const {
  ModelVariant variant;
  variant.section = model_.name;
  variant.source = model_.source;
  variant.position = position;
  variant.rope_layout = model_.rope_layout;
  variant.rope_side = model_.rope_side;
  variant.rope_layers = model_.rope_layers;
  variant.rope_gguf = model_.rope_gguf;
  variant.rope_table_dtype = model_.rope_table_dtype;
  variant.nope_layers = model_.nope_layers;
  variant.original_context = model_.original_context;
  variant.scaling_mode = model_.scaling_mode;
  variant.frozen_length = model_.frozen_length;
  variant.temperature_scale = model_.temperature_scale;
  variant.temperature_length = model_.temperature_length;
  variant.dtype = model_.dtype;
  return variant;
}

std::vector<ModelVariant> SectionExpander::expand() {
  require_axes();
  const std::vector<std::string> positions = trained() ? model_.position : std::vector<std::string>{""};
  for (const std::string& position : positions) {
    const Axes axes = axes_of(position);
    ModelVariant variant = make(position);
    for (const std::string& base : axes.base) {
      variant.rope_base.reset();
      if (!base.empty()) variant.rope_base = axis_number(model_, "rope.base", base);
      for (const std::string& partial : axes.partial) {
        variant.rope_partial = axis_number(model_, "rope.partial", partial);
        for (const std::string& remap : axes.remap) {
          variant.remap = remap;
          for (const std::string& temperature : axes.temperature) {
            variant.temperature = temperature;
            expand_seeds(axes, variant);
          }
        }
      }
    }
  }
  return std::move(variants_);
}

void SectionExpander::expand_seeds(const Axes& axes, const ModelVariant& start) {
  for (const std::string& seed : axes.seeds) {
    ModelVariant variant = start;
    if (!seed.empty()) variant.train_seed = axis_seed(seed);
    expand_scaling(axes, variant);
  }
}

void SectionExpander::expand_scaling(const Axes& axes, const ModelVariant& start) {
  for (const std::string& scaling : axes.scaling) {
    for (const std::string& factor : factors_of(scaling)) {
      ModelVariant variant = start;
      variant.scaling = scaling;
      if (factor != "auto") variant.scaling_factor = axis_number(model_, "scaling.factor", factor);
      add_options(variant);
      variant.name = name_of(variant);
      variants_.push_back(std::move(variant));
    }
  }
}

void SectionExpander::add_options(ModelVariant& variant) const {
  std::optional<std::vector<std::string>> scheme, scaling, remap;
  if (traits_.scheme_options && trained()) scheme = traits_.scheme_options(variant.position);
  // What a checkpoint declares is known to whoever reads it, so its knobs go on unread.
  if (variant.scaling == "base") scaling.emplace();
  if (traits_.scaling_options && variant.scaling != "declared" && variant.scaling != "base") {
    scaling = traits_.scaling_options(variant.scaling);
  }
  if (variant.remap == "none") remap.emplace();
  if (traits_.remap_options && variant.remap != "none") remap = traits_.remap_options(variant.remap);
  if (trained()) variant.scheme_options = own_options(model_, variant.position + ".", scheme);
  variant.scaling_options = own_options(model_, "scaling.", scaling);
  variant.remap_options = own_options(model_, "remap.", remap);
}

std::string SectionExpander::name_of(const ModelVariant& variant) const {
  // A named section stands for its fixed settings; an axis of several values always shows.
  const bool named = !model_.name.empty();
  std::vector<std::string> parts;
  const auto add = [&](bool differs, std::size_t n_values, const std::string& part) {
    if (differs && (!named || n_values > 1)) parts.push_back(part);
  };
  if (named) parts.push_back(model_.name);
  if (!named && !trained()) parts.push_back(checkpoint_stem(model_.source));
  add(trained(), model_.position.size(), variant.position);
  const bool has_rotation = rotates(variant.position);
  const bool usual_base = trained() && variant.rope_base.value_or(kDefaultRopeBase) == kDefaultRopeBase;
  add(variant.rope_base.has_value() && !usual_base, model_.rope_base.size(),
      fmt::format("base={}", format_double(variant.rope_base.value_or(0))));
  add(variant.rope_partial != 1, model_.rope_partial.size(),
      fmt::format("partial={}", format_double(variant.rope_partial)));
  add(has_rotation && variant.rope_layout != ModelSection().rope_layout, 1, "layout=" + variant.rope_layout);
  add(has_rotation && variant.rope_side != ModelSection().rope_side && variant.rope_partial != 1, 1,
      "side=" + variant.rope_side);
  add(has_rotation && variant.rope_layers != ModelSection().rope_layers, 1, "layers=" + variant.rope_layers);
  add(has_rotation && !trained() && variant.rope_gguf != ModelSection().rope_gguf, 1, "gguf=" + variant.rope_gguf);
  add(has_rotation && variant.rope_table_dtype != ModelSection().rope_table_dtype, 1,
      "table=" + variant.rope_table_dtype);
  add(variant.nope_layers != "none", 1, "nope_layers=" + replace_all(variant.nope_layers, " ", ""));
  add(variant.remap != "none", model_.remap.size(), variant.remap);
  add(variant.temperature != default_temperature(), model_.temperature.size(), "temperature=" + variant.temperature);
  add(variant.train_seed.value_or(1) != 1, train_.seeds.size(), fmt::format("seed={}", variant.train_seed.value_or(1)));
  const bool scaled = variant.scaling != default_scaling();
  add(scaled, model_.scaling.size(), variant.scaling);
  add(variant.scaling_factor.has_value(), model_.scaling_factor.size(),
      fmt::format("factor={}", format_double(variant.scaling_factor.value_or(1))));
  const bool has_mode = traits_.depends_on_length == nullptr
                            ? scaled
                            : traits_.depends_on_length(variant.scaling, variant.scaling_options);
  add(has_mode && variant.scaling_mode != ModelSection().scaling_mode, 1, "mode=" + variant.scaling_mode);
  add(has_rotation && variant.original_context.has_value(), 1,
      fmt::format("L0={}", variant.original_context.value_or(0)));
  add(variant.dtype != "auto", 1, variant.dtype);
  return join(parts, " ");
}

/// Plug-in options that no variant took. A key of [model] that serves one of several models is in use.
void require_claimed(const RunConfig& config, const std::vector<ModelVariant>& variants, const SweepTraits& traits) {
  std::set<std::string> claimed;
  std::set<std::string> near_candidates;
  const auto claim = [&](const std::string& prefix, const OptionSource& source, const auto& names_of,
                         const std::string& item) {
    for (const auto& [key, value] : source.values()) claimed.insert(prefix + key);
    if (!names_of || item.empty() || item == "declared" || item == "base") return;
    for (const std::string& name : names_of(item)) near_candidates.insert(prefix + name);
  };
  for (const ModelVariant& variant : variants) {
    claim(variant.position + ".", variant.scheme_options, traits.scheme_options, variant.position);
    claim("scaling.", variant.scaling_options, traits.scaling_options, variant.scaling);
    claim("remap.", variant.remap_options, traits.remap_options, variant.remap == "none" ? "" : variant.remap);
  }
  for (const OptionDescription& option : describe_options(ModelSection())) near_candidates.insert(option.name);
  std::vector<std::string> problems;
  for (const ModelSection& model : config.models) {
    for (const auto& [key, value] : model.plugin_options) {
      if (claimed.count(key) != 0) continue;
      const auto near_key = nearest_name(key, {near_candidates.begin(), near_candidates.end()});
      problems.push_back(fmt::format("{} {} = {} is an option of nothing that this run uses{}", section_label(model),
                                     key, value,
                                     near_key ? fmt::format("; did you mean '{}'?", *near_key) : std::string()));
    }
  }
  if (!problems.empty()) throw ConfigError("config: " + join(problems, "\nconfig: "));
}

}  // namespace

std::vector<ModelVariant> expand_variants(const RunConfig& config, const SweepTraits& traits) {
  std::vector<ModelVariant> variants;
  for (const ModelSection& model : config.models) {
    if (std::find(traits.schemes.begin(), traits.schemes.end(), model.name) != traits.schemes.end()) {
      throw ConfigError(
          fmt::format("config: section [model.{0}]: '{0}' is a position scheme, so keys such as {0}.* would be read as "
                      "this model's; "
                      "rename it, for example [model.{0}_1]",
                      model.name));
    }
    std::vector<ModelVariant> own = SectionExpander(model, config.train, traits).expand();
    std::move(own.begin(), own.end(), std::back_inserter(variants));
  }
  if (traits.scheme_options && traits.scaling_options && traits.remap_options)
    require_claimed(config, variants, traits);
  std::set<std::string> names;
  for (const ModelVariant& variant : variants) {
    if (!names.insert(variant.name).second) {
      throw ConfigError(
          fmt::format("config: two variants are called '{}'; leave out the value that is given twice", variant.name));
    }
  }
  return variants;
}

}  // namespace fathom::config
