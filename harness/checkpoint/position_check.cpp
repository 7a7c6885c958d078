#include "harness/checkpoint/position_check.h"

#include <fmt/format.h>

#include "harness/core/error.h"

namespace fathom::checkpoint {

void check_declared_position(const PositionSpec& position, const std::string& where) {
  try {
    resolve_frequencies(position, 1);
    rope::check_temperature(position.temperature);
  } catch (const ConfigError& error) {
    throw ModelError(fmt::format("model: {}: {}", where, error.what()));
  }
}

}  // namespace fathom::checkpoint
