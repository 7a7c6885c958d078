#pragma once
// Multiplies the axes of a RunConfig into variants (model settings) and cells (task, length, depth), in a fixed order.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/config/run_config.h"

namespace fathom::config {

/// One point of the model axes.
struct ModelVariant {
  std::string name;      ///< from the non-default values, for example "rope base=10000 yarn"; unique in a run
  std::string section;   ///< NAME of [model.NAME], may be empty
  std::string source;    ///< train, path, preset
  std::string position;  ///< scheme name (trained models)
  std::optional<double> rope_base;
  std::string rope_layout;
  double rope_partial = 1;
  std::string rope_side;
  std::string rope_layers = "global";
  std::string rope_gguf = "strict";
  std::string rope_table_dtype = "float32";
  std::string nope_layers;
  std::string scaling;                   ///< method, "declared" or "base"
  std::optional<double> scaling_factor;  ///< nothing = auto
  std::optional<std::int64_t> original_context;
  std::string scaling_mode;
  std::optional<std::int64_t> frozen_length;  ///< nothing = the tested length
  std::string remap;
  std::string temperature;  ///< kind, or "declared"
  std::optional<double> temperature_scale;
  std::optional<std::int64_t> temperature_length;
  std::string dtype;
  std::optional<std::int64_t> train_seed;  ///< trained models only
  OptionSource scheme_options;             ///< keys of `SCHEME.` for this variant's scheme, prefix removed
  OptionSource scaling_options;            ///< keys of `scaling.` that the frame does not know, prefix removed
  OptionSource remap_options;

  bool trained_here() const { return source == "train"; }
};

/// What the expansion must know of the registries, which only the command line sees. Members that are left empty check
/// nothing.
struct SweepTraits {
  std::function<bool(const std::string& scheme)> scheme_rotates;  ///< scaling and base axes collapse without rotation
  std::function<bool(const std::string& scaling)> scaling_uses_factor;  ///< the factor axis collapses for `none`
  std::function<bool(const std::string& source)> checkpoint_rotates =
      nullptr;  ///< the same question about a checkpoint or preset; empty = yes
  /// Names of the options that a scheme, scaling method or remap declares. With them each variant gets only the options
  /// that are its own, and one that no variant takes is an error.
  std::function<std::vector<std::string>(const std::string& scheme)> scheme_options = nullptr;
  std::function<std::vector<std::string>(const std::string& scaling)> scaling_options = nullptr;
  std::function<std::vector<std::string>(const std::string& remap)> remap_options = nullptr;
  std::vector<std::string> schemes = {};  ///< names of the schemes: no [model.NAME] may be called so
  /// Whether a method's list changes with the length, so that scaling.mode says something; empty = every method's may.
  std::function<bool(const std::string& scaling, const OptionSource& options)> depends_on_length = nullptr;
};

/// Fixed order: model sections, then position, rope.base, rope.partial, remap, temperature, seeds, scaling, factor. An
/// axis that
/// does not apply to a point collapses to one value: without rotation base, partial, remap, scaling and factor; the
/// factor under `none` and `declared`; position and seeds of a checkpoint (its `position` stays empty). \throws
/// ConfigError for bad numbers, empty axes, names and options as SweepTraits says.
std::vector<ModelVariant> expand_variants(const RunConfig& config, const SweepTraits& traits);

/// `sweep.lengths`, or where it is left out the default: 0.5x … 8x for a model trained here, RULER's six (4K … 128K)
/// for a checkpoint.
std::vector<std::string> length_entries(const SweepSection& sweep, const ModelVariant& variant);

/// Exact token counts, in the order given, each once. `4K` = 4096; `1.5x` = times `reference_tokens` (the trained
/// length, else the claimed one), rounded to the nearest integer. \throws ConfigError for zero, negative or unreadable
/// entries.
std::vector<std::int64_t> expand_lengths(const std::vector<std::string>& entries, std::int64_t reference_tokens);

/// Depths in 1/100 percent; `0:100:10` is a range, both ends included. \throws ConfigError for values outside 0..100 or
/// more than two decimals. The one word `spread` gives none: a sample's depth follows from its index then.
std::vector<std::int32_t> expand_depths(const std::vector<std::string>& entries);

}  // namespace fathom::config
