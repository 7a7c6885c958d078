#include "harness/position/relu_curve.h"

#include <algorithm>
#include <cmath>

namespace fathom::position {
namespace {

/// A point inside a piece. Pieces of no width may get one of a neighbour; no input falls into them.
double inside_piece(const std::vector<float>& breaks, std::size_t piece) {
  if (breaks.empty()) return 0;
  if (piece == 0) return static_cast<double>(breaks.front()) - 1;
  if (piece == breaks.size()) return static_cast<double>(breaks.back()) + 1;
  return (static_cast<double>(breaks[piece - 1]) + static_cast<double>(breaks[piece])) / 2;
}

}  // namespace

ReluCurve::ReluCurve(const ReluNetwork& network) : network_(network), n_outputs_(network.n_outputs()) {
  const std::size_t width = network.width();
  for (std::size_t k = 0; k < width; ++k) {
    const float at = -network.in_bias[k] / network.in_weight[k];
    if (std::isfinite(at)) breaks_.push_back(at);
  }
  std::sort(breaks_.begin(), breaks_.end());
  for (std::size_t piece = 0; piece < n_pieces(); ++piece) {
    const double x = inside_piece(breaks_, piece);
    for (std::size_t k = 0; k < width; ++k)
      active_.push_back(static_cast<double>(network.in_weight[k]) * x + static_cast<double>(network.in_bias[k]) > 0);
    for (std::size_t h = 0; h < n_outputs_; ++h) {
      double slope = 0, offset = static_cast<double>(network.out_bias[h]);
      for (std::size_t k = 0; k < width; ++k) {
        if (!active(piece, k)) continue;
        const auto weight = static_cast<double>(network.out_weight[h * width + k]);
        slope += weight * static_cast<double>(network.in_weight[k]);
        offset += weight * static_cast<double>(network.in_bias[k]);
      }
      slope_.push_back(static_cast<float>(slope));
      offset_.push_back(static_cast<float>(offset));
    }
  }
}

ReluCurve::Sums ReluCurve::no_sums() const {
  return {std::vector<double>(n_pieces() * n_outputs_, 0.0), std::vector<double>(n_pieces() * n_outputs_, 0.0)};
}

ReluNetwork ReluCurve::gradient(const Sums& sums) const {
  const std::size_t width = network_.width();
  std::vector<double> in_weight(width, 0.0), in_bias(width, 0.0), out_weight(n_outputs_ * width, 0.0),
      out_bias(n_outputs_, 0.0);
  for (std::size_t piece = 0; piece < n_pieces(); ++piece) {
    for (std::size_t h = 0; h < n_outputs_; ++h) {
      const double g = sums.zeroth[piece * n_outputs_ + h], gx = sums.first[piece * n_outputs_ + h];
      out_bias[h] += g;
      for (std::size_t k = 0; k < width; ++k) {
        if (!active(piece, k)) continue;
        const auto out = static_cast<double>(network_.out_weight[h * width + k]);
        in_weight[k] += out * gx;
        in_bias[k] += out * g;
        out_weight[h * width + k] +=
            static_cast<double>(network_.in_weight[k]) * gx + static_cast<double>(network_.in_bias[k]) * g;
      }
    }
  }
  const auto singles = [](const std::vector<double>& from) { return std::vector<float>(from.begin(), from.end()); };
  return {singles(in_weight), singles(in_bias), singles(out_weight), singles(out_bias)};
}

}  // namespace fathom::position
