#include "harness/rope/position_remap.h"

namespace fathom::rope {

double relative_position(const PositionRemap& remap, std::int64_t q, std::int64_t k) {
  const std::int64_t region = remap.region(q, k);
  return remap.query_position(q, region) - remap.key_position(k, region);
}

const Registry<PositionRemapEntry>& position_remaps() {
  static const Registry<PositionRemapEntry> registry("position remap", {
#define FATHOM_POSITION_REMAP(name) remaps::name##_entry(),
#include "harness/rope/remaps.inc"
#undef FATHOM_POSITION_REMAP
                                                                       });
  return registry;
}

}  // namespace fathom::rope
