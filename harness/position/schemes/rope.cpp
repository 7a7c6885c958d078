#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/core/error.h"
#include "harness/position/angle_tables.h"
#include "harness/position/position_scheme.h"
#include "harness/position/rotation.h"
#include "harness/rope/position_remap.h"

namespace fathom::position {
namespace {

/// Rotary position embedding (Su et al. 2021, section 3.4): both layouts, a prefix or suffix of the head, every scaling
/// of rope/methods, every remap of rope/remaps.
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
    remap_ = checkpoint::make_remap(spec_);
    if (remap_) make_position_maps();
  }

  bool rotates() const override { return true; }
  bool remaps_positions() const override { return remap_ != nullptr; }
  std::int64_t n_regions() const override { return remap_ ? remap_->n_regions() : 1; }

  torch::Tensor region(const torch::Tensor& q_positions, const torch::Tensor& k_positions) const override {
    if (!remap_) return PositionScheme::region(q_positions, k_positions);
    const torch::Tensor q = q_positions.contiguous(), k = k_positions.contiguous();
    const std::int64_t n_q = q.size(0), n_k = k.size(0);
    torch::Tensor out = at::zeros({n_q, n_k}, torch::kInt64);
    const auto* queries = q.data_ptr<std::int64_t>();
    const auto* keys = k.data_ptr<std::int64_t>();
    auto* regions = out.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < n_q; ++i) {
      for (std::int64_t j = 0; j < n_k; ++j) {
        // A remap is defined up to the diagonal; what lies above it is hidden.
        if (keys[j] <= queries[i]) regions[i * n_k + j] = remap_->region(queries[i], keys[j]);
      }
    }
    return out;
  }

  torch::Tensor rotate(const torch::Tensor& x, Role role, const torch::Tensor& positions, std::int64_t total_len,
                       std::int64_t region) override {
    FATHOM_CHECK(x.dim() == 4 && x.size(3) == d_head_, "rotate needs x [batch, seq, heads, d_head]");
    // Rows of expanded positions are the same, so one lookup serves the whole batch.
    const torch::Tensor asked =
        positions.size(0) > 1 && positions.stride(0) == 0 ? positions.narrow(0, 0, 1) : positions;
    const AngleRows found = tables_->rows(frequencies(total_len), asked.cpu(), total_len, map_of(role, region));
    return apply_rotation(x, found.rows, found.table,
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

  /// Layers of equal remaps share their tables, so the name must say all that shapes a map.
  void make_position_maps() {
    const std::string name =
        fmt::format("{}({};{})", spec_.remap.method, spec_.scaling.original_context, remap_->canonical_options());
    for (std::int64_t region = 0; region < remap_->n_regions(); ++region) {
      query_maps_.push_back({fmt::format("{} q{}", name, region), [remap = remap_, region](std::int64_t position) {
                               return remap->query_position(position, region);
                             }});
      key_maps_.push_back({fmt::format("{} k{}", name, region), [remap = remap_, region](std::int64_t position) {
                             return remap->key_position(position, region);
                           }});
    }
  }

  const PositionMap& map_of(Role role, std::int64_t region) const {
    static const PositionMap kPlain;
    if (!remap_) return kPlain;
    return (role == Role::kQuery ? query_maps_ : key_maps_).at(static_cast<std::size_t>(region));
  }

  checkpoint::PositionSpec spec_;
  std::int64_t d_head_;
  std::shared_ptr<AngleTables> tables_;
  std::optional<rope::RopeFrequencies> fixed_;  // where the list does not depend on the length
  std::shared_ptr<const rope::PositionRemap> remap_;
  std::vector<PositionMap> query_maps_, key_maps_;  // by region; empty without a remap
};

std::shared_ptr<PositionScheme> make_rope(const SchemeContext& context) {
  return std::make_shared<RopeScheme>(context);
}

std::vector<OptionDescription> describe_rope() {
  return {};
}

}  // namespace

PositionSchemeEntry schemes::rope_entry() {
  return {{"rope", 1, "Rotary embedding of queries and keys; layouts, partial rotation, scalings and remaps.",
           "Su et al. 2021, section 3.4", true, false, &describe_rope},
          &make_rope};
}

}  // namespace fathom::position
