#include "harness/model/inference_attention.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "harness/core/error.h"
#include "harness/kernels/block_attention.h"
#include "harness/kernels/fused_ops.h"
#include "harness/model/ops_train.h"

namespace fathom::model {
namespace {

using kernels::ElementType;
using ops::AttentionCall;
using position::Role;
using torch::Tensor;

torch::Dtype torch_dtype(ElementType type) {
  return type == ElementType::kFloat32 ? torch::kFloat32 : torch::kBFloat16;
}

double softmax_scale_of(const AttentionCall& call, std::int64_t total_len) {
  return call.spec->softmax_scale.value_or(1.0 / std::sqrt(static_cast<double>(call.spec->d_head))) *
         call.scheme->softmax_scale_factor(total_len);
}

/// True where the kernel's bias callback says all about the scheme's bias and one rotation serves all distances.
bool runs_on_block_attention(position::PositionScheme& scheme) {
  if (scheme.n_regions() > 1 || scheme.needs_q_and_k() || scheme.needs_hidden()) return false;
  return !scheme.has_bias() || static_cast<bool>(scheme.bias_function());
}

/// A cache's keys or values of one layer as [n_kv_heads, capacity, d_head], sharing its memory.
Tensor cache_tensor(void* data, const engine::KvCache& cache, const checkpoint::LayerSpec& spec) {
  return at::from_blob(data, {spec.n_kv_heads, cache.capacity(), spec.d_head},
                       torch::TensorOptions().dtype(torch_dtype(cache.type())));
}

/// Writes rows [1, n, n_kv_heads, d_head] float32 to the slots from `first` on, in the cache's type.
void append_rows(const Tensor& rows, void* data, const engine::KvCache& cache, std::int64_t first) {
  const Tensor source = rows.contiguous();
  const std::int64_t n_heads = source.size(2), d_head = source.size(3);
  for (std::int64_t head = 0; head < n_heads; ++head) {
    kernels::RowsCall copy;
    copy.x = source.data_ptr<float>() + head * d_head;
    copy.n_rows = source.size(1);
    copy.width = copy.out_stride = d_head;
    copy.stride = n_heads * d_head;
    copy.out_type = cache.type();
    copy.out = static_cast<std::byte*>(data) + static_cast<std::size_t>((head * cache.capacity() + first) * d_head) *
                                                   kernels::element_size_bytes(cache.type());
    kernels::convert_rows(copy);
  }
}

/// Consecutive sequences that see one angle table and one softmax scale, so that they can be rotated together.
struct SpanGroup {
  std::size_t begin = 0, end = 0;  ///< sequences
  std::int64_t first_token = 0, n_tokens = 0;
  std::int64_t total_len = 0;  ///< the longest
};

std::vector<SpanGroup> group_spans(const AttentionCall& call) {
  const auto key = [&](const SequenceSpan& span) {
    return std::make_pair(call.scheme->rotation_state(span.total_len),
                          call.scheme->softmax_scale_factor(span.total_len));
  };
  const std::vector<SequenceSpan>& spans = *call.sequences;
  std::vector<SpanGroup> groups;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (groups.empty() || key(spans[i]) != key(spans[groups.back().begin]))
      groups.push_back({i, i, spans[i].begin, 0, 0});
    SpanGroup& group = groups.back();
    group.end = i + 1;
    group.n_tokens += spans[i].n_tokens;
    group.total_len = std::max(group.total_len, spans[i].total_len);
  }
  return groups;
}

/// Queries of a group, rotated and scaled, float32.
Tensor ready_queries(const AttentionCall& call, const Tensor& positions, const Tensor& q, std::int64_t total_len,
                     std::int64_t region) {
  Tensor out = call.scheme->rotates() ? call.scheme->rotate(q, Role::kQuery, positions, total_len, region) : q;
  const Tensor scale = call.scheme->query_scale(positions);  // [batch, seq]
  if (scale.defined()) out = out * scale.unsqueeze(-1).unsqueeze(-1);
  return out.to(torch::kFloat32).contiguous();
}

kernels::AttentionShape kernel_shape(const AttentionCall& call, ElementType type, std::int64_t total_len) {
  kernels::AttentionShape shape;
  shape.n_heads = call.spec->n_heads;
  shape.n_kv_heads = call.spec->n_kv_heads;
  shape.d_head = call.spec->d_head;
  shape.softmax_scale = static_cast<float>(softmax_scale_of(call, total_len));
  shape.window = call.spec->window.value_or(0);
  shape.chunk = call.spec->chunk.value_or(0);
  shape.softcap = static_cast<float>(call.spec->softcap);
  if (call.sinks.defined()) shape.sinks = call.sinks.data_ptr<float>();
  shape.type = type;
  if (call.scheme->has_bias()) shape.bias = call.scheme->bias_function();
  return shape;
}

Tensor in_cache_type(const Tensor& rows, ElementType type) {
  if (type == ElementType::kFloat32) return rows;
  Tensor out = at::empty(rows.sizes(), torch::kBFloat16);
  kernels::RowsCall copy;
  copy.x = rows.data_ptr<float>();
  copy.width = copy.stride = copy.out_stride = rows.size(-1) * rows.size(-2);
  copy.n_rows = rows.numel() / copy.width;
  copy.out = out.data_ptr();
  copy.out_type = ElementType::kBFloat16;
  kernels::convert_rows(copy);
  return out;
}

/// One group through the kernel. out: [1, seq, n_heads * d_head] float32, the whole packed row.
void attend_group(const AttentionCall& call, const SpanGroup& group, Tensor& out) {
  const std::vector<SequenceSpan>& spans = *call.sequences;
  const auto part = [&](const Tensor& x) { return x.narrow(1, group.first_token, group.n_tokens); };
  const Tensor positions = part(call.positions);
  const Tensor k =
      call.scheme->rotates() ? call.scheme->rotate(part(call.k), Role::kKey, positions, group.total_len) : part(call.k);
  const ElementType type = spans[group.begin].cache->type();
  const Tensor q = in_cache_type(ready_queries(call, positions, part(call.q), group.total_len, 0), type);
  const std::int64_t width = call.spec->n_heads * call.spec->d_head;
  std::vector<kernels::AttentionSequence> sequences;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const SequenceSpan& span = spans[i];
    const std::int64_t begin = span.begin - group.first_token;
    append_rows(k.narrow(1, begin, span.n_tokens), span.cache->keys(call.layer), *span.cache, span.first_position);
    append_rows(call.v.narrow(1, span.begin, span.n_tokens), span.cache->values(call.layer), *span.cache,
                span.first_position);
    kernels::AttentionSequence sequence;
    sequence.q = static_cast<const std::byte*>(q.data_ptr()) +
                 static_cast<std::size_t>(begin * width) * kernels::element_size_bytes(type);
    sequence.k = span.cache->keys(call.layer);
    sequence.v = span.cache->values(call.layer);
    sequence.out = out.data_ptr<float>() + span.begin * width;
    sequence.n_q = span.n_tokens;
    sequence.n_k = span.first_position + span.n_tokens;
    sequence.k_capacity = span.cache->capacity();
    sequence.first_position = span.first_position;
    sequences.push_back(sequence);
  }
  kernels::block_attention(kernel_shape(call, type, group.total_len), sequences);
}

/// Attention of one sequence block by block on LibTorch, for schemes that the kernel cannot express. The query heads of
/// one KV head are stacked, so that a product serves them all: [n_kv_heads, group * n, d_head].
class GenericAttention {
 public:
  /// q, k, v: [1, n, heads, d_head] before rotation; k and v of all keys, q of the last ones. hidden: [1, n_q,
  /// d_model].
  GenericAttention(const AttentionCall& call, const Tensor& q, const Tensor& k, const Tensor& v, Tensor hidden,
                   std::int64_t total_len)
      : call_(call),
        v_(v.squeeze(0).transpose(0, 1).contiguous()),
        hidden_(std::move(hidden)),
        n_regions_(call.scheme->n_regions()),
        n_kv_heads_(call.spec->n_kv_heads),
        group_(call.spec->n_heads / call.spec->n_kv_heads) {
    n_q_ = q.size(1);
    n_k_ = k.size(1);
    positions_ = at::arange(n_k_, torch::kInt64).unsqueeze(0);
    scale_ = softmax_scale_of(call, total_len);
    const Tensor q_positions = positions_.narrow(1, n_k_ - n_q_, n_q_);
    for (std::int64_t region = 0; region < n_regions_; ++region) {
      q_.push_back(ready_queries(call, q_positions, q, total_len, region).squeeze(0).transpose(0, 1).contiguous());
      const Tensor rotated =
          call.scheme->rotates() ? call.scheme->rotate(k, Role::kKey, positions_, total_len, region) : k;
      k_.push_back(rotated.squeeze(0).transpose(0, 1).contiguous());
    }
  }

  /// [n_q, n_heads * d_head]
  Tensor run() {
    Tensor out = at::empty({n_q_, call_.spec->n_heads, call_.spec->d_head}, torch::kFloat32);
    for (std::int64_t begin = 0; begin < n_q_;) {
      const std::int64_t position = n_k_ - n_q_ + begin;
      const std::int64_t n = std::min(n_q_ - begin, kBlock - position % kBlock);
      out.narrow(0, begin, n).copy_(query_block(begin, n).view({call_.spec->n_heads, n, -1}).transpose(0, 1));
      begin += n;
    }
    return out.view({n_q_, -1});
  }

 private:
  static constexpr std::int64_t kBlock = 256;

  /// First key that the query at a position sees.
  std::int64_t lowest_key(std::int64_t position) const {
    std::int64_t lowest = call_.spec->window ? std::max<std::int64_t>(0, position - *call_.spec->window + 1) : 0;
    if (call_.spec->chunk) lowest = std::max(lowest, position / *call_.spec->chunk * *call_.spec->chunk);
    return lowest;
  }

  struct Extent {
    std::int64_t q_begin, n_q, k_begin, n_k;
  };

  /// [n_kv_heads, group * n, d_head] of the queries of a block under a region's rotation, times the softmax scale.
  Tensor stacked_queries(std::int64_t region, std::int64_t begin, std::int64_t n) const {
    return q_[static_cast<std::size_t>(region)].narrow(1, begin, n).mul(scale_).reshape({n_kv_heads_, group_ * n, -1});
  }

  Tensor query_block(std::int64_t begin, std::int64_t n) {
    const std::int64_t position = n_k_ - n_q_ + begin;
    queries_.assign(static_cast<std::size_t>(n_regions_), Tensor());
    Tensor row_max = at::full({n_kv_heads_, group_ * n, 1}, -std::numeric_limits<float>::infinity(), torch::kFloat32);
    Tensor row_sum = at::zeros_like(row_max);
    if (call_.sinks.defined()) {  // a key seen before all others, without a value
      row_max.view({n_kv_heads_, group_, n}).copy_(call_.sinks.view({n_kv_heads_, group_, 1}));
      row_sum.fill_(1);
    }
    Tensor out = at::zeros({n_kv_heads_, group_ * n, call_.spec->d_head}, torch::kFloat32);
    bool newest = true;
    for (std::int64_t key = (position + n - 1) / kBlock * kBlock; key >= 0; key -= kBlock, newest = false) {
      const std::int64_t n_keys = std::min(kBlock, position + n - key);
      if (key + n_keys <= lowest_key(position)) break;
      Tensor p = block_logits({begin, n, key, n_keys}, newest);
      const Tensor new_max = at::maximum(row_max, p.amax(-1, true));
      const Tensor safe_max = new_max.masked_fill(new_max.isinf(), 0.0);
      p.sub_(safe_max).exp_();
      const Tensor decay = (row_max - safe_max).exp_();
      row_sum.mul_(decay).add_(p.sum(-1, true));
      out.mul_(decay).baddbmm_(p, v_.narrow(1, key, n_keys));
      row_max = new_max;
    }
    return out.div_(row_sum);
  }

  /// [n_kv_heads, group * n_q, n_k], -infinity where hidden.
  Tensor block_logits(const Extent& at_block, bool newest) {
    const Tensor q_positions = positions_.narrow(1, n_k_ - n_q_ + at_block.q_begin, at_block.n_q);
    const Tensor k_positions = positions_.narrow(1, at_block.k_begin, at_block.n_k);
    Tensor logits = n_regions_ > 1 ? region_products(at_block, q_positions[0], k_positions[0]) : product(at_block, 0);
    if (call_.spec->softcap > 0) logits.div_(call_.spec->softcap).tanh_().mul_(call_.spec->softcap);
    if (call_.scheme->has_bias()) add_bias(at_block, q_positions, k_positions, newest, logits);
    const std::int64_t first_query = n_k_ - n_q_ + at_block.q_begin, last_query = first_query + at_block.n_q - 1;
    if (at_block.k_begin + at_block.n_k - 1 <= first_query && at_block.k_begin >= lowest_key(last_query)) return logits;
    const Tensor distance = q_positions[0].unsqueeze(1) - k_positions;  // [n_q, n_k]
    Tensor unseen = distance < 0;
    if (call_.spec->window) unseen = unseen.logical_or(distance >= *call_.spec->window);
    if (call_.spec->chunk) {
      const Tensor chunk_begin = q_positions[0].unsqueeze(1).div(*call_.spec->chunk, "floor") * *call_.spec->chunk;
      unseen = unseen.logical_or(k_positions < chunk_begin);
    }
    by_head(at_block, logits).masked_fill_(unseen, -std::numeric_limits<float>::infinity());
    return logits;
  }

  /// scale * q k^T under one region's rotation.
  Tensor product(const Extent& at_block, std::int64_t region) {
    Tensor& q = queries_[static_cast<std::size_t>(region)];
    if (!q.defined()) q = stacked_queries(region, at_block.q_begin, at_block.n_q);
    const Tensor k = k_[static_cast<std::size_t>(region)].narrow(1, at_block.k_begin, at_block.n_k);
    // Not baddbmm with beta = 0: LibTorch 1.13 multiplies what stood in memory by 0, and a NaN stays one.
    return at::bmm(q, k.transpose(-1, -2));
  }

  /// Every pair under the rotation of its own region; regions without a pair in the block cost nothing.
  Tensor region_products(const Extent& at_block, const Tensor& q_positions, const Tensor& k_positions) {
    const Tensor regions = call_.scheme->region(q_positions, k_positions);  // [n_q, n_k]
    const auto lowest = regions.min().item<std::int64_t>(), highest = regions.max().item<std::int64_t>();
    Tensor logits = product(at_block, lowest);
    for (std::int64_t region = lowest + 1; region <= highest; ++region) {
      const Tensor here = regions == region;
      if (!here.any().item<bool>()) continue;
      const Tensor other = product(at_block, region);
      Tensor chosen = by_head(at_block, logits);
      at::where_out(chosen, here, by_head(at_block, other), chosen);
    }
    return logits;
  }

  void add_bias(const Extent& at_block, const Tensor& q_positions, const Tensor& k_positions, bool newest,
                Tensor& logits) {
    position::LogitBlock block;
    block.q_positions = q_positions;
    block.k_positions = k_positions;
    if (call_.scheme->needs_q_and_k()) {
      block.q = q_[0].narrow(1, at_block.q_begin, at_block.n_q).unsqueeze(0);
      block.k = k_[0].narrow(1, at_block.k_begin, at_block.n_k).unsqueeze(0);
    }
    if (call_.scheme->needs_hidden()) block.q_hidden = hidden_.narrow(1, at_block.q_begin, at_block.n_q);
    by_head(at_block, logits).unsqueeze(0).add_(call_.scheme->block_bias(block, newest));
  }

  /// The same memory as [n_heads, n_q, n_k].
  static Tensor by_head(const Extent& at_block, const Tensor& logits) {
    return logits.view({-1, at_block.n_q, at_block.n_k});
  }

  const AttentionCall& call_;
  std::vector<Tensor> q_;        // per region: [n_heads, n_q, d_head]
  std::vector<Tensor> k_;        // per region: [n_kv_heads, n_k, d_head]
  std::vector<Tensor> queries_;  // per region: the query block in hand, stacked; made when a product asks
  Tensor v_, hidden_, positions_;
  const std::int64_t n_regions_;
  const std::int64_t n_kv_heads_, group_;
  std::int64_t n_q_ = 0, n_k_ = 0;
  double scale_ = 1;
};

Tensor generic_attention(const AttentionCall& call) {
  Tensor out = at::empty({1, call.q.size(1), call.q.size(2) * call.q.size(3)}, torch::kFloat32);
  for (const SequenceSpan& span : *call.sequences) {
    const auto part = [&](const Tensor& x) { return x.narrow(1, span.begin, span.n_tokens); };
    const auto [keys, values] = append_to_cache(call, span);
    const Tensor hidden = call.scheme->needs_hidden() ? part(call.hidden) : Tensor();
    GenericAttention attention(call, part(call.q), keys, values, hidden, span.total_len);
    out[0].narrow(0, span.begin, span.n_tokens).copy_(attention.run());
  }
  return out;
}

/// True if every row counts 0, 1, 2, …
bool counts_from_zero(const Tensor& positions) {
  return at::equal(positions, at::arange(positions.size(1), positions.options()).expand_as(positions));
}

/// Rows without caches: each becomes a packed sequence with a cache that lives for this call.
Tensor attend_rows(const AttentionCall& call) {
  checkpoint::DecoderConfig config;
  config.layers.assign(static_cast<std::size_t>(call.layer) + 1, checkpoint::LayerSpec{});
  config.layers.back() = *call.spec;
  const std::int64_t batch = call.q.size(0), seq = call.q.size(1);
  std::vector<engine::KvCache> caches;
  std::vector<SequenceSpan> spans;
  caches.reserve(static_cast<std::size_t>(batch));
  for (std::int64_t row = 0; row < batch; ++row) {
    caches.emplace_back(config, ElementType::kFloat32).reserve(seq);
    spans.push_back({row * seq, seq, 0, seq, &caches.back()});
  }
  AttentionCall packed = call;
  const auto flat = [&](const Tensor& x) {
    return x.to(torch::kFloat32).reshape({1, batch * seq, x.size(2), x.size(3)});
  };
  packed.q = flat(call.q);
  packed.k = flat(call.k);
  packed.v = flat(call.v);
  packed.positions = call.positions.reshape({1, batch * seq});
  if (call.hidden.defined()) packed.hidden = call.hidden.reshape({1, batch * seq, call.hidden.size(2)});
  packed.sequences = &spans;
  return inference_attention(packed).view({batch, seq, -1});
}

}  // namespace

std::pair<Tensor, Tensor> append_to_cache(const AttentionCall& call, const SequenceSpan& span) {
  const auto appended = [&](const Tensor& rows, void* data) {
    append_rows(rows.narrow(1, span.begin, span.n_tokens), data, *span.cache, span.first_position);
    return cache_tensor(data, *span.cache, *call.spec)
        .narrow(1, 0, span.first_position + span.n_tokens)
        .to(torch::kFloat32)
        .transpose(0, 1)
        .unsqueeze(0);  // [1, n_k, n_kv_heads, d_head]
  };
  Tensor keys = appended(call.k, span.cache->keys(call.layer));
  Tensor values = appended(call.v, span.cache->values(call.layer));
  return {keys, values};
}

Tensor inference_attention(const AttentionCall& call) {
  if (call.sequences == nullptr) {
    return counts_from_zero(call.positions) ? attend_rows(call) : ops::train::attention(call);
  }
  FATHOM_CHECK(call.q.size(0) == 1, "packed sequences stand in one row");
  if (!runs_on_block_attention(*call.scheme)) return generic_attention(call);
  Tensor out = at::empty({1, call.q.size(1), call.q.size(2) * call.q.size(3)}, torch::kFloat32);
  for (const SpanGroup& group : group_spans(call)) attend_group(call, group, out);
  return out;
}

}  // namespace fathom::model
