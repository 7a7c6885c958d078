#include "harness/position/rotation.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace fathom::position {
namespace {

/// Where the i-th pair stands: channels first + i * step and second + i * step of the rotated part.
struct PairPlace {
  std::int64_t second;
  std::int64_t step;
};

PairPlace halves(std::int64_t rotary_dim) {
  return {rotary_dim / 2, 1};
}
PairPlace neighbours() {
  return {1, 2};
}

struct RotationPlan {
  PairPlace in, out;
  std::int64_t begin, rotary_dim;
  float sign;  ///< -1 turns backwards
};

RotationPlan rotation_plan(const RotationShape& shape) {
  const PairPlace half = halves(shape.rotary_dim);
  switch (shape.layout) {
    case checkpoint::RopeLayout::kSplitHalf:
      return {half, half, shape.begin, shape.rotary_dim, 1};
    case checkpoint::RopeLayout::kInterleaved:
      return {neighbours(), neighbours(), shape.begin, shape.rotary_dim, 1};
    case checkpoint::RopeLayout::kInterleavedInSplitOut:
      return {neighbours(), half, shape.begin, shape.rotary_dim, 1};
  }
  return {half, half, shape.begin, shape.rotary_dim, 1};
}

/// The transposed linear map: the gradient of a rotation is the rotation backwards, from the output's layout to the
/// input's.
RotationPlan transposed(const RotationPlan& plan) {
  return {plan.out, plan.in, plan.begin, plan.rotary_dim, -plan.sign};
}

void rotate_head(const RotationPlan& plan, const float* cos, const float* sin, const float* x, float* out) {
  const std::int64_t n = plan.rotary_dim / 2;
  if (plan.in.step == 1 && plan.out.step == 1) {
    for (std::int64_t i = 0; i < n; ++i) {
      const float s = plan.sign * sin[i];
      out[i] = x[i] * cos[i] - x[i + n] * s;
      out[i + n] = x[i + n] * cos[i] + x[i] * s;
    }
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const float a = x[i * plan.in.step], b = x[i * plan.in.step + plan.in.second], s = plan.sign * sin[i];
    out[i * plan.out.step] = a * cos[i] - b * s;
    out[i * plan.out.step + plan.out.second] = b * cos[i] + a * s;
  }
}

/// x: [batch, seq, heads, d_head] float32 contiguous on the CPU; cos, sin: [batch or 1, seq, rotary_dim / 2].
torch::Tensor rotate_on_kernel(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin,
                               const RotationPlan& plan) {
  torch::Tensor out = at::empty_like(x);
  const std::int64_t seq = x.size(1), heads = x.size(2), d_head = x.size(3), n_pairs = plan.rotary_dim / 2;
  const std::int64_t row_stride = cos.size(0) == 1 ? 0 : seq;
  const float *source = x.data_ptr<float>(), *cos_rows = cos.data_ptr<float>(), *sin_rows = sin.data_ptr<float>();
  float* target = out.data_ptr<float>();
  at::parallel_for(0, x.size(0) * seq, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t token = first; token < last; ++token) {
      const std::int64_t angle = (token / seq * row_stride + token % seq) * n_pairs;
      for (std::int64_t head = 0; head < heads; ++head) {
        const float* from = source + (token * heads + head) * d_head;
        float* to = target + (token * heads + head) * d_head;
        rotate_head(plan, cos_rows + angle, sin_rows + angle, from + plan.begin, to + plan.begin);
        std::copy(from, from + plan.begin, to);
        std::copy(from + plan.begin + plan.rotary_dim, from + d_head, to + plan.begin + plan.rotary_dim);
      }
    }
  });
  return out;
}

torch::Tensor rotate_on_torch(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin,
                              const RotationPlan& plan) {
  const std::int64_t n = plan.rotary_dim / 2;
  const auto part = [&](const torch::Tensor& whole, const PairPlace& place, bool second) {
    const std::int64_t first_channel = plan.begin + (second ? place.second : 0);
    return whole.slice(-1, first_channel, first_channel + (n - 1) * place.step + 1, place.step);
  };
  const torch::Tensor c = cos.unsqueeze(2), s = sin.unsqueeze(2) * plan.sign;  // [batch or 1, seq, 1, pairs]
  const torch::Tensor a = part(x, plan.in, false), b = part(x, plan.in, true);
  torch::Tensor out = x.clone();
  part(out, plan.out, false).copy_(a * c - b * s);
  part(out, plan.out, true).copy_(b * c + a * s);
  return out;
}

torch::Tensor rotate_any(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin,
                         const RotationPlan& plan) {
  if (x.scalar_type() == torch::kDouble)
    return rotate_on_torch(x, cos.to(torch::kDouble), sin.to(torch::kDouble), plan);
  const torch::Tensor single = x.to(torch::kFloat32).contiguous();
  const torch::Tensor out =
      x.device().is_cpu() ? rotate_on_kernel(single, cos, sin, plan) : rotate_on_torch(single, cos, sin, plan);
  return out.to(x.scalar_type());
}

class RotationFunction : public torch::autograd::Function<RotationFunction> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x, const torch::Tensor& cos,
                               const torch::Tensor& sin, std::int64_t layout, std::int64_t begin,
                               std::int64_t rotary_dim) {
    ctx->save_for_backward({cos, sin});
    ctx->saved_data["layout"] = layout;
    ctx->saved_data["begin"] = begin;
    ctx->saved_data["rotary_dim"] = rotary_dim;
    return rotate_any(x, cos, sin, rotation_plan({static_cast<checkpoint::RopeLayout>(layout), begin, rotary_dim}));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const RotationPlan plan = rotation_plan({static_cast<checkpoint::RopeLayout>(ctx->saved_data["layout"].toInt()),
                                             ctx->saved_data["begin"].toInt(), ctx->saved_data["rotary_dim"].toInt()});
    return {rotate_any(gradients[0], saved[0], saved[1], transposed(plan)), {}, {}, {}, {}, {}};
  }
};

}  // namespace

torch::Tensor apply_rotation(const torch::Tensor& x, const torch::Tensor& positions, const AngleTable& table,
                             const RotationShape& shape) {
  const auto rows = [&](const torch::Tensor& values) {
    return values.index_select(0, positions.reshape(-1).cpu())
        .view({positions.size(0), positions.size(1), values.size(1)})
        .to(x.device());
  };
  return RotationFunction::apply(x, rows(table.cos), rows(table.sin), static_cast<std::int64_t>(shape.layout),
                                 shape.begin, shape.rotary_dim);
}

}  // namespace fathom::position
