#include "harness/train/optimizer.h"

#include <cmath>
#include <vector>

#include "tests/support/catch.h"

using fathom::train::AdamWSettings;
using fathom::train::FlatAdamW;

TEST_CASE("adamw: two steps equal the hand-worked update", "[train][optimizer]") {
  AdamWSettings settings;
  settings.clip_norm = 1e9;
  FlatAdamW optimizer(settings, {1, 0});
  std::vector<float> values{1.0F, -2.0F};
  double m[2] = {}, v[2] = {}, expected[2] = {1.0, -2.0};
  const double rates[] = {0.1, 0.05}, gradients[2][2] = {{0.5, -0.25}, {-0.125, 1.0}};
  for (std::int64_t step = 0; step < 2; ++step) {
    const std::vector<float> g{static_cast<float>(gradients[step][0]), static_cast<float>(gradients[step][1])};
    optimizer.step(step, rates[step], g.data(), values.data());
    for (int i = 0; i < 2; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * gradients[step][i];
      v[i] = 0.98 * v[i] + 0.02 * gradients[step][i] * gradients[step][i];
      const double corrected_m = m[i] / (1 - std::pow(0.9, static_cast<double>(step + 1)));
      const double corrected_v = v[i] / (1 - std::pow(0.98, static_cast<double>(step + 1)));
      if (i == 0) expected[i] *= 1 - rates[step] * 0.01;
      expected[i] -= rates[step] * corrected_m / (std::sqrt(corrected_v) + 1e-8);
      CHECK(std::abs(static_cast<double>(values[static_cast<std::size_t>(i)]) - expected[i]) < 1e-6);  // float32 state
    }
  }
}

TEST_CASE("adamw: a long gradient is scaled to the clip norm, a short one is left alone", "[train][optimizer]") {
  FlatAdamW optimizer({}, std::vector<std::uint8_t>(20000, 0));
  std::vector<float> values(20000, 0.0F);
  optimizer.step(0, 0, std::vector<float>(20000, 2.0F).data(), values.data());
  const double clipped = 0.1 * 2.0 / (2.0 * std::sqrt(20000.0));
  for (const float m : optimizer.first_moment()) CHECK(std::abs(static_cast<double>(m) - clipped) < 1e-8);
  FlatAdamW other({}, {0});
  float value = 0;
  const float gradient = 0.5F;
  other.step(0, 0, &gradient, &value);
  CHECK(std::abs(static_cast<double>(other.first_moment()[0]) - 0.05) < 1e-7);
}
