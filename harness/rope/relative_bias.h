#pragma once
// Biases that are a learned function of the distance: KERPLE and FIRE.

#include <cstdint>

namespace fathom::rope {

/// KERPLE's parameters are kept at least this large, and its power at most 2 (Chi et al. 2022, section 4).
constexpr double kKerpleFloor = 0.01;
constexpr double kKerpleLargestPower = 2;

/// -p ln(1 + a n), the logarithmic kernel. \param distance  n = query - key, at least 0.
double kerple_log_bias(double p, double a, double distance);

/// -a n^p, the power kernel.
double kerple_power_bias(double a, double p, double distance);

/// FIRE's input of its MLP (Li et al. 2023, equation 3), in the reference's form:
///
///   ln(|c n| + 1) / (ln(|c max(i, |m L|)| + 1) + 1e-6)
///
/// \param distance        n = |query - key|.
/// \param query_position  i.
/// \param c               learned stretch of the logarithm.
/// \param threshold       m L, learned multiplier times the initial length; below it the denominator is constant.
double fire_argument(double distance, double query_position, double c, double threshold);

}  // namespace fathom::rope
