#pragma once
// RoPE frequencies and scaling methods: pure arithmetic on doubles, no tensors.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/options.h"
#include "harness/core/registry.h"
#include "harness/rope/precision.h"

namespace fathom::rope {

struct RopeGeometry {
  std::int64_t rotary_dim = 0;        ///< even; number of rotated lanes per head (r)
  double base = 10000;                ///< theta in the RoPE paper (b)
  std::int64_t original_context = 0;  ///< tokens the model was trained on (L0)
};

struct RopeFrequencies {
  std::vector<double> inv_freq;       ///< [rotary_dim / 2], radians per token
  double attention_factor = 1.0;      ///< multiplies cos and sin (YaRN's mscale), so logits get its square; 1 = off
  double softmax_scale_factor = 1.0;  ///< multiplies the softmax scale (DeepSeek's m^2); 1 = off
  FloatFormat table_dtype = FloatFormat::kFloat32;  ///< what cos and sin are rounded to; no method's choice
};

/// base^(-2i/r) for i = 0..r/2-1 (Su et al. 2021, section 3.2.2). \throws ConfigError for an odd or non-positive
/// rotary_dim, or a base <= 0.
std::vector<double> default_inv_freq(std::int64_t rotary_dim, double base);

/// How a method whose list depends on the sequence length behaves.
enum class LengthPolicy {
  kFixed,       ///< one list for every length
  kConsistent,  ///< list of the whole current length; a cache made with another list is not used
  kFrozen,      ///< list of one declared length
  kHf           ///< history dependent as in the Hugging Face implementation; for parity only
};

/// "fixed", "consistent", "frozen", "hf".
std::string_view to_string(LengthPolicy policy);
/// \throws ConfigError  for another name.
LengthPolicy parse_length_policy(std::string_view name);

class RopeScaling {
 public:
  virtual ~RopeScaling() = default;
  /// \param seq_len  tokens the angle table must serve now, cache included; length-dependent methods use it, others
  /// ignore it.
  virtual RopeFrequencies frequencies(const RopeGeometry& geometry, std::int64_t seq_len) const = 0;
  virtual bool depends_on_length() const { return false; }
  /// Largest seq_len up to which the list equals that of seq_len 1 (dynamic: the original context); nothing = for ever.
  virtual std::optional<std::int64_t> constant_up_to(const RopeGeometry&) const { return std::nullopt; }
  /// Canonical options, declared values included.
  virtual std::string canonical_options() const = 0;
};

struct RopeScalingEntry {
  std::string_view name;
  std::int32_t version;
  std::string_view summary;
  std::string_view source;  ///< paper, section
  bool uses_factor;         ///< false for `none`: the factor axis collapses
  std::vector<OptionDescription> (*describe)();
  /// \param factor  s, at least 1 (what "auto" resolved to; for `dynamic` auto is 1).
  /// \throws ConfigError for options the method does not know or values out of range.
  std::unique_ptr<RopeScaling> (*make)(double factor, const OptionSource& options);
};

const Registry<RopeScalingEntry>& scalings();

/// One entry per line of scalings.inc, defined in methods/NAME.cpp.
namespace methods {
#define FATHOM_ROPE_SCALING(name) RopeScalingEntry name##_entry();
#include "harness/rope/scalings.inc"
#undef FATHOM_ROPE_SCALING
}  // namespace methods

}  // namespace fathom::rope
