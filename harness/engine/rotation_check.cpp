#include "harness/engine/rotation_check.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "harness/core/error.h"

namespace fathom::engine {
namespace {

/// Channels of the i-th pair after rotation.
std::pair<std::int64_t, std::int64_t> rotated_pair(const checkpoint::LayerSpec& spec, std::int64_t i) {
  const checkpoint::PositionSpec& position = spec.position;
  const std::int64_t begin = position.side == checkpoint::RotarySide::kPrefix ? 0 : spec.d_head - position.rotary_dim;
  switch (position.layout) {
    case checkpoint::RopeLayout::kInterleaved:
      return {begin + 2 * i, begin + 2 * i + 1};
    case checkpoint::RopeLayout::kSplitHalf:
    case checkpoint::RopeLayout::kInterleavedInSplitOut:
      return {begin + i, begin + i + position.rotary_dim / 2};
  }
  throw InvariantError("unknown rotation layout");
}

std::vector<std::int64_t> checked_positions(const checkpoint::DecoderConfig& config,
                                            const checkpoint::PositionSpec& position) {
  std::int64_t original = position.scaling.original_context;
  if (original <= 0) original = config.trained_context.value_or(config.claimed_context);
  original = std::max<std::int64_t>(original, 2);
  std::vector<std::int64_t> out = {0, 1, original - 1, original, 2 * original};
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void compare_rotation(const torch::Tensor& rotated, const checkpoint::LayerSpec& spec,
                      const std::vector<std::int64_t>& positions, std::int64_t layer) {
  // float32 tables of angles reduced in double, and one rounding in the rotation.
  constexpr double kTolerance = 2e-6;
  const rope::RopeFrequencies expected = checkpoint::resolve_frequencies(spec.position, positions.back() + 1);
  const float* values = rotated.data_ptr<float>();  // [1, positions, 1, d_head]
  for (std::size_t p = 0; p < positions.size(); ++p) {
    for (std::size_t i = 0; i < expected.inv_freq.size(); ++i) {
      const auto [first, second] = rotated_pair(spec, static_cast<std::int64_t>(i));
      const float* row = values + static_cast<std::int64_t>(p) * spec.d_head;
      // Both channels of a pair went in as 1: a' = cos - sin, b' = cos + sin.
      const double angle = static_cast<double>(positions[p]) * expected.inv_freq[i];
      const double a = expected.attention_factor * (std::cos(angle) - std::sin(angle));
      const double b = expected.attention_factor * (std::cos(angle) + std::sin(angle));
      const std::pair<std::int64_t, double> channels[] = {{first, a}, {second, b}};
      for (const auto& [channel, wanted] : channels) {
        const auto got = static_cast<double>(row[channel]);
        if (std::fabs(got - wanted) <= kTolerance * std::max(1.0, expected.attention_factor)) continue;
        throw ModelError(
            fmt::format("model: the rotation in force is not the declared one: layer {}, position {}, channel {}: "
                        "{:.9g} instead of "
                        "{:.9g}; the position scheme '{}' does not follow its settings",
                        layer, positions[p], channel, got, wanted, spec.position.kind));
      }
    }
  }
}

}  // namespace

void check_rotation(model::DecoderLm& model) {
  std::set<std::string> seen;
  for (std::int64_t layer = 0; layer < model.config().n_layers(); ++layer) {
    const checkpoint::LayerSpec& spec = model.config().layers[static_cast<std::size_t>(layer)];
    // Other rotating schemes are not described by a frequency list alone; their tests cover them.
    if (spec.position.kind != "rope") continue;
    checkpoint::DecoderConfig one = model.config();
    one.layers = {spec};
    if (!seen.insert(fmt::format("{} {}", spec.d_head, checkpoint::describe_position(one))).second) continue;
    const std::vector<std::int64_t> positions = checked_positions(model.config(), spec.position);
    const torch::Tensor row = at::empty({1, static_cast<std::int64_t>(positions.size())}, torch::kInt64);
    std::copy(positions.begin(), positions.end(), row.data_ptr<std::int64_t>());
    const torch::Tensor ones = at::ones({1, row.size(1), 1, spec.d_head}, torch::kFloat32);
    for (const position::Role role : {position::Role::kQuery, position::Role::kKey}) {
      compare_rotation(model.scheme(layer).rotate(ones, role, row, positions.back() + 1).contiguous(), spec, positions,
                       layer);
    }
  }
}

}  // namespace fathom::engine
