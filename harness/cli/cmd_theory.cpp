#include <fmt/format.h>

#include <algorithm>

#include "harness/checkpoint/checkpoint.h"
#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/model_config.h"
#include "harness/cli/position_settings.h"
#include "harness/cli/theory_predictions.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

constexpr std::int64_t kTheoryLongest = INT64_C(1) << 40;  // tokens

double theory_number(const Arguments& arguments, const char* name, double fallback, double low, double high) {
  const auto text = arguments.get(name);
  if (!text) return fallback;
  const auto value = parse_double(*text);
  if (!value || *value < low || *value > high) {
    throw ConfigError(
        fmt::format("--{} {} is not a number in {}..{}", name, *text, format_double(low), format_double(high)));
  }
  return *value;
}

/// One layer with the scheme that the options describe, before scaling.
checkpoint::DecoderConfig config_of_options(const Arguments& arguments) {
  checkpoint::LayerSpec layer;
  checkpoint::PositionSpec& position = layer.position;
  position.kind = arguments.get_or("scheme", "rope");
  layer.n_heads = arguments.integer("heads", 1, 1 << 16).value_or(32);
  const std::int64_t rotary_dim = arguments.integer("rotary-dim", 2, 1 << 16).value_or(128);
  layer.d_head = arguments.integer("head-dim", 1, 1 << 16).value_or(rotary_dim);
  if (position.kind == "rope") {
    if (rotary_dim % 2 != 0 || rotary_dim > layer.d_head) {
      throw ConfigError(
          fmt::format("--rotary-dim {} must be even and at most --head-dim {}", rotary_dim, layer.d_head));
    }
    position.rotary_dim = rotary_dim;
    position.rope_base = theory_number(arguments, "base", 10000, 1.0001, 1e15);
  }
  for (const auto& [option, name] : {std::pair("max-bias", "max_bias"), std::pair("buckets", "buckets"),
                                     std::pair("max-distance", "max_distance"), std::pair("extent", "extent")}) {
    if (const auto value = arguments.get(option)) {
      position.options[name] = format_double(theory_number(arguments, option, 0, 1, 1e9));
    }
  }
  checkpoint::DecoderConfig config;
  config.name = "options";
  config.layers = {layer};
  config.trained_context = arguments.integer("trained", 1, kTheoryLongest).value_or(4096);
  config.claimed_context = *config.trained_context;
  return config;
}

/// The short options are the same keys as --set's.
std::vector<std::string> scaling_settings(const Arguments& arguments) {
  std::vector<std::string> settings = arguments.all("set");
  for (const auto& [option, key] : {std::pair("scaling", "scaling"), std::pair("factor", "scaling.factor"),
                                    std::pair("original-context", "scaling.original_context")}) {
    if (const auto value = arguments.get(option)) settings.push_back(std::string(key) + "=" + *value);
  }
  if (arguments.has("MODEL") && arguments.has("base")) settings.push_back("rope.base=" + *arguments.get("base"));
  return settings;
}

void refuse_options_beside_model(const Arguments& arguments) {
  if (!arguments.has("MODEL")) return;
  for (const char* option :
       {"scheme", "rotary-dim", "head-dim", "heads", "max-bias", "buckets", "max-distance", "extent"}) {
    if (!arguments.has(option)) continue;
    throw ConfigError(fmt::format("theory: --{} describes a scheme without a model; {} says it itself", option,
                                  *arguments.get("MODEL")));
  }
}

/// The model as it was trained: what the file or the options say, with --trained and --pretrained-base.
checkpoint::DecoderConfig pretrained_config(const Arguments& arguments) {
  checkpoint::DecoderConfig config =
      arguments.has("MODEL") ? read_model_or_preset(*arguments.get("MODEL")) : config_of_options(arguments);
  if (const auto trained = arguments.integer("trained", 1, kTheoryLongest)) config.trained_context = *trained;
  return config;
}

void set_pretrained_base(const Arguments& arguments, checkpoint::DecoderConfig& config) {
  if (!arguments.has("pretrained-base")) return;
  const double base = theory_number(arguments, "pretrained-base", 0, 1.0001, 1e15);
  for (checkpoint::LayerSpec& layer : config.layers) {
    if (!layer.position.own_rotation) layer.position.rope_base = base;
  }
}

int run_theory(const Arguments& arguments) {
  refuse_options_beside_model(arguments);
  TheoryQuestion question;
  question.pretrained = pretrained_config(arguments);
  question.trained = arguments.integer("trained", 1, kTheoryLongest)
                         .value_or(checkpoint::default_original_context(question.pretrained));
  question.trained = std::max<std::int64_t>(1, question.trained);
  question.tested = arguments.integer("length", 1, kTheoryLongest)
                        .value_or(std::max(question.trained, question.pretrained.claimed_context));
  question.epsilon = theory_number(arguments, "epsilon", 1e-3, 1e-300, 0.999999);
  if (arguments.has("curve")) question.curve = TheoryQuestion::Curve::kDecay;
  question.config = apply_position_settings(question.pretrained, scaling_settings(arguments), question.tested);
  set_pretrained_base(arguments, question.pretrained);
  const std::string json = theory_json(question);
  fmt::print("{}", arguments.has("json") ? json : theory_text(json));
  return static_cast<int>(ExitCode::kOk);
}

std::vector<OptionSpec> theory_options() {
  return {
      {"base", "B", "theta of the rotation (default 10000, or the model's)", {}},
      {"rotary-dim", "N", "lanes of a head that rotate (default 128)", {}},
      {"head-dim", "N", "lanes of a head (default: all rotate)", {}},
      {"scaling", "METHOD", "one of `fathom list scalings`", {}},
      {"factor", "S", "factor of the scaling, or auto (default: tested / original length)", {}},
      {"original-context", "N", "L0 of the scaling (default: the trained length)", {}},
      {"set", "KEY=VALUE", "further knobs, scaling.beta_fast=16; may be repeated", {}, OptionSpec::Count::kRepeated},
      {"pretrained-base", "B", "theta of pretraining, where the base was raised afterwards", {}},
      {"trained", "N", "trained length, tokens (default 4096, or what the model says)", {}},
      {"length", "N", "tested length, tokens (default: the claimed context)", {}},
      {"scheme", "KIND", "without MODEL (default rope)", {"rope", "alibi", "t5", "inkling", "nope"}},
      {"heads", "N", "heads, for ALiBi's slopes (default 32)", {}},
      {"max-bias", "B", "ALiBi's exponent of the last slope (default 8)", {}},
      {"epsilon", "E", "ALiBi's horizon is where the penalty is ln(1/E) (default 0.001)", {}},
      {"buckets", "N", "T5's buckets (default 32)", {}},
      {"max-distance", "N", "T5's largest distance (default 128)", {}},
      {"extent", "N", "Inkling's extent (default 1024)", {}},
      {"curve", "", "expected score by distance as well", {}},
      {"json", "", "machine-readable", {}}};
}

}  // namespace

CommandEntry entries::theory_entry() {
  return {
      "theory",
      "closed-form predictions for a frequency list: periods, wrapped channels, bounds and horizons",
      "Reads what `inspect` reads (no weights needed), or takes a scheme from the options, and prints what follows\n"
      "from the formulas alone: periods and wrapped channels at the trained and the tested length, the critical\n"
      "dimension and base of Liu et al. 2023, the distance at which the base bound of Men et al. 2024 fails, the\n"
      "horizons of ALiBi, T5 and Inkling, and what number formats lose. Predictions are not measurements.",
      {"fathom theory SmolLM2-135M-Instruct.Q4_1.gguf --length 32768",
       "fathom theory --base 500000 --trained 8192 --length 131072 --set scaling=llama3 --factor 8",
       "fathom theory --base 1000000 --pretrained-base 10000 --trained 4096 --length 65536 --curve",
       "fathom theory --scheme alibi --heads 32 --length 65536 --json"},
      {{"MODEL", ".gguf file, folder with config.json, a config.json, or a preset", PositionalSpec::Need::kOptional}},
      theory_options(),
      run_theory};
}

}  // namespace fathom::cli
