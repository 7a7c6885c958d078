#pragma once
// Sinusoidal absolute positions: rows of the table that is added to the token embeddings.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fathom::rope {

enum class SinusoidalVariant {
  kInterleaved,   ///< the paper: [sin, cos, sin, cos, …]
  kConcatenated,  ///< the paper's frequencies, [all sin | all cos] (RoFormer)
  kTensor2Tensor  ///< frequencies over half - 1, [all sin | all cos], odd widths padded with 0 (XGLM, Marian)
};

/// "interleaved", "concatenated", "tensor2tensor".
std::string_view to_string(SinusoidalVariant variant);
/// \throws ConfigError  for another name.
SinusoidalVariant parse_sinusoidal_variant(std::string_view name);

/// One row (Vaswani et al. 2017, section 3.5). With D = d_model, b = base, m the position:
///
///   interleaved     row[2i] = sin(m b^(-2i/D)), row[2i+1] = cos(the same); an odd D ends with a sine
///   concatenated    the same numbers, sines first
///   tensor2tensor   h = floor(D/2): row[i] = sin(m b^(-i/(h-1))), row[h+i] = cos(the same); an odd D ends with 0
///
/// \return  [d_model].
/// \throws ConfigError  for d_model < 1 (tensor2tensor: < 4, where h - 1 would be 0) or a base that is not above 0.
std::vector<double> sinusoidal_row(SinusoidalVariant variant, std::int64_t d_model, std::int64_t position,
                                   double base = 10000);

/// Rows 0 .. n_positions - 1, row-major [n_positions, d_model]. The padding row, where there is one, is 0.
std::vector<double> sinusoidal_table(SinusoidalVariant variant, std::int64_t d_model, std::int64_t n_positions,
                                     std::optional<std::int64_t> padding_row = std::nullopt, double base = 10000);

}  // namespace fathom::rope
