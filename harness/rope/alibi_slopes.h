#pragma once
// ALiBi's slopes: shared by the position scheme, `inspect` and `theory`.

#include <cstdint>
#include <vector>

namespace fathom::rope {

/// Slope of every head (Press et al. 2022, section 3). With c the largest power of two up to n_heads and B = max_bias:
///
///   m_h = 2^(-B h / c)               for h = 1 .. c
///   m_h = 2^(-B (2(h - c) - 1) / 2c) for h = c+1 .. n_heads   (every other slope of the list for 2c heads)
///
/// \param max_bias  8 in the paper; ggml's `max_alibi_bias`, MPT's `alibi_bias_max`.
/// \return          [n_heads], positive; not monotone where n_heads is no power of two.
/// \throws ConfigError  for n_heads < 1 or max_bias <= 0.
std::vector<double> alibi_slopes(std::int64_t n_heads, double max_bias = 8);

}  // namespace fathom::rope
