#include "harness/model/linear_attention.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "harness/model/inference_attention.h"
#include "harness/model/short_convolution.h"

namespace fathom::model {
namespace {

using torch::Tensor;

constexpr std::int64_t kQueryBlock = 256;
constexpr double kMlstmEpsilon = 1e-6;  // of xLSTM's implementation, beside the maximum in the denominator

/// What one sequence adds up. q: [n_q, heads, d] of the last positions; k, v: [n_k, heads, d].
struct FadingSequence {
  Tensor q, k, v;
};

/// The result of queries [first, first + n) counted in all positions. products: [heads, n, first + n], values: [heads,
/// first + n, d]. Result [heads, n, d].
using FadingBlock =
    std::function<Tensor(std::int64_t first, std::int64_t n, const Tensor& products, const Tensor& values)>;

/// [n_q, heads * d]
Tensor run_fading(const FadingSequence& sequence, const FadingBlock& run_block) {
  const std::int64_t n_q = sequence.q.size(0), n_k = sequence.k.size(0);
  const Tensor keys = sequence.k.transpose(0, 1), values = sequence.v.transpose(0, 1);  // [heads, n_k, d]
  std::vector<Tensor> blocks;
  for (std::int64_t begin = 0; begin < n_q; begin += kQueryBlock) {
    const std::int64_t n = std::min(kQueryBlock, n_q - begin), first = n_k - n_q + begin, seen = first + n;
    const Tensor q = sequence.q.narrow(0, begin, n).transpose(0, 1);
    const Tensor products = at::bmm(q, keys.narrow(1, 0, seen).transpose(1, 2));
    blocks.push_back(run_block(first, n, products, values.narrow(1, 0, seen)).transpose(0, 1));
  }
  return at::cat(blocks, 0).reshape({n_q, -1});
}

/// -slope of every head, [n_heads, 1, 1] float32.
Tensor negative_slopes(const checkpoint::LayerSpec& spec) {
  Tensor out = at::empty({spec.n_heads, 1, 1}, torch::kFloat32);
  for (std::int64_t h = 0; h < spec.n_heads; ++h) {
    const double exponent = -8.0 * static_cast<double>(h + 1) / static_cast<double>(spec.n_heads);
    out.data_ptr<float>()[h] = static_cast<float>(-std::exp2(exponent) * spec.linear->slope_factor);
  }
  return out;
}

/// i - j of queries [first, first + n) and all keys up to the last, [n, first + n].
Tensor distances(std::int64_t first, std::int64_t n, const torch::TensorOptions& options) {
  return at::arange(first, first + n, options).unsqueeze(1) - at::arange(first + n, options).unsqueeze(0);
}

Tensor run_lightning(const FadingSequence& sequence, const Tensor& slopes) {
  return run_fading(sequence, [&](std::int64_t first, std::int64_t n, const Tensor& products, const Tensor& values) {
    const Tensor distance = distances(first, n, slopes.options());
    const Tensor weights = (distance * slopes).exp().masked_fill(distance < 0, 0);  // [heads, n, first + n]
    return at::bmm(products * weights, values);
  });
}

/// gates: [n_k, 2 * heads], input gates before forget gates.
Tensor run_mlstm(const FadingSequence& sequence, const Tensor& gates, double scale) {
  const std::int64_t n_heads = gates.size(1) / 2;
  const Tensor input = gates.narrow(1, 0, n_heads).t().to(torch::kDouble);  // [heads, n_k]
  const Tensor forget_logits = gates.narrow(1, n_heads, n_heads).t().to(torch::kDouble);
  const Tensor forget = at::log_sigmoid(forget_logits).cumsum(1);
  return run_fading(sequence, [&](std::int64_t first, std::int64_t n, const Tensor& products, const Tensor& values) {
    const Tensor reached = forget.narrow(1, first, n).unsqueeze(2);                // [heads, n, 1]
    const Tensor entered = (input - forget).narrow(1, 0, first + n).unsqueeze(1);  // [heads, 1, seen]
    const Tensor later = distances(first, n, torch::TensorOptions().dtype(torch::kInt64)) < 0;
    const Tensor exponents =
        (reached + entered).masked_fill(later.to(reached.device()), -std::numeric_limits<double>::infinity());
    // The reference's state begins with a maximum of 0, which fades like a key does: its epsilon counts in that scale.
    const Tensor largest = at::maximum(std::get<0>(exponents.max(-1, true)), reached);  // [heads, n, 1]
    const Tensor weights = (exponents - largest).exp().to(torch::kFloat32) * products * scale;
    const Tensor sums = weights.sum(-1, true).abs();
    return at::bmm(weights, values) / (at::maximum(sums, (-largest).exp().to(torch::kFloat32)) + kMlstmEpsilon);
  });
}

/// Runs every sequence of a call. `run` takes the sequence, its row of the batch and its span, null without caches.
Tensor each_sequence(const ops::AttentionCall& call,
                     const std::function<Tensor(const FadingSequence&, std::int64_t, const SequenceSpan*)>& run) {
  std::vector<Tensor> rows;
  if (call.sequences == nullptr) {
    for (std::int64_t row = 0; row < call.q.size(0); ++row)
      rows.push_back(run({call.q[row], call.k[row], call.v[row]}, row, nullptr));
    return at::stack(rows);
  }
  for (const SequenceSpan& span : *call.sequences) {
    const auto [keys, values] = append_to_cache(call, span);
    rows.push_back(run({call.q[0].narrow(0, span.begin, span.n_tokens), keys[0], values[0]}, 0, &span));
  }
  return at::cat(rows, 0).unsqueeze(0);
}

}  // namespace

Tensor lightning_attention(const ops::AttentionCall& call) {
  const Tensor slopes = negative_slopes(*call.spec).to(call.q.device());
  return each_sequence(call, [&](const FadingSequence& sequence, std::int64_t, const SequenceSpan*) {
    return run_lightning(sequence, slopes);
  });
}

Tensor mlstm_attention(const ops::AttentionCall& call, const Tensor& input_gate, const Tensor& forget_gate) {
  const Tensor gates = at::cat({input_gate, forget_gate}, -1);  // [batch, seq, 2 * heads]
  const double scale = 1 / std::sqrt(static_cast<double>(call.spec->linear->d_key));
  return each_sequence(call, [&](const FadingSequence& sequence, std::int64_t row, const SequenceSpan* span) {
    const Tensor own = gates[row];
    if (span == nullptr) return run_mlstm(sequence, own, scale);
    const Tensor all = remember(call, *span, own.narrow(0, span->begin, span->n_tokens), 0, own.size(-1));
    return run_mlstm(sequence, all, scale);
  });
}

}  // namespace fathom::model
