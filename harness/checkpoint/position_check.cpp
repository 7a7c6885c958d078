#include "harness/checkpoint/position_check.h"

#include <fmt/format.h>

#include <cstdint>

#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

// Far above any model (512 at most so far); a table of frequencies of this width is still small.
constexpr std::int64_t kMaxRotaryDim = std::int64_t{1} << 16;

}  // namespace

void check_declared_position(const PositionSpec& position, const std::string& where) {
  if (position.rotary_dim > kMaxRotaryDim) {
    throw ModelError(fmt::format("model: {}: {} rotated lanes a head; at most {} are allowed", where,
                                 position.rotary_dim, kMaxRotaryDim));
  }
  try {
    resolve_frequencies(position, 1);
    rope::check_temperature(position.temperature);
  } catch (const ConfigError& error) {
    throw ModelError(fmt::format("model: {}: {}", where, error.what()));
  }
}

}  // namespace fathom::checkpoint
