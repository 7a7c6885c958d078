#include "harness/model/block_attention_function.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/model/train_kernels.h"

namespace fathom::model {
namespace {

using torch::Tensor;
using torch::autograd::variable_list;

struct BlockRange {
  std::int64_t q_begin, n_q, k_begin, n_k;
  bool newest;  ///< first key block that this query block visits
};

/// Pairs of blocks with something visible, query blocks in order, keys from the newest block to the oldest.
std::vector<BlockRange> attention_blocks(std::int64_t seq, std::int64_t block_size, std::int64_t window) {
  std::vector<BlockRange> out;
  for (std::int64_t q = 0; q < seq; q += block_size) {
    const std::int64_t n_q = std::min(block_size, seq - q);
    for (std::int64_t k = q; k >= 0; k -= block_size) {
      const std::int64_t n_k = std::min(block_size, seq - k);
      if (window > 0 && k + n_k - 1 <= q - window) break;
      out.push_back({q, n_q, k, n_k, k == q});
    }
  }
  return out;
}

/// Holds the call between the forward and the backward pass.
struct BlockAttentionHolder : public torch::CustomClassHolder {
  explicit BlockAttentionHolder(const BlockAttentionInput& source) : input(source) {
    input.q = input.k = input.v = input.hidden = Tensor();  // kept by save_for_backward, which watches for changes
  }
  BlockAttentionInput input;
};

/// Positions of a block; one row serves the batch where all rows are the same (expanded), which saves bias work.
Tensor block_positions(const BlockAttentionInput& input, std::int64_t begin, std::int64_t n) {
  const Tensor rows = input.positions.narrow(1, begin, n);
  const bool shared =
      rows.size(0) > 1 && rows.stride(0) == 0 && !input.scheme->needs_q_and_k() && !input.scheme->needs_hidden();
  return shared ? rows.narrow(0, 0, 1) : rows;
}

/// Index of the first token of each token's sequence, [batch or 1, seq] int64; undefined if every row is one sequence.
/// A sequence ends where the position does not rise: packed sequences restart, and padding repeats one position.
Tensor sequence_starts(const Tensor& positions) {
  const bool shared = positions.size(0) > 1 && positions.stride(0) == 0;
  const Tensor rows = shared ? positions.narrow(0, 0, 1) : positions;
  const std::int64_t seq = rows.size(1);
  if (seq < 2) return {};
  const Tensor restarts = rows.narrow(1, 1, seq - 1) <= rows.narrow(1, 0, seq - 1);
  if (!restarts.any().item<bool>()) return {};
  const Tensor index = torch::arange(1, seq, rows.options()).unsqueeze(0) * restarts;
  return std::get<0>(torch::cat({torch::zeros_like(rows.narrow(1, 0, 1)), index}, 1).cummax(1)).contiguous();
}

/// Pairs of a block whose key the query sees, [batch or 1, n_q, n_k] bool.
Tensor visible_in_block(const BlockAttentionInput& input, const BlockRange& range) {
  const auto options = torch::TensorOptions().dtype(torch::kInt64).device(input.q.device());
  const Tensor i = torch::arange(range.q_begin, range.q_begin + range.n_q, options).unsqueeze(1);
  const Tensor j = torch::arange(range.k_begin, range.k_begin + range.n_k, options).unsqueeze(0);
  Tensor visible = (j <= i).unsqueeze(0);
  if (input.window > 0) visible = visible.logical_and(j > i - input.window);
  if (!input.sequence_starts.defined()) return visible;
  return visible.logical_and(input.sequence_starts.narrow(1, range.q_begin, range.n_q).unsqueeze(2) <= j);
}

position::LogitBlock logit_block(const BlockAttentionInput& input, const BlockRange& range) {
  position::LogitBlock block;
  block.q_positions = block_positions(input, range.q_begin, range.n_q);
  block.k_positions = block_positions(input, range.k_begin, range.n_k);
  if (input.scheme->needs_q_and_k()) {
    block.q = input.q.narrow(1, range.q_begin, range.n_q).transpose(1, 2);
    block.k = input.k.narrow(1, range.k_begin, range.n_k).transpose(1, 2);
    block.visible = visible_in_block(input, range);
  }
  if (input.scheme->needs_hidden()) block.q_hidden = input.hidden.narrow(1, range.q_begin, range.n_q);
  return block;
}

Tensor block_bias(const BlockAttentionInput& input, const BlockRange& range) {
  if (!input.scheme->has_bias()) return {};
  return input.scheme->block_bias(logit_block(input, range), range.newest);
}

bool runs_on_kernels(const BlockAttentionInput& input) {
  return input.q.device().is_cpu() && input.q.scalar_type() == torch::kFloat32;
}

AttentionBlock kernel_block(const BlockAttentionInput& input, const BlockRange& range, const Tensor& bias) {
  AttentionBlock block;
  block.batch = input.q.size(0);
  block.seq = input.q.size(1);
  block.n_heads = input.q.size(2);
  block.n_kv_heads = input.k.size(2);
  block.d_head = input.q.size(3);
  block.q_begin = range.q_begin;
  block.n_q = range.n_q;
  block.k_begin = range.k_begin;
  block.n_k = range.n_k;
  block.window = input.window;
  block.scale = static_cast<float>(input.softmax_scale);
  block.q = input.q.data_ptr<float>();
  block.k = input.k.data_ptr<float>();
  block.v = input.v.data_ptr<float>();
  if (bias.defined()) {
    block.bias = bias.data_ptr<float>();
    block.bias_batch_stride = bias.size(0) == 1 ? 0 : bias.stride(0);
  }
  if (input.sequence_starts.defined()) {
    block.sequence_starts = input.sequence_starts.data_ptr<std::int64_t>();
    block.starts_batch_stride = input.sequence_starts.size(0) == 1 ? 0 : block.seq;
  }
  return block;
}

/// Keys or values of a block with one head per query head. [batch, n_heads, n_k, d_head]
Tensor expanded_heads(const Tensor& x, const BlockRange& range, std::int64_t n_heads) {
  const Tensor part = x.narrow(1, range.k_begin, range.n_k).transpose(1, 2);
  return part.size(1) == n_heads ? part : part.repeat_interleave(n_heads / part.size(1), 1);
}

/// The logits of a block, -infinity where hidden. [batch, n_heads, n_q, n_k]
Tensor masked_logits(const BlockAttentionInput& input, const BlockRange& range, const Tensor& bias) {
  const Tensor q = input.q.narrow(1, range.q_begin, range.n_q).transpose(1, 2);
  Tensor s = q.matmul(expanded_heads(input.k, range, q.size(1)).transpose(-1, -2)) * input.softmax_scale;
  if (bias.defined()) s = s + bias;
  const Tensor hidden = visible_in_block(input, range).logical_not().unsqueeze(1);
  return s.masked_fill(hidden, -std::numeric_limits<double>::infinity());
}

struct ForwardResult {
  Tensor out;          ///< [batch, seq, n_heads, d_head]
  Tensor log_sum_exp;  ///< [batch, n_heads, seq]
};

ForwardResult forward_on_kernels(const BlockAttentionInput& input) {
  const std::int64_t batch = input.q.size(0), seq = input.q.size(1), heads = input.q.size(2);
  ForwardResult result{torch::zeros_like(input.q),
                       torch::full({batch, heads, seq}, -std::numeric_limits<float>::infinity())};
  Tensor row_sum = torch::zeros({batch, heads, seq});
  const AttentionState state{result.log_sum_exp.data_ptr<float>(), row_sum.data_ptr<float>(),
                             result.out.data_ptr<float>()};
  for (const BlockRange& range : attention_blocks(seq, input.block_size, input.window)) {
    const Tensor bias = block_bias(input, range);
    attention_block_forward(kernel_block(input, range, bias.defined() ? bias.contiguous() : bias), state);
  }
  attention_block_finish(kernel_block(input, {0, seq, 0, seq, true}, {}), state);
  return result;
}

ForwardResult forward_on_torch(const BlockAttentionInput& input) {
  const Tensor q = input.q.transpose(1, 2);  // [batch, n_heads, seq, d_head]
  Tensor row_max = torch::full(q.sizes().slice(0, 3), -std::numeric_limits<double>::infinity(), q.options());
  Tensor row_sum = torch::zeros_like(row_max), out = torch::zeros(q.sizes(), q.options());
  for (const BlockRange& range : attention_blocks(q.size(2), input.block_size, input.window)) {
    const Tensor s = masked_logits(input, range, block_bias(input, range));
    const Tensor old_max = row_max.narrow(2, range.q_begin, range.n_q);
    const Tensor new_max = torch::maximum(old_max, s.amax(-1));
    // A row without a visible key yet would give -inf - -inf.
    const Tensor safe_max = new_max.masked_fill(new_max.isinf(), 0.0);
    const Tensor p = (s - safe_max.unsqueeze(-1)).exp();
    const Tensor shrink = (old_max - safe_max).exp();
    Tensor sum_part = row_sum.narrow(2, range.q_begin, range.n_q), out_part = out.narrow(2, range.q_begin, range.n_q);
    sum_part.copy_(sum_part * shrink + p.sum(-1));
    out_part.copy_(out_part * shrink.unsqueeze(-1) + p.matmul(expanded_heads(input.v, range, q.size(1))));
    row_max.narrow(2, range.q_begin, range.n_q).copy_(new_max);
  }
  return {(out / row_sum.unsqueeze(-1)).transpose(1, 2).contiguous(), row_max + row_sum.log()};
}

struct BackwardState {
  Tensor log_sum_exp, out_dot, d_out, d_q, d_k, d_v;
};

/// Adds the block's share to d_q, d_k, d_v. Returns the gradient of the bias, [batch, n_heads, n_q, n_k], if asked for.
Tensor backward_block_on_torch(const BlockAttentionInput& input, const BlockRange& range, const Tensor& bias,
                               const BackwardState& state) {
  const std::int64_t heads = input.q.size(2), kv_heads = input.k.size(2);
  const auto queries = [&](const Tensor& x) { return x.narrow(1, range.q_begin, range.n_q).transpose(1, 2); };
  const Tensor lse = state.log_sum_exp.narrow(2, range.q_begin, range.n_q).unsqueeze(-1);
  const Tensor p = (masked_logits(input, range, bias) - lse).exp();
  const Tensor d_out = queries(state.d_out);
  const Tensor d_p = d_out.matmul(expanded_heads(input.v, range, heads).transpose(-1, -2));
  const Tensor d_s = p * (d_p - state.out_dot.narrow(2, range.q_begin, range.n_q).unsqueeze(-1));
  queries(state.d_q).add_(d_s.matmul(expanded_heads(input.k, range, heads)), input.softmax_scale);
  const auto add_keys = [&](const Tensor& target, const Tensor& value, double factor) {
    const Tensor grouped = value.view({value.size(0), kv_heads, heads / kv_heads, range.n_k, value.size(3)}).sum(2);
    target.narrow(1, range.k_begin, range.n_k).transpose(1, 2).add_(grouped, factor);
  };
  add_keys(state.d_v, p.transpose(-1, -2).matmul(d_out), 1);
  add_keys(state.d_k, d_s.transpose(-1, -2).matmul(queries(input.q)), input.softmax_scale);
  return d_s;
}

/// Copies of a bias gradient that rows of the batch add to at the same time: enough for 16 cores.
std::int64_t gradient_slots(const BlockAttentionInput& input) {
  return std::min(input.q.size(0), std::max<std::int64_t>(4, 16 / input.k.size(2)));
}

/// Adds the block's share to d_q, d_k, d_v. Returns the gradient of the bias, [slots, n_heads, n_q, n_k] of which the
/// sum is meant where one bias serves the batch, if asked for.
Tensor backward_block_on_kernels(const BlockAttentionInput& input, const BlockRange& range, const Tensor& bias,
                                 const BackwardState& state, bool wants_d_bias) {
  Tensor d_bias;
  const std::int64_t batch = input.q.size(0),
                     slots = bias.defined() && bias.size(0) == 1 ? gradient_slots(input) : batch;
  if (wants_d_bias) d_bias = torch::empty({slots, input.q.size(2), range.n_q, range.n_k});
  const AttentionGradient gradient{state.log_sum_exp.data_ptr<float>(),
                                   state.out_dot.data_ptr<float>(),
                                   state.d_out.data_ptr<float>(),
                                   state.d_q.data_ptr<float>(),
                                   state.d_k.data_ptr<float>(),
                                   state.d_v.data_ptr<float>(),
                                   wants_d_bias ? d_bias.data_ptr<float>() : nullptr,
                                   slots};
  const Tensor plain = bias.defined() ? bias.detach().contiguous() : bias;
  attention_block_backward(kernel_block(input, range, plain), gradient);
  return d_bias;
}

/// What a bias may depend on, as leaves of a graph of its own; the block's bias is rebuilt on it and differentiated on
/// the spot.
struct BiasLeaves {
  Tensor q, k, hidden;
  std::vector<Tensor> parameters;

  variable_list list() const {
    variable_list out = parameters;
    for (const Tensor& x : {q, k, hidden}) {
      if (x.defined()) out.push_back(x);
    }
    return out;
  }
};

BiasLeaves bias_leaves(const BlockAttentionInput& input) {
  BiasLeaves leaves;
  for (const Tensor& p : input.scheme->bias_parameters()) {
    if (p.requires_grad()) leaves.parameters.push_back(p);
  }
  if (input.scheme->needs_q_and_k()) {
    leaves.q = input.q.detach().requires_grad_();
    leaves.k = input.k.detach().requires_grad_();
  }
  if (input.scheme->needs_hidden()) leaves.hidden = input.hidden.detach().requires_grad_();
  return leaves;
}

/// Biases whose gradients are known and not yet passed on: those of one block, or of one query block where the scheme
/// carries sums from block to block.
struct PendingBias {
  variable_list biases, gradients;

  void differentiate(const variable_list& wanted, std::vector<Tensor>& gathered) {
    if (biases.empty()) return;
    const variable_list parts = torch::autograd::grad(biases, wanted, gradients, false, false, true);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].defined()) gathered[i] = gathered[i].defined() ? gathered[i] + parts[i] : parts[i];
    }
    biases.clear();
    gradients.clear();
  }
};

class BlockAttentionFunction : public torch::autograd::Function<BlockAttentionFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& hidden, at::TensorList parameters, const BlockAttentionInput& call) {
    static_cast<void>(parameters);  // named here so that autograd asks for their gradients
    BlockAttentionInput input = call;
    input.q = q.contiguous();
    input.k = k.contiguous();
    input.v = v.contiguous();
    input.hidden = hidden;
    const ForwardResult result = runs_on_kernels(input) ? forward_on_kernels(input) : forward_on_torch(input);
    ctx->save_for_backward({input.q, input.k, input.v, hidden, result.out, result.log_sum_exp});
    ctx->saved_data["call"] = torch::IValue::make_capsule(c10::make_intrusive<BlockAttentionHolder>(input));
    return result.out;
  }

  static variable_list backward(torch::autograd::AutogradContext* ctx, variable_list d_outputs) {
    const variable_list saved = ctx->get_saved_variables();
    BlockAttentionInput input =
        c10::static_intrusive_pointer_cast<BlockAttentionHolder>(ctx->saved_data["call"].toCapsule())->input;
    input.q = saved[0];
    input.k = saved[1];
    input.v = saved[2];
    input.hidden = saved[3];
    BackwardState state;
    state.d_out = d_outputs[0].contiguous();
    state.out_dot = (saved[4] * state.d_out).sum(-1).transpose(1, 2).contiguous();
    state.log_sum_exp = saved[5];
    state.d_q = torch::zeros_like(input.q);
    state.d_k = torch::zeros_like(input.k);
    state.d_v = torch::zeros_like(input.v);

    BiasLeaves leaves;
    if (input.scheme->has_bias()) leaves = bias_leaves(input);
    const variable_list wanted = leaves.list();
    std::vector<Tensor> gathered(wanted.size());
    PendingBias pending;
    for (const BlockRange& range : attention_blocks(input.q.size(1), input.block_size, input.window)) {
      if (range.newest) pending.differentiate(wanted, gathered);
      backward_block(input, range, state, leaves, pending);
      if (!input.scheme->carries_along_keys()) pending.differentiate(wanted, gathered);
    }
    pending.differentiate(wanted, gathered);
    return collect(input, state, leaves, gathered);
  }

 private:
  static void backward_block(const BlockAttentionInput& input, const BlockRange& range, const BackwardState& state,
                             const BiasLeaves& leaves, PendingBias& pending) {
    Tensor bias;
    {
      const at::AutoGradMode record(!leaves.list().empty());
      BlockAttentionInput on_leaves = input;
      if (leaves.q.defined()) on_leaves.q = leaves.q;
      if (leaves.k.defined()) on_leaves.k = leaves.k;
      if (leaves.hidden.defined()) on_leaves.hidden = leaves.hidden;
      bias = block_bias(on_leaves, range);
    }
    const bool wants_d_bias = bias.defined() && bias.requires_grad();
    const Tensor plain = bias.defined() ? bias.detach() : bias;
    Tensor d_bias = runs_on_kernels(input) ? backward_block_on_kernels(input, range, plain, state, wants_d_bias)
                                           : backward_block_on_torch(input, range, plain, state);
    if (!wants_d_bias) return;
    if (bias.size(0) == 1) d_bias = d_bias.size(0) == 1 ? d_bias : d_bias.sum(0, true);
    pending.biases.push_back(bias);
    pending.gradients.push_back(d_bias.to(bias.scalar_type()));
  }

  /// Gradients in the order of forward()'s arguments.
  static variable_list collect(const BlockAttentionInput& input, const BackwardState& state, const BiasLeaves& leaves,
                               const std::vector<Tensor>& gathered) {
    variable_list out{state.d_q, state.d_k, state.d_v, Tensor()};
    std::size_t next = leaves.parameters.size();
    if (leaves.q.defined()) {
      if (gathered[next].defined()) out[0] = out[0] + gathered[next];
      if (gathered[next + 1].defined()) out[1] = out[1] + gathered[next + 1];
      next += 2;
    }
    if (leaves.hidden.defined()) out[3] = gathered[next];
    std::size_t trainable = 0;
    for (const Tensor& p : input.scheme->bias_parameters()) {
      out.push_back(p.requires_grad() && trainable < leaves.parameters.size() ? gathered[trainable++] : Tensor());
    }
    out.emplace_back();  // the call itself
    return out;
  }
};

}  // namespace

torch::Tensor block_attention(const BlockAttentionInput& input) {
  FATHOM_CHECK(input.q.dim() == 4 && input.k.dim() == 4 && input.v.sizes() == input.k.sizes(),
               "q, k and v must be [batch, seq, heads, d_head]");
  FATHOM_CHECK(input.scheme != nullptr && input.block_size >= 1, "block_attention needs a scheme and a block size");
  // Autograd accepts no undefined argument.
  const Tensor hidden = input.hidden.defined() ? input.hidden : torch::empty({0}, input.q.options());
  const variable_list parameters = input.scheme->bias_parameters();
  BlockAttentionInput call = input;
  call.sequence_starts = sequence_starts(input.positions);
  const auto type = input.q.scalar_type();
  if (type != torch::kHalf && type != torch::kBFloat16)
    return BlockAttentionFunction::apply(input.q, input.k, input.v, hidden, at::TensorList(parameters), call);
  // Softmax, biases and sums are float32 whatever the inputs are.
  const auto single = [](const Tensor& x) { return x.to(torch::kFloat32); };
  return BlockAttentionFunction::apply(single(input.q), single(input.k), single(input.v), single(hidden),
                                       at::TensorList(parameters), call)
      .to(type);
}

}  // namespace fathom::model
