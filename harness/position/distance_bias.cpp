#include "harness/position/distance_bias.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/core/error.h"

namespace fathom::position {
namespace {

/// Sizes of a table [rows, heads, queries, count] read by positions [position_rows, q_len] and [position_rows, k_len].
struct DistanceShape {
  std::int64_t batch, heads, n_q, n_k;
  std::int64_t table_rows, table_queries, count;
  std::int64_t position_rows;
  std::int64_t first;

  std::int64_t table_row(std::int64_t row, std::int64_t head, std::int64_t query) const {
    const std::int64_t r = table_rows == 1 ? 0 : row, i = table_queries == 1 ? 0 : query;
    return ((r * heads + head) * table_queries + i) * count;
  }
};

DistanceShape distance_shape(const torch::Tensor& values, const torch::Tensor& q_positions,
                             const torch::Tensor& k_positions, std::int64_t first) {
  return {std::max(values.size(0), q_positions.size(0)),
          values.size(1),
          q_positions.size(1),
          k_positions.size(1),
          values.size(0),
          values.size(2),
          values.size(3),
          q_positions.size(0),
          first};
}

/// Calls pair(offset in the table, offset in the bias) for every pair of one (row, head) within the table.
template <typename Pair>
void for_each_distance(const DistanceShape& shape, std::int64_t row, std::int64_t head, const std::int64_t* q,
                       const std::int64_t* k, const Pair& pair) {
  const std::int64_t position_row = shape.position_rows == 1 ? 0 : row;
  for (std::int64_t i = 0; i < shape.n_q; ++i) {
    const std::int64_t base = q[position_row * shape.n_q + i] - shape.first;
    const std::int64_t table = shape.table_row(row, head, i);
    const std::int64_t out = ((row * shape.heads + head) * shape.n_q + i) * shape.n_k;
    for (std::int64_t j = 0; j < shape.n_k; ++j) {
      const std::int64_t at_distance = base - k[position_row * shape.n_k + j];
      if (at_distance >= 0 && at_distance < shape.count) pair(table + at_distance, out + j);
    }
  }
}

template <typename Real>
void read_by_distance(const DistanceShape& shape, const std::int64_t* q, const std::int64_t* k, const Real* values,
                      Real* out) {
  at::parallel_for(0, shape.batch * shape.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      for_each_distance(shape, unit / shape.heads, unit % shape.heads, q, k,
                        [&](std::int64_t from, std::int64_t to) { out[to] = values[from]; });
    }
  });
}

/// Adds up what read_by_distance spread. Heads are apart, and rows are where the table has them; others go one by one.
template <typename Real>
void add_by_distance(const DistanceShape& shape, const std::int64_t* q, const std::int64_t* k, const Real* gradient,
                     Real* values) {
  const std::int64_t apart = shape.table_rows == 1 ? 1 : shape.batch;
  at::parallel_for(0, apart * shape.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t head = unit % shape.heads;
      for (std::int64_t row = unit / shape.heads; row < shape.batch; row += apart) {
        for_each_distance(shape, row, head, q, k,
                          [&](std::int64_t to, std::int64_t from) { values[to] += gradient[from]; });
      }
    }
  });
}

class DistanceFunction : public torch::autograd::Function<DistanceFunction> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& values,
                               const torch::Tensor& q_positions, const torch::Tensor& k_positions, std::int64_t first) {
    ctx->save_for_backward({q_positions, k_positions});
    ctx->saved_data["first"] = first;
    ctx->saved_data["sizes"] = values.sizes().vec();
    const torch::Tensor table = values.contiguous();
    const DistanceShape shape = distance_shape(table, q_positions, k_positions, first);
    torch::Tensor out = at::zeros({shape.batch, shape.heads, shape.n_q, shape.n_k}, table.options());
    AT_DISPATCH_FLOATING_TYPES(table.scalar_type(), "bias_by_distance", [&] {
      read_by_distance(shape, q_positions.data_ptr<std::int64_t>(), k_positions.data_ptr<std::int64_t>(),
                       table.data_ptr<scalar_t>(), out.data_ptr<scalar_t>());
    });
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor values = at::zeros(ctx->saved_data["sizes"].toIntVector(), gradient.options());
    const DistanceShape shape = distance_shape(values, saved[0], saved[1], ctx->saved_data["first"].toInt());
    AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "bias_by_distance_backward", [&] {
      add_by_distance(shape, saved[0].data_ptr<std::int64_t>(), saved[1].data_ptr<std::int64_t>(),
                      gradient.data_ptr<scalar_t>(), values.data_ptr<scalar_t>());
    });
    return {values, {}, {}, {}};
  }
};

/// The same with LibTorch's gather, for tensors that are not on the CPU.
torch::Tensor gather_by_distance(const torch::Tensor& values, const LogitBlock& block, std::int64_t first) {
  const torch::Tensor at_distance = block.q_positions.unsqueeze(2) - block.k_positions.unsqueeze(1) - first;
  const torch::Tensor inside = at_distance.ge(0).logical_and(at_distance.lt(values.size(3))).unsqueeze(1);
  const std::int64_t batch = std::max(values.size(0), at_distance.size(0)), heads = values.size(1);
  const torch::Tensor index = at_distance.clamp(0, values.size(3) - 1).unsqueeze(1);
  const torch::Tensor table = values.expand({batch, heads, at_distance.size(1), values.size(3)});
  return table.gather(3, index.expand({batch, heads, index.size(2), index.size(3)})) * inside;
}

}  // namespace

DistanceRange distance_range(const LogitBlock& block) {
  const auto least = [](const torch::Tensor& x) { return x.min().item<std::int64_t>(); };
  const auto most = [](const torch::Tensor& x) { return x.max().item<std::int64_t>(); };
  DistanceRange range;
  range.first = std::max<std::int64_t>(0, least(block.q_positions) - most(block.k_positions));
  const std::int64_t last = most(block.q_positions) - least(block.k_positions);
  range.count = std::max<std::int64_t>(1, last - range.first + 1);
  return range;
}

torch::Tensor distances(const DistanceRange& range, const torch::TensorOptions& options) {
  return at::arange(range.first, range.first + range.count, options.requires_grad(c10::nullopt));
}

torch::Tensor bias_by_distance(const torch::Tensor& values, const LogitBlock& block, std::int64_t first) {
  FATHOM_CHECK(values.dim() == 4, "bias_by_distance needs values [batch or 1, heads, q_len or 1, count]");
  if (!values.device().is_cpu()) return gather_by_distance(values, block, first);
  return DistanceFunction::apply(values, block.q_positions.contiguous(), block.k_positions.contiguous(), first);
}

kernels::BiasFunction bias_function_by_distance(DistanceValues values) {
  return [values = std::move(values)](std::int64_t head, const std::int32_t* q_positions, std::int64_t n_q,
                                      const std::int32_t* k_positions, std::int64_t n_k, float* bias,
                                      std::int64_t stride) {
    if (n_q == 0 || n_k == 0) return;
    const auto [q_least, q_most] = std::minmax_element(q_positions, q_positions + n_q);
    const auto [k_least, k_most] = std::minmax_element(k_positions, k_positions + n_k);
    DistanceRange range;
    range.first = std::max<std::int64_t>(0, *q_least - *k_most);
    range.count = std::max<std::int64_t>(1, *q_most - *k_least - range.first + 1);
    thread_local std::vector<float> table;
    table.resize(static_cast<std::size_t>(range.count));
    values(head, range, table.data());
    for (std::int64_t i = 0; i < n_q; ++i) {
      const std::int64_t base = q_positions[i] - range.first;
      for (std::int64_t j = 0; j < n_k; ++j) {
        const std::int64_t at_distance = base - k_positions[j];
        bias[i * stride + j] =
            at_distance < 0 || at_distance >= range.count ? 0.0F : table[static_cast<std::size_t>(at_distance)];
      }
    }
  };
}

}  // namespace fathom::position
