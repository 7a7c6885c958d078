#pragma once
// Checks that several scaling methods share.

#include <string_view>

#include "harness/rope/rope_scaling.h"

namespace fathom::rope {

/// \throws ConfigError  unless factor is finite and at least 1.
void require_factor(std::string_view method, double factor);
/// \throws ConfigError  unless the geometry names the context the model was trained on.
void require_original_context(std::string_view method, const RopeGeometry& geometry);
/// \throws ConfigError  for fewer than two channels: the exponent r / (r - 2) of a base change has no value there.
void require_base_change(std::string_view method, const RopeGeometry& geometry);
/// Numbers of a comma-separated option. \throws ConfigError naming the entry that is no number above 0.
std::vector<double> parse_divisors(std::string_view method, std::string_view option,
                                   const std::vector<std::string>& entries);
/// inv_freq[i] /= divisors[i]. \throws ConfigError unless there is one divisor per channel.
void divide_channels(std::string_view method, std::string_view option, const std::vector<double>& divisors,
                     std::vector<double>& inv_freq);

}  // namespace fathom::rope
