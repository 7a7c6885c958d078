#include "harness/config/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/config/sweep.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/core/types.h"

namespace fathom::config {
namespace {

constexpr std::int32_t kDepthScalePerPercent = kDepthScale / 100;

bool is_plain_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

[[noreturn]] void throw_length(const std::string& entry, const std::string& why) {
  throw ConfigError(
      fmt::format("'{}' is not a length: {}; write tokens (512, 4K) or times the trained length (1.5x)", entry, why));
}

std::int64_t checked_length(const std::string& entry, double tokens) {
  if (!(tokens >= 1)) throw_length(entry, fmt::format("{} tokens, at least 1 is needed", format_double(tokens)));
  if (tokens > static_cast<double>(kMaxLengthTokens)) {
    throw_length(entry, fmt::format("more than {} tokens", kMaxLengthTokens));
  }
  return static_cast<std::int64_t>(tokens);
}

/// "512", "4K", "0.5K"; nothing for anything else.
std::optional<double> token_count(std::string_view text) {
  const bool in_k = ends_with(text, "K");
  const std::string_view digits = in_k ? text.substr(0, text.size() - 1) : text;
  if (!is_plain_number(digits)) return std::nullopt;
  const auto value = parse_double(digits);
  if (!value) return std::nullopt;
  return *value * static_cast<double>(in_k ? kTokensPerK : 1);
}

std::int64_t fixed_length(const std::string& entry, std::string_view text) {
  const auto tokens = token_count(text);
  if (!tokens) throw_length(entry, "it cannot be read");
  if (*tokens != std::floor(*tokens)) throw_length(entry, "tokens are whole numbers");
  return checked_length(entry, *tokens);
}

/// Low, low + step, …, high. The step must lead exactly to the high end, as both ends are included.
template <typename Integer>
std::vector<Integer> expand_range(const std::string& entry, Integer low, Integer high, Integer step) {
  if (step <= 0) throw ConfigError(fmt::format("range '{}' has a step that is not above zero", entry));
  if (low > high) throw ConfigError(fmt::format("range '{}' runs downwards; write low:high:step", entry));
  if ((high - low) % step != 0) {
    throw ConfigError(fmt::format("range '{}' does not reach its end; choose a step that divides the whole", entry));
  }
  const std::int64_t n_values = (high - low) / step + 1;
  if (n_values > kMaxRangeValues) {
    throw ConfigError(fmt::format("range '{}' has {} values; at most {}", entry, n_values, kMaxRangeValues));
  }
  std::vector<Integer> values;
  for (std::int64_t i = 0; i < n_values; ++i)
    values.push_back(static_cast<Integer>(low + static_cast<Integer>(i) * step));
  return values;
}

std::vector<std::string> range_parts(const std::string& entry) {
  std::vector<std::string> parts = split(entry, ':');
  if (parts.size() != 1 && parts.size() != 3) {
    throw ConfigError(fmt::format("range '{}' has {} parts; write low:high:step", entry, parts.size()));
  }
  for (std::string& part : parts) part = std::string(trim(part));
  return parts;
}

std::vector<std::int64_t> expand_length_entry(const std::string& entry, std::int64_t reference_tokens) {
  const std::vector<std::string> parts = range_parts(entry);
  if (parts.size() == 3) {
    return expand_range(entry, fixed_length(entry, parts[0]), fixed_length(entry, parts[1]),
                        fixed_length(entry, parts[2]));
  }
  if (!ends_with(entry, "x")) return {fixed_length(entry, entry)};
  const std::string factor = entry.substr(0, entry.size() - 1);
  const auto value = is_plain_number(factor) ? parse_double(factor) : std::nullopt;
  if (!value) throw_length(entry, "it cannot be read");
  if (*value == 0) throw_length(entry, "the factor is zero");
  return {checked_length(entry, std::round(*value * static_cast<double>(reference_tokens)))};
}

/// Percent with at most two decimals, in 1/100 percent; read digit by digit, so that 0.07 is 7 and
/// not 7.000000000000001.
std::int64_t depth_value(const std::string& entry, std::string_view text) {
  const auto dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const std::string_view decimals = dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
  const bool readable = is_plain_number(text) && !whole.empty() && decimals.find('.') == std::string_view::npos &&
                        (dot == std::string_view::npos || !decimals.empty());
  if (!readable) {
    throw ConfigError(fmt::format("'{}' is not a depth; write percent (0..100) or a range (0:100:10)", entry));
  }
  if (decimals.size() > 2) {
    throw ConfigError(fmt::format("depth '{}' has more than two decimals; depths are whole 1/100 percent", entry));
  }
  const auto percent = parse_int(whole);
  const std::int64_t hundredths =
      decimals.empty() ? 0 : parse_int(decimals).value_or(0) * (decimals.size() == 1 ? 10 : 1);
  if (!percent || *percent > 100 || *percent * kDepthScalePerPercent + hundredths > kDepthScale) {
    throw ConfigError(fmt::format("depth '{}' is outside 0..100 percent", entry));
  }
  return *percent * kDepthScalePerPercent + hundredths;
}

constexpr const char* kSpreadDepths = "spread";
constexpr std::string_view kLinearDepths = "linear:";
constexpr std::string_view kSigmoidDepths = "sigmoid:";
constexpr std::int64_t kMostSpacedDepths = 1001;

/// M depths x = round(100 i / (M - 1)) percent; with sigmoid spacing 100 / (1 + e^(-0.1 (x - 50))), 0 and 100 kept
/// (after Kamradt's needle tester).
std::vector<std::int64_t> spaced_depths(const std::string& entry, std::string_view spacing) {
  const auto n = parse_int(trim(std::string_view(entry).substr(spacing.size())));
  if (!n || *n < 2 || *n > kMostSpacedDepths) {
    throw ConfigError(
        fmt::format("'{}' is no set of depths; write {}N with N from 2 to {}", entry, spacing, kMostSpacedDepths));
  }
  std::vector<std::int64_t> depths;
  for (std::int64_t i = 0; i < *n; ++i) {
    const std::int64_t percent = (200 * i + *n - 1) / (2 * (*n - 1));
    const bool end = percent == 0 || percent == 100;
    const double shaped = 100.0 / (1.0 + std::exp(-0.1 * static_cast<double>(percent - 50)));
    depths.push_back(spacing == kLinearDepths || end ? percent * kDepthScalePerPercent
                                                     : std::llround(shaped * kDepthScalePerPercent));
  }
  return depths;
}

std::vector<std::int64_t> expand_depth_entry(const std::string& entry) {
  if (entry == kSpreadDepths) {
    throw ConfigError("'spread' cannot stand in a list; it leaves the depths to the tasks, one for each sample");
  }
  for (const std::string_view spacing : {kLinearDepths, kSigmoidDepths}) {
    if (starts_with(entry, spacing)) return spaced_depths(entry, spacing);
  }
  const std::vector<std::string> parts = range_parts(entry);
  if (parts.size() == 1) return {depth_value(entry, entry)};
  return expand_range(entry, depth_value(entry, parts[0]), depth_value(entry, parts[1]), depth_value(entry, parts[2]));
}

template <typename Integer>
void append_new(std::vector<Integer>& values, std::int64_t value) {
  const auto narrow = static_cast<Integer>(value);
  if (std::find(values.begin(), values.end(), narrow) == values.end()) values.push_back(narrow);
}

}  // namespace

std::vector<std::string> length_entries(const SweepSection& sweep, const ModelVariant& variant) {
  if (!sweep.lengths.empty()) return sweep.lengths;
  if (variant.trained_here()) return {"0.5x", "1x", "1.5x", "2x", "3x", "4x", "8x"};
  return {"4K", "8K", "16K", "32K", "64K", "128K"};
}

std::vector<std::int64_t> expand_lengths(const std::vector<std::string>& entries, std::int64_t reference_tokens) {
  std::vector<std::int64_t> lengths;
  for (const std::string& entry : entries) {
    for (const std::int64_t tokens : expand_length_entry(entry, reference_tokens)) append_new(lengths, tokens);
  }
  return lengths;
}

bool depths_are_spread(const std::vector<std::string>& entries) {
  return entries == std::vector<std::string>{kSpreadDepths};
}

std::vector<std::int32_t> expand_depths(const std::vector<std::string>& entries) {
  if (depths_are_spread(entries)) return {};
  std::vector<std::int32_t> depths;
  for (const std::string& entry : entries) {
    for (const std::int64_t depth : expand_depth_entry(entry)) append_new(depths, depth);
  }
  return depths;
}

std::optional<std::string> length_entry_problem(const std::string& entry) {
  // 1024 tokens stand in for the trained length, which is not known yet: any factor that is readable stays in range.
  try {
    expand_length_entry(entry, kTokensPerK);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return std::nullopt;
}

std::optional<std::string> depth_entry_problem(const std::string& entry) {
  try {
    expand_depth_entry(entry);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return std::nullopt;
}

}  // namespace fathom::config
