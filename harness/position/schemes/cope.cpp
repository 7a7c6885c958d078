#include <ATen/Functions.h>

#include <cmath>

#include "harness/core/error.h"
#include "harness/position/position_scheme.h"

namespace fathom::position {
namespace {

struct CopeOptions {
  std::int64_t npos = 64;
  bool scale_gates = false;
  void visit(OptionVisitor& v) {
    v.integer("npos", npos, {2, 1 << 16}, "Vectors; positions from npos - 1 on share the last.");
    v.flag("scale_gates", scale_gates, "Divide q.k by sqrt(d_head) in the gates, as the authors' code does.");
  }
};

CopeOptions cope_options(const SchemeContext& context) {
  CopeOptions options;
  bind_options(options, OptionSource("position scheme cope", context.spec().position.options));
  return options;
}

/// Contextual positions (Golovneva et al. 2024, section 4): a key's position is the number of keys from it to the query
/// that the query counts.
///
///   g[i, j] = sigmoid(q_i k_j)                            for j <= i
///   p[i, j] = min(g[i, j] + ... + g[i, i], npos - 1)
///   bias[h, i, j] = (1 - w) q_i e[floor p] + w q_i e[ceil p],   w = p - floor p
///
/// The vectors e serve all heads of a layer. The sum runs from the query back, so blocks of older keys start from what
/// the newer ones carried.
class CopeScheme : public PositionScheme {
 public:
  explicit CopeScheme(const SchemeContext& context) : options_(cope_options(context)) {
    vectors_ = register_parameter("vectors", torch::zeros({options_.npos, context.spec().d_head}));
    if (options_.scale_gates) gate_scale_ = 1 / std::sqrt(static_cast<double>(context.spec().d_head));
  }

  bool has_bias() const override { return true; }
  bool needs_q_and_k() const override { return true; }
  bool carries_along_keys() const override { return true; }

  torch::Tensor block_bias(const LogitBlock& block, bool first_block) override {
    FATHOM_CHECK(block.q.size(1) % block.k.size(1) == 0, "query heads must be a multiple of key heads");
    const torch::Tensor q = block.q.to(vectors_.scalar_type());  // [batch, heads, q_len, d_head]
    const std::int64_t group = q.size(1) / block.k.size(1);
    const torch::Tensor k = block.k.to(vectors_.scalar_type());
    // Keys from the newest to the oldest, so that a plain running sum is the position: near keys, whose positions
    // matter most, then carry the rounding of few additions.
    const torch::Tensor keys = (group == 1 ? k : k.repeat_interleave(group, 1)).flip(2);
    const torch::Tensor gates = at::sigmoid(at::matmul(q, keys.transpose(-1, -2)) * gate_scale_)
                                    .masked_fill(visible_pairs(block).flip(-1).logical_not().unsqueeze(1), 0);
    const torch::Tensor sums = first_block ? gates.cumsum(-1) : gates.cumsum(-1) + carried_;
    carried_ = sums.narrow(-1, sums.size(-1) - 1, 1);
    const torch::Tensor p = sums.clamp_max(static_cast<double>(options_.npos - 1));
    const torch::Tensor low = p.detach().floor(), w = p - low;
    const torch::Tensor below = low.to(torch::kInt64), above = (below + 1).clamp_max(options_.npos - 1);
    const torch::Tensor at_whole = at::matmul(q, vectors_.t());  // [batch, heads, q_len, npos]
    return (at_whole.gather(-1, below) * (1 - w) + at_whole.gather(-1, above) * w).flip(-1);
  }

 private:
  CopeOptions options_;
  double gate_scale_ = 1;
  torch::Tensor vectors_;  // [npos, d_head]
  torch::Tensor carried_;  // gates of the newer keys, [batch, heads, q_len, 1]
};

std::shared_ptr<PositionScheme> make_cope(const SchemeContext& context) {
  return std::make_shared<CopeScheme>(context);
}

std::vector<OptionDescription> describe_cope() {
  return describe_options(CopeOptions{});
}

}  // namespace

PositionSchemeEntry schemes::cope_entry() {
  return {{"cope", 1, "Positions counted by content: each query decides which keys count.",
           "Golovneva et al. 2024, section 4", false, false, &describe_cope},
          &make_cope};
}

}  // namespace fathom::position
