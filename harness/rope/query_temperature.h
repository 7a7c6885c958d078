#pragma once
// Multipliers of queries that depend on the position: sharper attention for later tokens.

#include <cstdint>
#include <string_view>

namespace fathom::rope {

enum class TemperatureKind {
  kNone,
  kLlama4,      ///< 1 + scale ln(1 + floor((pos + 1) / length)); floor_scale is the length
  kMinistral3,  ///< 1 + scale ln(1 + floor(pos / length)); beta is the scale, the original context the length
  kLogN,        ///< max(1, ln(pos + 1) / ln(length)); the trained context is the length
  kUniform      ///< scale, at every position
};

/// "none", "llama4", "ministral3", "log_n", "uniform".
std::string_view to_string(TemperatureKind kind);
/// \throws ConfigError  for another name.
TemperatureKind parse_temperature_kind(std::string_view name);

/// True where the multiplier changes with the position, in steps or logarithms of `length`.
bool counts_tokens(TemperatureKind kind);
/// True where `scale` says something: all but log_n.
bool uses_scale(TemperatureKind kind);

struct QueryTemperature {
  TemperatureKind kind = TemperatureKind::kNone;
  double scale = 0;
  std::int64_t length = 0;  ///< tokens
};

/// \throws ConfigError  for a length or a scale that the kind cannot have (length < 1, log_n with length < 2, a scale
/// that is not finite or, for uniform, not above 0).
void check_temperature(const QueryTemperature& temperature);

/// Factor on the query at `position` (0 = first token).
double query_multiplier(const QueryTemperature& temperature, std::int64_t position);

}  // namespace fathom::rope
