#include "harness/position/position_scheme.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include "harness/core/error.h"

namespace fathom::position {
namespace {

constexpr double kFlatTableDeviation = 0.02;

}  // namespace

torch::Tensor visible_pairs(const LogitBlock& block) {
  return block.visible.defined() ? block.visible : block.k_positions.unsqueeze(1) <= block.q_positions.unsqueeze(2);
}

torch::Tensor PositionScheme::embed(const torch::Tensor& x, const torch::Tensor&) {
  return x;
}

torch::Tensor PositionScheme::rotate(const torch::Tensor& x, Role, const torch::Tensor&, std::int64_t, std::int64_t) {
  return x;
}

std::uint64_t PositionScheme::rotation_state(std::int64_t) const {
  return 0;
}

torch::Tensor PositionScheme::region(const torch::Tensor& q_positions, const torch::Tensor& k_positions) const {
  return at::zeros({q_positions.size(0), k_positions.size(0)}, q_positions.options());
}

void PositionScheme::set_temperature(const rope::QueryTemperature& temperature) {
  rope::check_temperature(temperature);
  temperature_ = temperature;
}

torch::Tensor PositionScheme::query_scale(const torch::Tensor& positions) {
  if (temperature_.kind == rope::TemperatureKind::kNone) return {};
  const torch::Tensor rows = positions.cpu().contiguous();
  torch::Tensor scale = at::empty(rows.sizes(), torch::kFloat32);
  const auto* from = rows.data_ptr<std::int64_t>();
  float* to = scale.data_ptr<float>();
  for (std::int64_t i = 0; i < rows.numel(); ++i)
    to[i] = static_cast<float>(rope::query_multiplier(temperature_, from[i]));
  return scale.to(positions.device());
}

double PositionScheme::softmax_scale_factor(std::int64_t) const {
  return 1;
}

torch::Tensor PositionScheme::block_bias(const LogitBlock&, bool) {
  return {};
}

kernels::BiasFunction PositionScheme::bias_function() const {
  return {};
}

std::vector<torch::Tensor> PositionScheme::bias_parameters() const {
  return has_bias() ? parameters() : std::vector<torch::Tensor>{};
}

void PositionScheme::draw_parameter(const std::string&, torch::Tensor& values, RngStream& rng) const {
  float* out = values.data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) out[i] = static_cast<float>(kFlatTableDeviation * rng.normal());
}

std::shared_ptr<PositionScheme> make_position_scheme(const SchemeContext& context) {
  const checkpoint::PositionSpec& spec = context.spec().position;
  std::shared_ptr<PositionScheme> scheme = position_schemes().at(spec.kind).make(context);
  if (spec.remap.method != "none" && !scheme->remaps_positions()) {
    throw ConfigError(fmt::format("remap {}: position scheme '{}' (layer {}) cannot be remapped; only rope can",
                                  spec.remap.method, spec.kind, context.layer));
  }
  scheme->set_temperature(spec.temperature);
  return scheme;
}

const Registry<PositionSchemeEntry>& position_schemes() {
  static const Registry<PositionSchemeEntry> kSchemes("position scheme", {
#define FATHOM_POSITION_SCHEME(name) schemes::name##_entry(),
#include "harness/position/schemes.inc"
#undef FATHOM_POSITION_SCHEME
                                                                         });
  return kSchemes;
}

const Registry<PositionInfo>& position_infos() {
  static const Registry<PositionInfo> kInfos("position scheme", [] {
    std::vector<PositionInfo> infos;
    for (const PositionSchemeEntry& entry : position_schemes().entries()) infos.push_back(entry);
    return infos;
  }());
  return kInfos;
}

}  // namespace fathom::position
