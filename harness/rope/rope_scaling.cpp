#include "harness/rope/rope_scaling.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/rope/methods/method_checks.h"

namespace fathom::rope {

std::vector<double> default_inv_freq(std::int64_t rotary_dim, double base) {
  if (rotary_dim <= 0 || rotary_dim % 2 != 0) {
    throw ConfigError(fmt::format("rope: rotary_dim = {} must be an even number above 0", rotary_dim));
  }
  if (!(base > 0) || !std::isfinite(base)) {
    throw ConfigError(fmt::format("rope: base = {} must be a finite number above 0", format_double(base)));
  }
  std::vector<double> inv_freq;
  inv_freq.reserve(static_cast<std::size_t>(rotary_dim / 2));
  for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
    inv_freq.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim)));
  }
  return inv_freq;
}

std::string_view to_string(LengthPolicy policy) {
  switch (policy) {
    case LengthPolicy::kFixed:
      return "fixed";
    case LengthPolicy::kConsistent:
      return "consistent";
    case LengthPolicy::kFrozen:
      return "frozen";
    case LengthPolicy::kHf:
      return "hf";
  }
  return "";
}

LengthPolicy parse_length_policy(std::string_view name) {
  for (const LengthPolicy policy :
       {LengthPolicy::kFixed, LengthPolicy::kConsistent, LengthPolicy::kFrozen, LengthPolicy::kHf}) {
    if (to_string(policy) == name) return policy;
  }
  throw ConfigError(fmt::format("scaling: mode = '{}' must be fixed, consistent, frozen or hf", name));
}

const Registry<RopeScalingEntry>& scalings() {
  static const Registry<RopeScalingEntry> registry("scaling method", {
#define FATHOM_ROPE_SCALING(name) methods::name##_entry(),
#include "harness/rope/scalings.inc"
#undef FATHOM_ROPE_SCALING
                                                                     });
  return registry;
}

void require_factor(std::string_view method, double factor) {
  if (std::isfinite(factor) && factor >= 1) return;
  throw ConfigError(
      fmt::format("scaling {}: factor = {} must be a finite number of at least 1", method, format_double(factor)));
}

void require_original_context(std::string_view method, const RopeGeometry& geometry) {
  if (geometry.original_context > 0) return;
  throw ConfigError(fmt::format(
      "scaling {}: original_context = {} must be above 0; set scaling.original_context to the length the model was "
      "trained on",
      method, geometry.original_context));
}

void require_base_change(std::string_view method, const RopeGeometry& geometry) {
  if (geometry.rotary_dim > 2) return;
  throw ConfigError(
      fmt::format("scaling {}: rotary_dim = {} leaves no channel whose frequency could change; it needs at least 4",
                  method, geometry.rotary_dim));
}

std::vector<double> parse_divisors(std::string_view method, std::string_view option,
                                   const std::vector<std::string>& entries) {
  std::vector<double> divisors;
  for (const std::string& entry : entries) {
    const auto value = parse_double(entry);
    if (!value || !(*value > 0)) {
      throw ConfigError(fmt::format("scaling {}: {} holds '{}', which is not a number above 0", method, option, entry));
    }
    divisors.push_back(*value);
  }
  return divisors;
}

void divide_channels(std::string_view method, std::string_view option, const std::vector<double>& divisors,
                     std::vector<double>& inv_freq) {
  if (divisors.size() != inv_freq.size()) {
    throw ConfigError(fmt::format("scaling {}: {} has {} entries; rotary_dim = {} needs {}", method, option,
                                  divisors.size(), 2 * inv_freq.size(), inv_freq.size()));
  }
  for (std::size_t i = 0; i < inv_freq.size(); ++i) inv_freq[i] /= divisors[i];
}

}  // namespace fathom::rope
