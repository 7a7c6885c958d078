// The training attention against the textbook in double, values and gradients.

#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <vector>

#include "harness/model/block_attention_function.h"
#include "tests/model/model_test_data.h"
#include "tests/support/catch.h"
#include "tests/support/naive_attention.h"

namespace {

using fathom::model::block_attention;
using fathom::model::BlockAttentionInput;
using fathom::position::LogitBlock;
using fathom::position::PositionScheme;
using fathom::test::counted_positions;
using fathom::test::largest_difference;
using fathom::test::random_tensor;

class NoBias : public PositionScheme {};

/// A trained bias per head and distance: the gradient must reach the table.
class TableBias : public PositionScheme {
 public:
  explicit TableBias(torch::Dtype dtype) { table_ = register_parameter("table", random_tensor({4, 128}, 77, dtype)); }
  bool has_bias() const override { return true; }
  torch::Tensor block_bias(const LogitBlock& block, bool) override {
    const torch::Tensor distance = (block.q_positions.unsqueeze(2) - block.k_positions.unsqueeze(1)).clamp(0, 127);
    return table_.index({torch::indexing::Slice(), distance}).permute({1, 0, 2, 3});
  }
  torch::Tensor table_;
};

/// A bias made of queries, keys and hidden state, as Inkling, CoPE and GRAPE-A need it.
class ContentBias : public PositionScheme {
 public:
  bool has_bias() const override { return true; }
  bool needs_q_and_k() const override { return true; }
  bool needs_hidden() const override { return true; }
  torch::Tensor block_bias(const LogitBlock& block, bool) override {
    const torch::Tensor keys = block.k.repeat_interleave(block.q.size(1) / block.k.size(1), 1);
    return (block.q.matmul(keys.transpose(-1, -2)) * 0.3).tanh() +
           block.q_hidden.mean(-1).unsqueeze(1).unsqueeze(-1) * keys.sum(-1).unsqueeze(2);
  }
};

struct Case {
  std::int64_t batch, seq, heads, kv_heads, d_head, window, block_size;
};

BlockAttentionInput make_input(const Case& c, PositionScheme& scheme, torch::Dtype dtype) {
  BlockAttentionInput input;
  input.q = random_tensor({c.batch, c.seq, c.heads, c.d_head}, 1, dtype).requires_grad_();
  input.k = random_tensor({c.batch, c.seq, c.kv_heads, c.d_head}, 2, dtype).requires_grad_();
  input.v = random_tensor({c.batch, c.seq, c.kv_heads, c.d_head}, 3, dtype).requires_grad_();
  input.hidden = random_tensor({c.batch, c.seq, 6}, 4, dtype).requires_grad_();
  input.positions = counted_positions(c.batch, c.seq);
  input.scheme = &scheme;
  input.softmax_scale = 1.7;
  input.window = c.window;
  input.block_size = c.block_size;
  return input;
}

/// One [seq, seq] softmax through LibTorch's own autograd.
torch::Tensor direct_attention(const BlockAttentionInput& input) {
  const std::int64_t group = input.q.size(2) / input.k.size(2), seq = input.q.size(1);
  const torch::Tensor q = input.q.transpose(1, 2);
  const torch::Tensor k = input.k.transpose(1, 2).repeat_interleave(group, 1),
                      v = input.v.transpose(1, 2).repeat_interleave(group, 1);
  torch::Tensor s = q.matmul(k.transpose(-1, -2)) * input.softmax_scale;
  if (input.scheme->has_bias()) {
    LogitBlock block{input.positions, input.positions, q, input.k.transpose(1, 2), input.hidden};
    s = s + input.scheme->block_bias(block, true);
  }
  const torch::Tensor i = torch::arange(seq).unsqueeze(1), j = torch::arange(seq).unsqueeze(0);
  torch::Tensor hidden = j > i;
  if (input.window > 0) hidden = hidden.logical_or(j <= i - input.window);
  return s.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1).matmul(v).transpose(1, 2);
}

std::vector<torch::Tensor> gradients(const torch::Tensor& out, const std::vector<torch::Tensor>& of) {
  const torch::Tensor weights = random_tensor(out.sizes(), 9, out.scalar_type());
  return torch::autograd::grad({(out * weights).sum()}, of, {}, true, false, true);
}

void check_against_direct(const Case& c, PositionScheme& scheme, torch::Dtype dtype, double tolerance) {
  const BlockAttentionInput input = make_input(c, scheme, dtype);
  std::vector<torch::Tensor> of{input.q, input.k, input.v};
  if (scheme.needs_hidden()) of.push_back(input.hidden);
  for (const torch::Tensor& parameter : scheme.parameters()) of.push_back(parameter);
  const torch::Tensor ours = block_attention(input), expected = direct_attention(input);
  CHECK(largest_difference(ours, expected) < tolerance);
  const auto our_gradients = gradients(ours, of), expected_gradients = gradients(expected, of);
  for (std::size_t n = 0; n < of.size(); ++n) {
    INFO("gradient " << n);
    REQUIRE(our_gradients[n].defined());
    CHECK(largest_difference(our_gradients[n], expected_gradients[n]) < tolerance * 20);
  }
}

const std::vector<Case> kCases{{2, 1, 4, 4, 8, 0, 256},   {1, 7, 4, 2, 32, 0, 256}, {2, 64, 4, 4, 32, 0, 256},
                               {1, 100, 4, 1, 24, 0, 32}, {2, 50, 4, 2, 16, 5, 16}, {1, 61, 4, 4, 20, 17, 24},
                               {1, 96, 4, 2, 40, 0, 64}};

}  // namespace

TEST_CASE("block attention: equals the naive loop in double", "[model][attention]") {
  for (const Case& c : kCases) {
    INFO("seq " << c.seq << " window " << c.window << " block " << c.block_size);
    NoBias scheme;
    const BlockAttentionInput input = make_input(c, scheme, torch::kFloat32);
    const torch::Tensor out = block_attention(input).detach().to(torch::kFloat64);
    fathom::test::NaiveAttention naive;
    naive.n_q = c.seq;
    naive.n_heads = c.heads;
    naive.n_kv_heads = c.kv_heads;
    naive.d_head = c.d_head;
    naive.window = c.window;
    naive.scale = input.softmax_scale;
    for (std::int64_t row = 0; row < c.batch; ++row) {
      const auto values = [row](const torch::Tensor& x) {
        const torch::Tensor flat = x.detach()[row].to(torch::kFloat64).contiguous().view({-1});
        return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
      };
      const std::vector<double> expected = naive_attention(naive, values(input.q), values(input.k), values(input.v));
      const std::vector<double> got = values(out);
      double worst = 0;
      for (std::size_t n = 0; n < got.size(); ++n) worst = std::max(worst, std::abs(got[n] - expected[n]));
      CHECK(worst < 3e-6);  // float32 sums of up to 100 products
    }
  }
}

TEST_CASE("block attention: the float32 kernels have the gradients of the plain graph", "[model][attention]") {
  for (const Case& c : kCases) {
    INFO("seq " << c.seq << " window " << c.window << " block " << c.block_size);
    NoBias scheme;
    check_against_direct(c, scheme, torch::kFloat32, 1e-5);
  }
}

TEST_CASE("block attention: the double path has the gradients of the plain graph", "[model][attention]") {
  for (const Case& c : kCases) {
    INFO("seq " << c.seq << " window " << c.window << " block " << c.block_size);
    NoBias scheme;
    check_against_direct(c, scheme, torch::kFloat64, 1e-12);
  }
}

TEST_CASE("block attention: a trained bias gets its gradient from every block", "[model][attention]") {
  for (const Case& c : kCases) {
    INFO("seq " << c.seq << " window " << c.window << " block " << c.block_size);
    TableBias single(torch::kFloat32), twice(torch::kFloat64);
    check_against_direct(c, single, torch::kFloat32, 1e-5);
    check_against_direct(c, twice, torch::kFloat64, 1e-12);
  }
}

TEST_CASE("block attention: a bias made of queries, keys and hidden state is differentiated through",
          "[model][attention]") {
  for (const Case& c : kCases) {
    INFO("seq " << c.seq << " window " << c.window << " block " << c.block_size);
    ContentBias scheme;
    check_against_direct(c, scheme, torch::kFloat32, 3e-5);
    check_against_direct(c, scheme, torch::kFloat64, 1e-12);
  }
}

TEST_CASE("block attention: a logit of -100 against the largest leaves no trace, one of +80 no overflow",
          "[model][attention]") {
  NoBias scheme;
  Case c{1, 9, 1, 1, 16, 0, 256};
  BlockAttentionInput input = make_input(c, scheme, torch::kFloat32);
  input.softmax_scale = 400;
  const torch::Tensor out = block_attention(input);
  CHECK(torch::isfinite(out).all().item<bool>());
  CHECK(largest_difference(out, direct_attention(input)) <
        1e-3);  // one-hot rows; the tolerance covers near ties at scale 400
}
