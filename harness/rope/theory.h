#pragma once
// What a frequency list says about lengths before anything is measured: periods, dimensions that saw a whole period,
// the bases and lengths of Liu et al. 2023 ("Scaling Laws of RoPE-based Extrapolation", arXiv 2310.05209), and the
// reach of biases.

#include <cstdint>
#include <optional>
#include <vector>

namespace fathom::rope {

/// T_i = 2 pi / theta_i, tokens; infinite where a channel stands still.
std::vector<double> periods(const std::vector<double>& inv_freq);

/// Channels with T_i < length: these have shown every angle within the length.
std::int64_t wrapped_channels(const std::vector<double>& inv_freq, std::int64_t length);

/// The first channel with T_i >= length, or nothing.
std::optional<std::int64_t> first_unwrapped_channel(const std::vector<double>& inv_freq, std::int64_t length);

/// Critical dimension: leading dimensions whose channel completed a period in training,
///
///   d_extra = 2 ceil(d/2 log_b(T_train / 2 pi)), kept within 0 .. d
///
/// (definition 4.1; d = rotary_dim, b = base).
std::int64_t critical_dimension(std::int64_t rotary_dim, double base, std::int64_t trained_length);

/// T_extra = 2 pi beta^(d_extra / d): longest context after fine-tuning with a larger base beta (theorem 4.2). d_extra
/// is that of pretraining.
double extrapolation_limit(double tuning_base, std::int64_t critical_dimension, std::int64_t rotary_dim);

/// beta_0 = b^(ln(T_tune / 2 pi) / ln(T_train / 2 pi)): a larger base only helps above it (section 4.2).
///
/// \throws ConfigError  for lengths below 7 tokens, which are no whole turn of the fastest channel.
double critical_base(double base, std::int64_t trained_length, std::int64_t tuning_length);

/// Bases at which every dimension sees 1/4, 1/2, all of a period within the tuning length (section 3.2).
struct SmallBases {
  double quarter;  ///< beta_1 = 2 T / pi
  double half;     ///< beta_2 = T / pi
  double whole;    ///< beta_3 = T / 2 pi
};
SmallBases small_bases(std::int64_t tuning_length);

/// Largest error of a score between two grid points under position interpolation: d max|h| / (32 ln b) (Chen et al.
/// 2023, theorem 2.1). \param largest_h  largest product of a query's and a key's channel.
double interpolation_error_bound(std::int64_t rotary_dim, double base, double largest_h);

/// Distance at which ALiBi alone lowers a logit by ln(1/epsilon): ln(1/epsilon) / slope, tokens.
///
/// \throws ConfigError  unless slope > 0 and 0 < epsilon < 1.
double alibi_horizon(double slope, double epsilon);

}  // namespace fathom::rope
