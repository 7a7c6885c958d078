#pragma once
// Names and summaries of the position schemes, torch-free: for `list positions`, config checks and the sweep.

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/core/options.h"
#include "harness/core/registry.h"

namespace fathom::position {

struct PositionInfo {
  std::string_view name;  ///< stored with results; stable for ever
  std::int32_t version;
  std::string_view summary;
  std::string_view source;  ///< paper, section
  bool rotates;             ///< RoPE family: base and scaling apply
  bool bounded;             ///< a table ends: positions past it are an error
  std::vector<OptionDescription> (*describe)();
};

const Registry<PositionInfo>& position_infos();

}  // namespace fathom::position
