#pragma once
// GRAPE-M: rotation in the plane of two learned vectors.

#include <vector>

namespace fathom::rope {

/// x' = exp(angle L) x with the rank-2 generator L = a b^T - b a^T (GRAPE, multiplicative form), in closed form:
///
///   x' = x + sin(angle s) / s L x + (1 - cos(angle s)) / s^2 L^2 x,   s = sqrt(|a|^2 |b|^2 - (a.b)^2)
///
/// a = e_i, b = e_j is RoPE's rotation of the pair (i, j) by -angle; parallel a and b turn nothing. Rotations of
/// one generator compose: G(m)^T G(n) = G(n - m).
///
/// \param angle  position times omega, radians.
/// \param a, b, x  [d]; the result as well.
std::vector<double> grape_rotate(const std::vector<double>& a, const std::vector<double>& b, double angle,
                                 const std::vector<double>& x);

}  // namespace fathom::rope
