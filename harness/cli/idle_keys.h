#pragma once
// Keys that are given and change nothing: an error, because whoever wrote them expects something else to run.

#include <string>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/config/sweep.h"

namespace fathom::cli {

/// A variant and what its settings came to.
struct ResolvedVariant {
  const config::ModelVariant* settings = nullptr;
  checkpoint::DecoderConfig config;
};

/// One line a key of the position settings that no variant of the run acts on; a key of [model] that serves one of
/// several models is in use.
std::vector<std::string> idle_position_keys(const std::vector<ResolvedVariant>& variants);

}  // namespace fathom::cli
