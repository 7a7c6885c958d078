#include "harness/position/position_scheme.h"

#include <limits>

namespace fathom::position {

torch::Tensor PositionScheme::embed(const torch::Tensor& x, const torch::Tensor&) {
  return x;
}

torch::Tensor PositionScheme::rotate(const torch::Tensor& x, Role, const torch::Tensor&, std::int64_t, std::size_t) {
  return x;
}

std::uint64_t PositionScheme::rotation_state(std::int64_t) const {
  return 0;
}

std::vector<DistanceRange> PositionScheme::ranges() const {
  return {{0, std::numeric_limits<std::int64_t>::max()}};
}

torch::Tensor PositionScheme::query_scale(const torch::Tensor&) {
  return {};
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
