#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "harness/position/distance_bias.h"
#include "harness/position/position_scheme.h"

namespace fathom::position {
namespace {

struct T5Options {
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;
  bool shared = true;
  void visit(OptionVisitor& v) {
    v.integer("buckets", buckets, {2, 4096}, "Rows of the table.");
    v.integer("max_distance", max_distance, {2, 1 << 20}, "Distances from here on share the last bucket.");
    v.flag("shared", shared, "One table in the first layer serves all (T5); off: one per layer (UMT5).");
  }
};

T5Options t5_options(const SchemeContext& context) {
  T5Options options;
  bind_options(options, OptionSource("position scheme t5", context.spec().position.options));
  return options;
}

/// bias[h, i, j] = table[bucket(i - j), h] (Raffel et al. 2020, section 2.1). The table has T5's own layout, [buckets,
/// n_heads]. T5 itself uses no 1 / sqrt(d_head); that is the layer's softmax_scale, not this scheme's.
class T5Scheme : public PositionScheme {
 public:
  explicit T5Scheme(const SchemeContext& context) : options_(t5_options(context)) {
    // Where layer 0 is of another kind, or has other buckets, there is no table to share.
    if (options_.shared) owner_ = std::dynamic_pointer_cast<T5Scheme>(context.first_layer);
    if (owner_ && owner_->table_.sizes() != torch::IntArrayRef({options_.buckets, context.spec().n_heads}))
      owner_ = nullptr;
    if (!owner_) table_ = register_parameter("table", torch::zeros({options_.buckets, context.spec().n_heads}));
  }

  bool has_bias() const override { return true; }

  torch::Tensor block_bias(const LogitBlock& block, bool) override {
    const DistanceRange range = distance_range(block);
    torch::Tensor rows = at::empty({range.count}, torch::kInt64);
    for (std::int64_t d = 0; d < range.count; ++d) rows.data_ptr<std::int64_t>()[d] = bucket(range.first + d);
    const torch::Tensor values = table().index_select(0, rows.to(table().device()));  // [count, n_heads]
    return bias_by_distance(values.t().unsqueeze(0).unsqueeze(2), block, range.first);
  }

  kernels::BiasFunction bias_function() const override {
    std::vector<std::size_t> bucket_of;
    for (std::int64_t d = 0; d <= options_.max_distance; ++d) bucket_of.push_back(static_cast<std::size_t>(bucket(d)));
    const torch::Tensor by_head = table().detach().t().to(torch::kFloat32).contiguous().cpu();
    const auto n = static_cast<std::size_t>(options_.buckets);
    std::vector<float> rows(by_head.data_ptr<float>(), by_head.data_ptr<float>() + by_head.numel());
    return bias_function_by_distance([bucket_of, n, rows](std::int64_t head, const DistanceRange& range, float* out) {
      const float* row = rows.data() + static_cast<std::size_t>(head) * n;
      for (std::int64_t d = 0; d < range.count; ++d)
        out[d] = row[bucket_of[std::min(static_cast<std::size_t>(range.first + d), bucket_of.size() - 1)]];
    });
  }

  std::vector<torch::Tensor> bias_parameters() const override { return {table()}; }

 private:
  const torch::Tensor& table() const { return owner_ ? owner_->table_ : table_; }

  /// d for d < e = buckets / 2, else e + trunc(ln(d / e) / ln(max_distance / e) * (buckets - e)), the last bucket at
  /// most.
  std::int64_t bucket(std::int64_t d) const {
    const std::int64_t exact = options_.buckets / 2;
    if (d < exact) return d;
    if (d >= options_.max_distance) return options_.buckets - 1;
    const auto ratio = [&](std::int64_t x) { return std::log(static_cast<double>(x) / static_cast<double>(exact)); };
    const double share = ratio(d) / ratio(options_.max_distance);
    return std::min(options_.buckets - 1,
                    exact + static_cast<std::int64_t>(share * static_cast<double>(options_.buckets - exact)));
  }

  T5Options options_;
  std::shared_ptr<T5Scheme> owner_;  // layer 0's scheme, where its table is the one
  torch::Tensor table_;              // [buckets, n_heads]
};

std::shared_ptr<PositionScheme> make_t5(const SchemeContext& context) {
  return std::make_shared<T5Scheme>(context);
}

std::vector<OptionDescription> describe_t5() {
  return describe_options(T5Options{});
}

}  // namespace

PositionSchemeEntry schemes::t5_entry() {
  return {{"t5", 1, "A learned bias per head for buckets of distances, widening with the distance.",
           "Raffel et al. 2020, section 2.1", false, false, &describe_t5},
          &make_t5};
}

}  // namespace fathom::position
