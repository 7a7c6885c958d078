#include "harness/rope/grape.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fathom::rope {
namespace {

double grape_dot(const std::vector<double>& u, const std::vector<double>& v) {
  return std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
}

/// L x = a (b.x) - b (a.x): no matrix needed.
std::vector<double> grape_generator(const std::vector<double>& a, const std::vector<double>& b,
                                    const std::vector<double>& x) {
  const double along_a = grape_dot(a, x);
  const double along_b = grape_dot(b, x);
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = a[i] * along_b - b[i] * along_a;
  return out;
}

}  // namespace

std::vector<double> grape_rotate(const std::vector<double>& a, const std::vector<double>& b, double angle,
                                 const std::vector<double>& x) {
  const double cross = grape_dot(a, b);
  const double s = std::sqrt(std::max(grape_dot(a, a) * grape_dot(b, b) - cross * cross, 0.0));
  if (s == 0) return x;
  const std::vector<double> once = grape_generator(a, b, x);
  const std::vector<double> twice = grape_generator(a, b, once);
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i] + std::sin(angle * s) / s * once[i] + (1 - std::cos(angle * s)) / (s * s) * twice[i];
  }
  return out;
}

}  // namespace fathom::rope
