#pragma once
// Small vocabulary types shared by every module.

#include <cstdint>
#include <vector>

namespace fathom {

/// Index into a tokenizer's vocabulary.
using TokenId = std::int32_t;
using TokenIds = std::vector<TokenId>;

/// Depths are integers in 1/100 percent: 0 = before the first unit of the haystack, 10000 = after the last.
inline constexpr std::int32_t kDepthScale = 10000;

/// "K" in lengths, everywhere: 128K is 131072 tokens.
inline constexpr std::int64_t kTokensPerK = 1024;

}  // namespace fathom
