#pragma once
// xPos: rotation whose amplitude decays with the distance.

#include <cstdint>
#include <vector>

namespace fathom::rope {

/// zeta_i = (2i/d + gamma) / (1 + gamma), i = 0 .. d/2 - 1 (Sun et al. 2022, section 3.2; gamma 0.4). [d / 2], at
/// most 1.
std::vector<double> xpos_zeta(std::int64_t d_head, double gamma = 0.4);

/// zeta^((m - centre) / scale_base): the query's multiplier at position m; the key's is its inverse, so that a product
/// decays as zeta^((m - n) / scale_base) whatever the centre. Far from the centre float32 overflows: centre the
/// sequence.
double xpos_scale(double zeta, double position, double centre, double scale_base = 512);

/// Centre of a sequence in the reference: half its length, rounded up.
std::int64_t xpos_centre(std::int64_t length);

}  // namespace fathom::rope
