#include "harness/rope/query_temperature.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::rope {

std::string_view to_string(TemperatureKind kind) {
  switch (kind) {
    case TemperatureKind::kNone:
      return "none";
    case TemperatureKind::kLlama4:
      return "llama4";
    case TemperatureKind::kMinistral3:
      return "ministral3";
    case TemperatureKind::kLogN:
      return "log_n";
    case TemperatureKind::kUniform:
      return "uniform";
  }
  return "";
}

TemperatureKind parse_temperature_kind(std::string_view name) {
  for (const TemperatureKind kind : {TemperatureKind::kNone, TemperatureKind::kLlama4, TemperatureKind::kMinistral3,
                                     TemperatureKind::kLogN, TemperatureKind::kUniform}) {
    if (to_string(kind) == name) return kind;
  }
  throw ConfigError(
      fmt::format("temperature = '{}' must be none, llama4, ministral3, log_n or uniform", std::string(name)));
}

bool counts_tokens(TemperatureKind kind) {
  return kind == TemperatureKind::kLlama4 || kind == TemperatureKind::kMinistral3 || kind == TemperatureKind::kLogN;
}

bool uses_scale(TemperatureKind kind) {
  return kind == TemperatureKind::kLlama4 || kind == TemperatureKind::kMinistral3 || kind == TemperatureKind::kUniform;
}

void check_temperature(const QueryTemperature& temperature) {
  const auto fail = [&](const char* what, const std::string& value, const char* allowed) {
    throw ConfigError(
        fmt::format("temperature {}: {} = {} must be {}", to_string(temperature.kind), what, value, allowed));
  };
  switch (temperature.kind) {
    case TemperatureKind::kNone:
      return;
    case TemperatureKind::kLlama4:
    case TemperatureKind::kMinistral3:
      if (temperature.length < 1) fail("length", std::to_string(temperature.length), "at least 1");
      if (!std::isfinite(temperature.scale)) fail("scale", format_double(temperature.scale), "a finite number");
      return;
    case TemperatureKind::kLogN:
      if (temperature.length < 2) fail("length", std::to_string(temperature.length), "at least 2");
      return;
    case TemperatureKind::kUniform:
      if (!std::isfinite(temperature.scale) || temperature.scale <= 0)
        fail("scale", format_double(temperature.scale), "a finite number above 0");
      return;
  }
}

double query_multiplier(const QueryTemperature& temperature, std::int64_t position) {
  const auto steps = [&](std::int64_t tokens) {
    const std::int64_t whole = tokens / temperature.length;
    return static_cast<double>(whole);
  };
  switch (temperature.kind) {
    case TemperatureKind::kNone:
      return 1;
    case TemperatureKind::kLlama4:
      return 1 + temperature.scale * std::log1p(steps(position + 1));
    case TemperatureKind::kMinistral3:
      return 1 + temperature.scale * std::log1p(steps(position));
    case TemperatureKind::kLogN:
      return std::max(1.0,
                      std::log(static_cast<double>(position) + 1) / std::log(static_cast<double>(temperature.length)));
    case TemperatureKind::kUniform:
      return temperature.scale;
  }
  throw InvariantError("unknown temperature");
}

}  // namespace fathom::rope
