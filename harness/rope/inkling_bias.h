#pragma once
// Inkling's query-dependent relative bias.

#include <cstdint>
#include <vector>

namespace fathom::rope {

/// Bias of one head for one query and a key `distance` tokens before it:
///
///   sum_c states[c] * projection[c, distance]  for 0 <= distance < extent, exactly 0 elsewhere
///
/// \param states      [d_rel], the query's relative state of this head.
/// \param projection  row-major [d_rel, extent], the layer's; shared by its heads.
double inkling_bias(const std::vector<double>& states, const std::vector<double>& projection, std::int64_t extent,
                    std::int64_t distance);

/// tau_i = 1 + alpha ln(max((i + 1) / n_floor, 1)): multiplies query and bias on global layers with log scaling.
double inkling_log_scaling(std::int64_t query_position, std::int64_t n_floor, double alpha);

}  // namespace fathom::rope
