#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include "harness/core/error.h"
#include "harness/position/angle_tables.h"
#include "harness/position/position_scheme.h"
#include "harness/position/rotation.h"

namespace fathom::position {
namespace {

/// Rotary position embedding (Su et al. 2021, section 3.4): both layouts, a prefix or suffix of the head, every scaling
/// of rope/methods.
class RopeScheme : public PositionScheme {
 public:
  explicit RopeScheme(const SchemeContext& context)
      : spec_(context.spec().position), d_head_(context.spec().d_head), tables_(context.tables) {
    if (spec_.rotary_dim < 2 || spec_.rotary_dim % 2 != 0 || spec_.rotary_dim > d_head_) {
      throw ModelError(
          fmt::format("position scheme rope: layer {}: rotary_dim = {} must be even and within 2..{} (d_head)",
                      context.layer, spec_.rotary_dim, d_head_));
    }
    if (!tables_) tables_ = std::make_shared<AngleTables>();
    if (!checkpoint::depends_on_length(spec_)) fixed_ = checkpoint::resolve_frequencies(spec_, 1);
  }

  bool rotates() const override { return true; }

  torch::Tensor rotate(const torch::Tensor& x, Role, const torch::Tensor& positions, std::int64_t total_len,
                       std::int64_t) override {
    FATHOM_CHECK(x.dim() == 4 && x.size(3) == d_head_, "rotate needs x [batch, seq, heads, d_head]");
    // Rows of expanded positions are the same, so one lookup serves the whole batch.
    const torch::Tensor rows =
        positions.size(0) > 1 && positions.stride(0) == 0 ? positions.narrow(0, 0, 1) : positions;
    const std::int64_t longest = rows.numel() == 0 ? 0 : rows.max().item<std::int64_t>() + 1;
    const AngleTable& table = tables_->table(frequencies(total_len), std::max(longest, total_len));
    return apply_rotation(x, rows, table,
                          {spec_.layout, spec_.side == checkpoint::RotarySide::kPrefix ? 0 : d_head_ - spec_.rotary_dim,
                           spec_.rotary_dim});
  }

  std::uint64_t rotation_state(std::int64_t total_len) const override {
    return rotation_identity(frequencies(total_len));
  }

  double softmax_scale_factor(std::int64_t total_len) const override {
    return frequencies(total_len).softmax_scale_factor;
  }

 private:
  rope::RopeFrequencies frequencies(std::int64_t total_len) const {
    return fixed_ ? *fixed_ : checkpoint::resolve_frequencies(spec_, total_len);
  }

  checkpoint::PositionSpec spec_;
  std::int64_t d_head_;
  std::shared_ptr<AngleTables> tables_;
  std::optional<rope::RopeFrequencies> fixed_;  // where the list does not depend on the length
};

std::shared_ptr<PositionScheme> make_rope(const SchemeContext& context) {
  return std::make_shared<RopeScheme>(context);
}

std::vector<OptionDescription> describe_rope() {
  return {};
}

}  // namespace

PositionSchemeEntry schemes::rope_entry() {
  return {{"rope", 1, "Rotary embedding of queries and keys; layouts, partial rotation and scalings.",
           "Su et al. 2021, section 3.4", true, false, &describe_rope},
          &make_rope};
}

}  // namespace fathom::position
