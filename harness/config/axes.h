#pragma once
// One entry of an axis as text: numbers, lengths and ranges.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::config {

/// Longest length a sweep may ask for (1024 * 1024 K tokens): far above any model, far below overflow.
inline constexpr std::int64_t kMaxLengthTokens = std::int64_t{1} << 30U;
/// Most values one range may stand for.
inline constexpr std::int64_t kMaxRangeValues = 10000;

/// What is wrong with an entry of `sweep.lengths` or `sweep.depths`, as in "'0x' is not a length; …"; nothing if it can
/// be read.
std::optional<std::string> length_entry_problem(const std::string& entry);
std::optional<std::string> depth_entry_problem(const std::string& entry);
/// Whether `sweep.depths` is the one word `spread`.
bool depths_are_spread(const std::vector<std::string>& entries);

}  // namespace fathom::config
