#pragma once
// CoPE: positions counted by what the query finds worth counting.

#include <cstdint>
#include <vector>

namespace fathom::rope {

/// Position of every key for one query (Golovneva et al. 2024, section 3):
///
///   p[j] = min(sum of sigmoid(logits[t]) for t = j .. i, n_positions - 1)
///
/// \param logits  q_i . k_t for the visible keys t = 0 .. i.
/// \return        the same length; never increasing towards the query.
std::vector<double> cope_positions(const std::vector<double>& logits, std::int64_t n_positions);

/// Bias at a fractional position: q . e[floor p] and q . e[ceil p], interpolated.
///
/// \param position_logits  q . e[p] for p = 0 .. n_positions - 1.
double cope_bias(double position, const std::vector<double>& position_logits);

}  // namespace fathom::rope
