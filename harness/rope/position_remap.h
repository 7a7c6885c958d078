#pragma once
// Training-free remaps: which positions a rotation sees for a pair of query and key. Pure arithmetic, no tensors.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/options.h"
#include "harness/core/registry.h"

namespace fathom::rope {

/// The pairs (q, k), 0 <= k <= q, fall into regions. Within a region queries and keys each have one map of positions,
/// so that a region needs one rotation of the queries and one of the keys; the relative position in force is the
/// difference of the mapped positions. Mapped positions may be fractions (Leaky ReRoPE).
class PositionRemap {
 public:
  virtual ~PositionRemap() = default;
  virtual std::int64_t n_regions() const = 0;
  /// Region of a pair, 0 .. n_regions() - 1; 0 is the one around the diagonal.
  virtual std::int64_t region(std::int64_t q, std::int64_t k) const = 0;
  virtual double query_position(std::int64_t q, std::int64_t region) const = 0;
  virtual double key_position(std::int64_t k, std::int64_t region) const = 0;
  /// Canonical options, defaults that were derived from the original context included.
  virtual std::string canonical_options() const = 0;
};

/// Relative position that the rotation sees for query q and key k.
double relative_position(const PositionRemap& remap, std::int64_t q, std::int64_t k);

struct PositionRemapEntry {
  std::string_view name;
  std::int32_t version;
  std::string_view summary;
  std::string_view source;  ///< paper, section
  std::vector<OptionDescription> (*describe)();
  /// \param original_context  tokens the model was trained on; options left out are derived from it.
  /// \throws ConfigError  for options the remap does not know or values that do not fit together.
  std::unique_ptr<PositionRemap> (*make)(std::int64_t original_context, const OptionSource& options);
};

/// Without "none", which is the absence of a remap.
const Registry<PositionRemapEntry>& position_remaps();

/// One entry per line of remaps.inc, defined in remaps/NAME.cpp.
namespace remaps {
#define FATHOM_POSITION_REMAP(name) PositionRemapEntry name##_entry();
#include "harness/rope/remaps.inc"
#undef FATHOM_POSITION_REMAP
}  // namespace remaps

}  // namespace fathom::rope
