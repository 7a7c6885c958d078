// The fused operations of inference against the differentiable ones, and schemes that only the generic attention can
// express.

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

#include "harness/engine/kv_cache.h"
#include "harness/model/ops.h"
#include "harness/model/ops_train.h"
#include "tests/engine/tiny_models.h"
#include "tests/support/catch.h"

using namespace fathom;         // NOLINT
using namespace fathom::model;  // NOLINT
using torch::Tensor;

namespace {

Tensor random_rows(torch::IntArrayRef shape, std::uint64_t seed) {
  Tensor out = at::empty(shape, torch::kFloat32);
  float* values = out.data_ptr<float>();
  std::uint64_t state = seed * 2654435761ULL + 99;
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    values[i] = static_cast<float>(static_cast<double>(state >> 11) * 0x1.0p-53 * 2 - 1);
  }
  return out;
}

double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

/// A bias of its own for every pair of query and key, from their vectors and the hidden state.
class VectorBiasScheme : public position::PositionScheme {
 public:
  bool has_bias() const override { return true; }
  bool needs_q_and_k() const override { return true; }
  bool needs_hidden() const override { return true; }
  Tensor block_bias(const position::LogitBlock& block, bool) override {
    const std::int64_t group = block.q.size(1) / block.k.size(1);
    const Tensor dot = at::matmul(block.q, block.k.repeat_interleave(group, 1).transpose(-1, -2));
    const Tensor distance = block.q_positions.unsqueeze(2) - block.k_positions.unsqueeze(1);
    return at::sin(dot) - 0.02 * distance.unsqueeze(1).to(torch::kFloat32) +
           block.q_hidden.mean(-1).unsqueeze(1).unsqueeze(-1) * dot;
  }
};

/// Nearby keys see the true distance, those from 40 tokens on half of it (a remap with two regions).
class HalvingScheme : public position::PositionScheme {
 public:
  bool rotates() const override { return true; }
  std::int64_t n_regions() const override { return 2; }
  Tensor region(const Tensor& q_positions, const Tensor& k_positions) const override {
    return (q_positions.unsqueeze(1) - k_positions >= 40).to(torch::kInt64);
  }
  Tensor rotate(const Tensor& x, position::Role, const Tensor& positions, std::int64_t, std::int64_t region) override {
    const Tensor angle =
        positions.to(torch::kFloat32).unsqueeze(-1).unsqueeze(-1) * (region == 0 ? 0.1F : 0.05F);  // [batch, seq, 1, 1]
    const std::int64_t half = x.size(-1) / 2;
    const Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
    return at::cat({a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()}, -1);
  }
};

struct CallData {
  checkpoint::LayerSpec spec;
  ops::AttentionCall call;
};

CallData attention_call(position::PositionScheme& scheme, std::int64_t seq, std::int64_t window) {
  CallData data;
  data.spec.n_heads = 4;
  data.spec.n_kv_heads = 2;
  data.spec.d_head = 16;
  if (window > 0) data.spec.window = window;
  data.call.q = random_rows({1, seq, 4, 16}, 1) * 2;
  data.call.k = random_rows({1, seq, 2, 16}, 2) * 2;
  data.call.v = random_rows({1, seq, 2, 16}, 3);
  data.call.hidden = random_rows({1, seq, test::tiny_config().d_model}, 4);
  data.call.positions = at::arange(seq, torch::kInt64).unsqueeze(0);
  data.call.scheme = &scheme;
  return data;
}

/// The call cut into pieces that go through a cache one after the other.
Tensor through_cache(const CallData& data, const std::vector<std::int64_t>& pieces) {
  checkpoint::DecoderConfig config;
  config.layers = {data.spec};
  engine::KvCache cache(config, kernels::ElementType::kFloat32);
  const std::int64_t seq = data.call.q.size(1);
  cache.reserve(seq + 3);
  std::vector<Tensor> out;
  std::int64_t begin = 0;
  for (const std::int64_t n : pieces) {
    ops::AttentionCall part = data.call;
    part.spec = &data.spec;
    part.q = data.call.q.narrow(1, begin, n);
    part.k = data.call.k.narrow(1, begin, n);
    part.v = data.call.v.narrow(1, begin, n);
    part.hidden = data.call.hidden.narrow(1, begin, n);
    part.positions = data.call.positions.narrow(1, begin, n);
    const std::vector<SequenceSpan> spans = {{0, n, begin, seq, &cache}};
    part.sequences = &spans;
    out.push_back(ops::attention(part));
    begin += n;
  }
  return at::cat(out, 1);
}

Tensor differentiable(const CallData& data) {
  ops::AttentionCall call = data.call;
  call.spec = &data.spec;
  return ops::train::attention(call);
}

}  // namespace

TEST_CASE("inference ops: linear layers equal a product in double", "[model][ops]") {
  const at::NoGradGuard no_grad;
  const std::int64_t rows = GENERATE(1, 8, 9, 130);
  const bool with_bias = GENERATE(false, true);
  const Tensor x = random_rows({1, rows, 48}, 1), weight = random_rows({33, 48}, 2);
  const Tensor bias = with_bias ? random_rows({33}, 3) : Tensor();
  const auto expected = [&](const Tensor& input, const Tensor& matrix) {
    const Tensor product = at::matmul(input.to(torch::kDouble), matrix.to(torch::kDouble).t());
    return bias.defined() ? product + bias : product;
  };
  CHECK(distance(ops::linear(x, weight, bias), expected(x, weight)) < 1e-5);
  // Products of bf16 inputs, summed in float32.
  const Tensor half = weight.to(torch::kBFloat16);
  CHECK(distance(ops::linear(x, half, bias), expected(x.to(torch::kBFloat16), half)) < 1e-5);
}

TEST_CASE("inference ops: norms and activations equal the differentiable ones", "[model][ops]") {
  const at::NoGradGuard no_grad;
  const Tensor x = random_rows({2, 70, 48}, 1) * 4, up = random_rows({2, 70, 48}, 2);
  const Tensor weight = random_rows({48}, 3), bias = random_rows({48}, 4);
  for (const auto kind : {checkpoint::NormKind::kRms, checkpoint::NormKind::kLayer}) {
    for (const Tensor& b : {bias, Tensor()}) {
      CHECK(distance(ops::norm(x, kind, weight, b, 1e-5), ops::train::norm(x, kind, weight, b, 1e-5)) < 2e-6);
    }
  }
  for (const auto activation : {checkpoint::Activation::kSilu, checkpoint::Activation::kGelu,
                                checkpoint::Activation::kGeluTanh, checkpoint::Activation::kRelu}) {
    CHECK(distance(ops::activate(x, activation), ops::train::activate(x, activation)) < 2e-6);
    CHECK(distance(ops::gated(x, up, activation), ops::train::gated(x, up, activation)) < 2e-6);
    const Tensor strided = x.transpose(1, 2);
    CHECK(distance(ops::activate(strided, activation), ops::train::activate(strided, activation)) < 2e-6);
  }
}

TEST_CASE("inference ops: attention of every scheme equals the differentiable one, whole and through a cache",
          "[model][ops]") {
  const at::NoGradGuard no_grad;
  const std::int64_t window = GENERATE(0, 30);
  for (const position::PositionInfo& info : position::position_infos().entries()) {
    checkpoint::DecoderConfig config = test::tiny_config();
    config.claimed_context = 512;
    for (checkpoint::LayerSpec& layer : config.layers) {
      layer.position.kind = std::string(info.name);
      if (!info.rotates) layer.position.rotary_dim = 0;
    }
    const auto scheme = position::position_schemes().at(info.name).make({&config, 0, nullptr, nullptr});
    if (scheme->n_regions() > 1) continue;
    for (const auto& item : scheme->named_parameters()) item.value().copy_(random_rows(item.value().sizes().vec(), 7));
    const CallData data = attention_call(*scheme, 300, window);
    const Tensor expected = differentiable(data);
    INFO("scheme " << info.name << " window " << window);
    ops::AttentionCall whole = data.call;
    whole.spec = &data.spec;
    CHECK(distance(ops::attention(whole), expected) < 1e-5);
    CHECK(distance(through_cache(data, {300}), expected) < 1e-5);
    CHECK(distance(through_cache(data, {1, 2, 130, 160, 1, 6}), expected) < 1e-5);
  }
}

TEST_CASE("inference ops: a bias made of queries, keys and hidden states works through a cache", "[model][ops]") {
  const at::NoGradGuard no_grad;
  VectorBiasScheme scheme;
  const CallData data = attention_call(scheme, 300, GENERATE(0, 30));
  const Tensor expected = differentiable(data);
  CHECK(distance(through_cache(data, {300}), expected) < 2e-5);
  CHECK(distance(through_cache(data, {1, 255, 1, 40, 3}), expected) < 2e-5);
}

TEST_CASE("inference ops: each distance range uses its own rotation", "[model][ops]") {
  const at::NoGradGuard no_grad;
  HalvingScheme scheme;
  const CallData data = attention_call(scheme, 300, 0);
  std::vector<Tensor> logits;
  for (const std::size_t range : {0, 1}) {
    const Tensor q = scheme.rotate(data.call.q, position::Role::kQuery, data.call.positions, 300, range)
                         .to(torch::kDouble)
                         .transpose(1, 2);
    const Tensor k = scheme.rotate(data.call.k, position::Role::kKey, data.call.positions, 300, range)
                         .to(torch::kDouble)
                         .transpose(1, 2);
    logits.push_back(at::matmul(q, k.repeat_interleave(2, 1).transpose(-1, -2)) / 4.0);  // 1 / sqrt(d_head)
  }
  const Tensor apart = data.call.positions.transpose(0, 1) - data.call.positions;  // [q, k]
  const Tensor chosen =
      at::where(apart >= 40, logits[1], logits[0]).masked_fill(apart < 0, -std::numeric_limits<double>::infinity());
  const Tensor v = data.call.v.to(torch::kDouble).transpose(1, 2).repeat_interleave(2, 1);
  const Tensor expected = at::matmul(chosen.softmax(-1), v).transpose(1, 2).reshape({1, 300, 64});
  CHECK(distance(through_cache(data, {300}), expected) < 1e-5);
  CHECK(distance(through_cache(data, {1, 100, 150, 49}), expected) < 1e-5);
  CHECK(distance(through_cache(data, {300}),
                 at::matmul(logits[0].masked_fill(apart < 0, -std::numeric_limits<double>::infinity()).softmax(-1), v)
                     .transpose(1, 2)
                     .reshape({1, 300, 64})) > 1e-3);
}

TEST_CASE("kv cache: rows survive growth, truncation and copying of a prefix", "[engine][cache]") {
  checkpoint::DecoderConfig config = test::tiny_config();
  config.layers[1].n_kv_heads = 1;
  engine::KvCache cache(config, kernels::ElementType::kFloat32);
  cache.reserve(4);
  auto* keys = static_cast<float*>(cache.keys(1));
  for (int i = 0; i < 4 * 16; ++i) keys[i] = static_cast<float>(i);
  auto* values = static_cast<float*>(cache.values(0));
  for (int i = 0; i < 2 * 4 * 16; ++i) values[i] = static_cast<float>(-i);
  cache.set_length(3);
  cache.set_rotation_state(7);
  cache.reserve(10);
  CHECK(cache.capacity() == 10);
  CHECK(cache.length() == 3);
  CHECK(static_cast<float*>(cache.keys(1))[2 * 16 + 5] == 37.0F);
  CHECK(static_cast<float*>(cache.values(0))[(10 + 2) * 16] == -(4 + 2) * 16.0F);  // head 1, slot 2
  engine::KvCache other(config, kernels::ElementType::kFloat32);
  other.reserve(6);
  other.copy_prefix(cache, 2);
  CHECK(other.length() == 2);
  CHECK(other.rotation_state() == 7);
  CHECK(static_cast<float*>(other.values(0))[(6 + 1) * 16] == -(4 + 1) * 16.0F);
  cache.truncate(1);
  CHECK(cache.length() == 1);
  CHECK(cache.size_bytes() == 2 * (2 + 1) * 10 * 16 * 4);
  CHECK_THROWS_AS(cache.set_length(11), InvariantError);
  CHECK_THROWS_AS(other.copy_prefix(cache, 2), InvariantError);
}
