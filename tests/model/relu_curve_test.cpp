// A one-input network and the curve that stands for it.

#include "harness/position/relu_curve.h"

#include <algorithm>
#include <cmath>

#include "harness/core/random.h"
#include "tests/support/catch.h"

namespace {

using fathom::position::ReluCurve;
using fathom::position::ReluNetwork;

ReluNetwork drawn_network(std::size_t width, std::size_t n_outputs, std::int64_t seed) {
  fathom::RngStream rng(fathom::RngKey("relu").child(seed));
  const auto numbers = [&](std::size_t n) {
    std::vector<float> out(n);
    for (float& x : out) x = static_cast<float>(rng.normal());
    return out;
  };
  return {numbers(width), numbers(width), numbers(n_outputs * width), numbers(n_outputs)};
}

double run_network(const ReluNetwork& network, std::size_t output, double x) {
  double sum = static_cast<double>(network.out_bias[output]);
  for (std::size_t k = 0; k < network.width(); ++k) {
    const double hidden = static_cast<double>(network.in_weight[k]) * x + static_cast<double>(network.in_bias[k]);
    sum += static_cast<double>(network.out_weight[output * network.width() + k]) * std::max(0.0, hidden);
  }
  return sum;
}

}  // namespace

TEST_CASE("relu curve: equals the network it was made of, whatever the order of the inputs", "[position][relu_curve]") {
  ReluNetwork network = drawn_network(32, 4, 1);
  network.in_weight[3] = 0;  // never turns: no break
  network.in_weight[4] = network.in_weight[5];
  network.in_bias[4] = network.in_bias[5];  // two breaks at one place
  const ReluCurve curve(network);
  CHECK(curve.n_pieces() == 32);
  fathom::RngStream rng(fathom::RngKey("inputs"));
  std::size_t piece = 0;
  for (int n = 0; n < 2000; ++n) {
    const auto x = static_cast<float>(4 * rng.normal());
    piece = curve.piece_of(x, piece);
    for (std::size_t h = 0; h < 4; ++h)
      CHECK(std::abs(static_cast<double>(curve.value(piece, h, x)) - run_network(network, h, static_cast<double>(x))) <
            1e-4);  // float32 slopes and offsets of up to 32 terms, inputs of up to 16
  }
}

TEST_CASE("relu curve: a network whose units never turn is a line", "[position][relu_curve]") {
  const ReluCurve curve({{0, 0}, {1, -1}, {2, 3}, {0.5F}});
  CHECK(curve.n_pieces() == 1);
  CHECK(curve.value(curve.piece_of(7, 0), 0, 7) == 2.5F);
}

TEST_CASE("relu curve: gradients equal finite differences", "[position][relu_curve]") {
  const ReluNetwork network = drawn_network(6, 2, 2);
  const ReluCurve curve(network);
  ReluCurve::Sums sums = curve.no_sums();
  const std::vector<double> inputs{-1.7, -0.4, 0.1, 0.35, 0.9, 2.2}, weights{0.3, -1.1, 0.8, 0.2, -0.6, 1.4};
  const auto loss = [&](const ReluNetwork& at) {
    double sum = 0;
    for (std::size_t n = 0; n < inputs.size(); ++n)
      sum += weights[n] * run_network(at, 0, inputs[n]) - 0.5 * weights[n] * run_network(at, 1, inputs[n]);
    return sum;
  };
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    const std::size_t piece = curve.piece_of(static_cast<float>(inputs[n]), 0);
    for (std::size_t h = 0; h < 2; ++h) {
      const double g = h == 0 ? weights[n] : -0.5 * weights[n];
      sums.zeroth[piece * 2 + h] += g;
      sums.first[piece * 2 + h] += g * inputs[n];
    }
  }
  const ReluNetwork gradient = curve.gradient(sums);
  const auto check = [&](std::vector<float> ReluNetwork::*numbers) {
    for (std::size_t i = 0; i < (network.*numbers).size(); ++i) {
      ReluNetwork more = network, less = network;
      (more.*numbers)[i] += 0.001F;
      (less.*numbers)[i] -= 0.001F;
      CHECK(std::abs(static_cast<double>((gradient.*numbers)[i]) - (loss(more) - loss(less)) / 0.002) < 2e-3);
    }
  };
  check(&ReluNetwork::in_weight);
  check(&ReluNetwork::in_bias);
  check(&ReluNetwork::out_weight);
  check(&ReluNetwork::out_bias);
}
