#pragma once
// What the measurements of `fathom bench` ask of a model.

#include <cstdint>
#include <vector>

#include "harness/cli/command.h"
#include "harness/lm/language_model.h"

namespace fathom::cli {

/// Token counts of --lengths. \throws ConfigError  naming what is none.
std::vector<std::int64_t> bench_lengths(const Arguments& arguments, const char* fallback);

/// A prompt of so many ids. Any will do: time does not depend on them. No id stops, so that the answer has its whole
/// length.
lm::Request drawn_request(std::int64_t length, std::int64_t vocab_size);

}  // namespace fathom::cli
