#pragma once
// Closed-form predictions for a model's layers, as JSON and as text.

#include <cstdint>
#include <string>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::cli {

struct TheoryQuestion {
  checkpoint::DecoderConfig pretrained;  ///< the model as it was trained
  checkpoint::DecoderConfig config;      ///< the same model as it is tested: base and scaling may differ
  std::int64_t trained = 0;              ///< tokens
  std::int64_t tested = 0;               ///< tokens
  double epsilon = 1e-3;                 ///< share at which ALiBi's penalty counts as the horizon
  enum class Curve { kNone, kDecay } curve = Curve::kNone;
};

/// {"name", "claimed_context", "trained_context", "tested_length", "groups": [{"layers": […], "position", …}],
/// "warnings": […]}: layers that predict the same stand in one group. \throws ConfigError  for what a scaling method
/// refuses.
std::string theory_json(const TheoryQuestion& question);

/// The same for reading. \param json  what theory_json returned.
std::string theory_text(const std::string& json);

}  // namespace fathom::cli
