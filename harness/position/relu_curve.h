#pragma once
// A network of one input, one hidden layer with ReLU and several outputs is a piecewise-linear curve. Walking the curve
// costs two numbers a value; running the network costs twice its width. Torch-free.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fathom::position {

/// f_h(x) = sum_k out_weight[h, k] max(0, in_weight[k] x + in_bias[k]) + out_bias[h]
struct ReluNetwork {
  std::vector<float> in_weight, in_bias;  ///< [width]
  std::vector<float> out_weight;          ///< [n_outputs, width]
  std::vector<float> out_bias;            ///< [n_outputs]
  std::size_t width() const { return in_weight.size(); }
  std::size_t n_outputs() const { return out_bias.size(); }
};

class ReluCurve {
 public:
  explicit ReluCurve(const ReluNetwork& network);

  std::size_t n_pieces() const { return breaks_.size() + 1; }
  /// The piece that holds x, looked for from `piece` on: near values cost next to nothing.
  std::size_t piece_of(float x, std::size_t piece) const {
    while (piece < breaks_.size() && x > breaks_[piece]) ++piece;
    while (piece > 0 && x <= breaks_[piece - 1]) --piece;
    return piece;
  }
  float slope(std::size_t piece, std::size_t output) const { return slope_[piece * n_outputs_ + output]; }
  float value(std::size_t piece, std::size_t output, float x) const {
    return slope_[piece * n_outputs_ + output] * x + offset_[piece * n_outputs_ + output];
  }

  /// Sums over inputs x of the gradient of each output: `zeroth` of g, `first` of g x, both [n_pieces, n_outputs].
  struct Sums {
    std::vector<double> zeroth, first;
  };
  Sums no_sums() const;
  /// The gradient of the network's numbers that these sums amount to.
  ReluNetwork gradient(const Sums& sums) const;

 private:
  /// True where hidden unit k is above 0 on the whole piece.
  bool active(std::size_t piece, std::size_t k) const { return active_[piece * network_.width() + k] != 0; }

  ReluNetwork network_;
  std::size_t n_outputs_;
  std::vector<float> breaks_;  // rising; piece p holds breaks[p - 1] < x <= breaks[p]
  std::vector<float> slope_, offset_;
  std::vector<std::uint8_t> active_;
};

}  // namespace fathom::position
