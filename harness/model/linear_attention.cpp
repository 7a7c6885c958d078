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

/// What xLSTM knows of the tokens before a chunk, scaled by exp(-largest).
struct MlstmState {
  Tensor memory;   ///< [heads, d_key, d_head]
  Tensor sums;     ///< [heads, d_key, 1]
  Tensor largest;  ///< [heads, 1, 1] double
};

/// Gates and keys of one chunk. Gates are logarithms, double.
struct MlstmChunk {
  Tensor keys, values;  ///< [heads, n, d]
  Tensor input;         ///< [heads, n]
  Tensor forget;        ///< [heads, n], summed from the chunk's first token on

  /// The state behind the chunk.
  MlstmState after(const MlstmState& before) const {
    const Tensor faded = forget.narrow(1, forget.size(1) - 1, 1).unsqueeze(2);  // [heads, 1, 1]
    const Tensor entered = faded - forget.unsqueeze(2) + input.unsqueeze(2);    // [heads, n, 1]
    const Tensor carried = faded + before.largest;
    const Tensor largest = at::maximum(carried, std::get<0>(entered.max(1, true)));
    const Tensor keep = (carried - largest).exp().to(torch::kFloat32);
    const Tensor weighted = (keys * (entered - largest).exp().to(torch::kFloat32)).transpose(1, 2);  // [heads, d, n]
    const auto in_bf16 = [](const Tensor& x) { return x.to(torch::kBFloat16).to(torch::kFloat32); };
    return {in_bf16(keep * before.memory + at::bmm(weighted, values)),
            in_bf16(keep * before.sums + weighted.sum(2, true)), in_bf16(largest).to(torch::kDouble)};
  }

  /// Queries q [heads, n, d] of the chunk's tokens from `first` on. [heads, n, d_head]
  Tensor attend(const MlstmState& before, const Tensor& q, std::int64_t first) const {
    const std::int64_t n = q.size(1), seen = first + n;
    const Tensor reached = forget.narrow(1, first, n).unsqueeze(2);           // [heads, n, 1]
    const Tensor entered = (input - forget).narrow(1, 0, seen).unsqueeze(1);  // [heads, 1, seen]
    const Tensor later = distances(first, n, torch::TensorOptions().dtype(torch::kInt64)).to(q.device()) < 0;
    const Tensor exponents = (reached + entered).masked_fill(later, -std::numeric_limits<double>::infinity());
    const Tensor carried = reached + before.largest;
    const Tensor largest = at::maximum(carried, std::get<0>(exponents.max(-1, true)));
    const Tensor keep = (carried - largest).exp().to(torch::kFloat32);
    const Tensor weights =
        (exponents - largest).exp().to(torch::kFloat32) * at::bmm(q, keys.narrow(1, 0, seen).transpose(1, 2));
    const Tensor sums = (keep * at::bmm(q, before.sums) + weights.sum(-1, true)).abs();
    const Tensor out = keep * at::bmm(q, before.memory) + at::bmm(weights, values.narrow(1, 0, seen));
    return out / (at::maximum(sums, (-largest).exp().to(torch::kFloat32)) + kMlstmEpsilon);
  }
};

/// gates: [n_k, 2 * heads], input gates before forget gates. [n_q, heads * d_head]
Tensor run_mlstm(const checkpoint::LayerSpec& spec, const FadingSequence& sequence, const Tensor& gates) {
  const std::int64_t n_q = sequence.q.size(0), n_k = sequence.k.size(0), n_heads = spec.n_heads;
  const std::int64_t chunk_size = spec.linear->state_chunk > 0 ? spec.linear->state_chunk : n_k;
  const Tensor logits = gates.t().to(torch::kDouble);  // [2 * heads, n_k]
  const Tensor queries = sequence.q.transpose(0, 1) / std::sqrt(static_cast<double>(spec.linear->d_key));
  const auto f32 = torch::TensorOptions().dtype(torch::kFloat32).device(queries.device());
  const std::int64_t d = sequence.k.size(2);
  MlstmState state{at::zeros({n_heads, d, sequence.v.size(2)}, f32), at::zeros({n_heads, d, 1}, f32),
                   at::zeros({n_heads, 1, 1}, f32.dtype(torch::kDouble))};
  std::vector<Tensor> blocks;
  for (std::int64_t begin = 0; begin < n_k; begin += chunk_size) {
    const std::int64_t n = std::min(chunk_size, n_k - begin), end = begin + n;
    const auto part = [&](const Tensor& x) { return x.narrow(0, begin, n).transpose(0, 1); };
    const MlstmChunk chunk{part(sequence.k), part(sequence.v), logits.narrow(0, 0, n_heads).narrow(1, begin, n),
                           at::log_sigmoid(logits.narrow(0, n_heads, n_heads).narrow(1, begin, n)).cumsum(1)};
    for (std::int64_t first = std::max(begin, n_k - n_q); first < end; first += kQueryBlock) {
      const Tensor q = queries.narrow(1, first - (n_k - n_q), std::min(kQueryBlock, end - first));
      blocks.push_back(chunk.attend(state, q, first - begin).transpose(0, 1));
    }
    if (end < n_k) state = chunk.after(state);
  }
  return at::cat(blocks, 0).reshape({n_q, -1});
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
  return each_sequence(call, [&](const FadingSequence& sequence, std::int64_t row, const SequenceSpan* span) {
    const Tensor own = gates[row];
    if (span == nullptr) return run_mlstm(*call.spec, sequence, own);
    const Tensor all = remember(call, *span, own.narrow(0, span->begin, span->n_tokens), 0, own.size(-1));
    return run_mlstm(*call.spec, sequence, all);
  });
}

}  // namespace fathom::model
