#pragma once
// Where YaRN's ramp lies among the channels.

#include <vector>

#include "harness/rope/rope_scaling.h"

namespace fathom::rope {

enum class YarnRounding {
  kOutwards,  ///< floor below, ceiling above: all code but gpt-oss's
  kNone
};
enum class YarnClamp {
  kRotaryDim,  ///< r - 1: all code
  kChannels    ///< r/2 - 1
};

struct YarnRampSettings {
  double beta_fast = 32;  ///< turns over L0
  double beta_slow = 1;   ///< turns over L0
  YarnRounding rounding = YarnRounding::kOutwards;
  YarnClamp clamp = YarnClamp::kRotaryDim;
};

struct YarnRamp {
  double low = 0;   ///< channels up to here keep their frequency
  double high = 0;  ///< channels from here on are divided by the whole factor; above low
};

/// Channels that turn beta_fast and beta_slow times over the original context (Peng et al. 2023, section 3.2):
///
///   channel(n) = r ln(L0 / (2 pi n)) / (2 ln b), rounded and clamped to 0 and r - 1; high + 0.001 where both meet.
YarnRamp yarn_ramp(const RopeGeometry& geometry, const YarnRampSettings& settings);

}  // namespace fathom::rope
