#include "harness/engine/rotation_check.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "harness/core/error.h"
#include "harness/rope/angle.h"
#include "harness/rope/position_remap.h"

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

/// A cos and A sin of the declared rotation of pair i at a position.
std::pair<double, double> declared_cos_sin(const rope::RopeFrequencies& expected, std::size_t i,
                                           std::int64_t position) {
  const auto m = static_cast<double>(position);
  const double angle = m * expected.inv_freq[i];
  const double cos = expected.attention_factor * std::cos(angle), sin = expected.attention_factor * std::sin(angle);
  if (expected.table_dtype == rope::FloatFormat::kFloat32) return {cos, sin};
  // Next to a tie of the narrow format the last bit of the angle decides, so the entry is made as tables make it.
  const rope::CosSin entry =
      rope::table_entry(m, expected.inv_freq[i], expected.attention_factor, expected.table_dtype);
  return {static_cast<double>(entry.cos), static_cast<double>(entry.sin)};
}

void compare_rotation(const torch::Tensor& rotated, const checkpoint::LayerSpec& spec,
                      const std::vector<std::int64_t>& positions, std::int64_t layer) {
  // float32 tables of angles reduced in double, and one rounding in the rotation.
  constexpr double kTolerance = 2e-6;
  const rope::RopeFrequencies expected = checkpoint::resolve_frequencies(spec.position, positions.back() + 1);
  const float* values = rotated.data_ptr<float>();  // [positions, d_head]
  for (std::size_t p = 0; p < positions.size(); ++p) {
    for (std::size_t i = 0; i < expected.inv_freq.size(); ++i) {
      const auto [first, second] = rotated_pair(spec, static_cast<std::int64_t>(i));
      const float* row = values + static_cast<std::int64_t>(p) * spec.d_head;
      // Both channels of a pair went in as 1: a' = cos - sin, b' = cos + sin.
      const auto [cos, sin] = declared_cos_sin(expected, i, positions[p]);
      const std::pair<std::int64_t, double> channels[] = {{first, cos - sin}, {second, cos + sin}};
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

torch::Tensor position_row(const std::vector<std::int64_t>& positions) {
  torch::Tensor row = at::empty({1, static_cast<std::int64_t>(positions.size())}, torch::kInt64);
  std::copy(positions.begin(), positions.end(), row.data_ptr<std::int64_t>());
  return row;
}

/// What the checks look at: one layer's scheme, spec and number.
struct CheckedLayer {
  position::PositionScheme& scheme;
  const checkpoint::LayerSpec& spec;
  std::int64_t layer = 0;
  std::vector<std::int64_t> positions;

  /// A vector, d_head channels long, rotated to each position as the first head. [positions, d_head] float32
  torch::Tensor rotated(const torch::Tensor& head, position::Role role, std::int64_t region) const {
    const torch::Tensor row = position_row(positions);
    const std::int64_t n_heads = role == position::Role::kQuery ? spec.n_heads : spec.n_kv_heads;
    const torch::Tensor x = head.view({1, 1, 1, -1}).expand({1, row.size(1), n_heads, spec.d_head}).contiguous();
    return scheme.rotate(x, role, row, positions.back() + 1, region)[0].select(1, 0).contiguous();
  }
};

void check_plain_rotation(const CheckedLayer& at) {
  const torch::Tensor ones = at::ones({at.spec.d_head}, torch::kFloat32);
  for (const position::Role role : {position::Role::kQuery, position::Role::kKey})
    compare_rotation(at.rotated(ones, role, 0), at.spec, at.positions, at.layer);
}

/// Both channels of a pair are 1, so the pair adds 2 A^2 cos(relative position * frequency) to the score.
void check_remapped_pair(const CheckedLayer& at, const rope::RopeFrequencies& expected, double relative,
                         const std::pair<const float*, const float*>& query_key, const std::string& place) {
  // Two float32 rotations, four products; a narrow table moves each of the two factors of a product by its roundoff u,
  // the sum of the products by at most 2 (2 u + u^2) A^2.
  const double tolerance = 1e-5 + 5 * rope::unit_roundoff(expected.table_dtype);
  const double amplitude = expected.attention_factor * expected.attention_factor;
  for (std::size_t i = 0; i < expected.inv_freq.size(); ++i) {
    const auto [a, b] = rotated_pair(at.spec, static_cast<std::int64_t>(i));
    const auto [q, k] = query_key;
    const double got =
        static_cast<double>(q[a]) * static_cast<double>(k[a]) + static_cast<double>(q[b]) * static_cast<double>(k[b]);
    const double wanted = 2 * amplitude * std::cos(relative * expected.inv_freq[i]);
    if (std::fabs(got - wanted) <= tolerance * std::max(1.0, amplitude)) continue;
    throw ModelError(
        fmt::format("model: the remap in force is not the declared one: layer {}, {}, channel {}: the pair "
                    "scores {:.9g} instead of {:.9g}; remap '{}' does not follow its settings",
                    at.layer, place, a, got, wanted, at.spec.position.remap.method));
  }
}

void check_remap(const CheckedLayer& at) {
  const auto remap = checkpoint::make_remap(at.spec.position);
  const rope::RopeFrequencies expected = checkpoint::resolve_frequencies(at.spec.position, at.positions.back() + 1);
  const torch::Tensor ones = at::ones({at.spec.d_head}, torch::kFloat32);
  const torch::Tensor row = position_row(at.positions)[0];
  const torch::Tensor regions = at.scheme.region(row, row);
  const auto n = static_cast<std::int64_t>(at.positions.size());
  for (std::int64_t region = 0; region < at.scheme.n_regions(); ++region) {
    const torch::Tensor q = at.rotated(ones, position::Role::kQuery, region);
    const torch::Tensor k = at.rotated(ones, position::Role::kKey, region);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        if (regions[i][j].item<std::int64_t>() != region) continue;
        const std::int64_t query = at.positions[static_cast<std::size_t>(i)];
        const std::int64_t key = at.positions[static_cast<std::size_t>(j)];
        check_remapped_pair(at, expected, rope::relative_position(*remap, query, key),
                            {q.data_ptr<float>() + i * at.spec.d_head, k.data_ptr<float>() + j * at.spec.d_head},
                            fmt::format("query {}, key {}", query, key));
      }
    }
  }
}

/// No formula is known here, so the law that makes a rotation a position scheme is asked for: the pair (1, 0) scores as
/// the pair (L0, L0-1) does.
void check_relative_law(const CheckedLayer& at) {
  constexpr double kTolerance = 1e-4;  // relative; float32 scales of xPos at both ends of the context
  const torch::Tensor head = at::linspace(-1, 1, at.spec.d_head, torch::kFloat32);
  const torch::Tensor q = at.rotated(head, position::Role::kQuery, 0).to(torch::kDouble);
  const torch::Tensor k = at.rotated(head.flip(0) + 0.5, position::Role::kKey, 0).to(torch::kDouble);
  const auto score = [&](std::size_t i, std::size_t j) {
    return (q[static_cast<std::int64_t>(i)] * k[static_cast<std::int64_t>(j)]).sum().item<double>();
  };
  if (at.positions.size() < 5) return;  // L0 of 2: the pairs are the same
  const double near_start = score(1, 0), at_end = score(3, 2);
  if (std::fabs(near_start - at_end) <= kTolerance * (1 + std::fabs(near_start))) return;
  throw ModelError(
      fmt::format("model: the rotation in force is not relative: layer {}: positions (1, 0) score {:.9g}, "
                  "({}, {}) score {:.9g}; position scheme '{}'",
                  at.layer, near_start, at.positions[3], at.positions[2], at_end, at.spec.position.kind));
}

/// One query at the farthest position against keys at each of the distances.
void check_bias(const CheckedLayer& at) {
  constexpr double kTolerance = 1e-5;  // relative; float32 in both, in another order
  const kernels::BiasFunction function = at.scheme.bias_function();
  if (!function) return;  // made from queries, keys or hidden states: one implementation serves both
  std::vector<std::int64_t> keys;
  for (auto it = at.positions.rbegin(); it != at.positions.rend(); ++it) keys.push_back(at.positions.back() - *it);
  position::LogitBlock block;
  block.q_positions = position_row({at.positions.back()});
  block.k_positions = position_row(keys);
  const auto n = static_cast<std::int64_t>(keys.size());
  const torch::Tensor trained =
      at.scheme.block_bias(block, true).to(torch::kFloat32).expand({1, at.spec.n_heads, 1, n}).contiguous();
  const auto query = static_cast<std::int32_t>(at.positions.back());
  const std::vector<std::int32_t> narrow(keys.begin(), keys.end());
  std::vector<float> row(keys.size());
  for (std::int64_t head = 0; head < at.spec.n_heads; ++head) {
    function(head, &query, 1, narrow.data(), n, row.data(), n);
    for (std::int64_t j = 0; j < n; ++j) {
      const auto wanted = static_cast<double>(trained.data_ptr<float>()[head * n + j]);
      const auto got = static_cast<double>(row[static_cast<std::size_t>(j)]);
      if (std::fabs(got - wanted) <= kTolerance * std::max(1.0, std::fabs(wanted))) continue;
      throw ModelError(
          fmt::format("model: the bias in force is not the trained one: layer {}, head {}, distance {}: "
                      "{:.9g} instead of {:.9g}; position scheme '{}'",
                      at.layer, head, query - narrow[static_cast<std::size_t>(j)], got, wanted, at.spec.position.kind));
    }
  }
}

}  // namespace

void check_rotation(model::DecoderLm& model) {
  const at::NoGradGuard no_grad;
  std::set<std::string> seen;
  for (std::int64_t layer = 0; layer < model.config().n_layers(); ++layer) {
    const checkpoint::LayerSpec& spec = model.config().layers[static_cast<std::size_t>(layer)];
    position::PositionScheme& scheme = model.scheme(layer);
    checkpoint::DecoderConfig one = model.config();
    one.layers = {spec};
    // Learned biases differ from layer to layer; what a text describes does not.
    const bool same = !seen.insert(fmt::format("{} {}", spec.d_head, checkpoint::describe_position(one))).second;
    const CheckedLayer at{scheme, spec, layer, checked_positions(model.config(), spec.position)};
    if (scheme.has_bias()) check_bias(at);
    if (same || !scheme.rotates()) continue;
    if (scheme.n_regions() > 1) {
      check_remap(at);
    } else if (spec.position.kind == "rope") {
      check_plain_rotation(at);
    } else {
      check_relative_law(at);
    }
  }
}

}  // namespace fathom::engine
