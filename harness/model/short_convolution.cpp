#include "harness/model/short_convolution.h"

#include <ATen/Functions.h>

#include <algorithm>

namespace fathom::model {
namespace {

using torch::Tensor;

/// x: [batch, n, channels] with `n_before` tokens in front that only feed the others.
Tensor convolved(const Tensor& x, const Tensor& weight, std::int64_t n_before) {
  const std::int64_t n_taps = weight.size(-1), n = x.size(1) - n_before;
  const Tensor padded = at::constant_pad_nd(x, {0, 0, n_taps - 1, 0});
  Tensor out = x.narrow(1, n_before, n);
  for (std::int64_t tap = 0; tap < n_taps; ++tap)
    out = out + padded.narrow(1, n_before + tap, n) * weight.select(2, tap).squeeze(1);
  return out;
}

}  // namespace

Tensor remember(const ops::AttentionCall& call, const SequenceSpan& span, const Tensor& rows, std::int64_t offset,
                std::int64_t width) {
  const Tensor all = at::from_blob(span.cache->remembered(call.layer), {span.cache->capacity(), width}, torch::kFloat32)
                         .narrow(1, offset, rows.size(-1));
  all.narrow(0, span.first_position, span.n_tokens).copy_(rows);
  return all.narrow(0, 0, span.first_position + span.n_tokens);
}

Tensor short_convolution(const ops::AttentionCall& call, const Tensor& x, const Tensor& weight, std::int64_t offset) {
  if (call.sequences == nullptr) return convolved(x, weight, 0);
  const std::int64_t n_taps = weight.size(-1);
  const std::int64_t width = 2 * call.spec->n_kv_heads * call.spec->d_head + 2 * call.hidden.size(-1);
  std::vector<Tensor> parts;
  for (const SequenceSpan& span : *call.sequences) {
    const Tensor all = remember(call, span, x[0].narrow(0, span.begin, span.n_tokens), offset, width);
    const std::int64_t n_before = std::min(span.first_position, n_taps - 1);
    const Tensor near = all.narrow(0, span.first_position - n_before, n_before + span.n_tokens);
    parts.push_back(convolved(near.unsqueeze(0), weight, n_before));
  }
  return at::cat(parts, 1);
}

}  // namespace fathom::model
