// Every registered position scheme, in every form that its switches and choices give it, keeps the promises of
// position_scheme.h. A new scheme is covered by being registered.

#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/engine/kv_cache.h"
#include "harness/model/block_attention_function.h"
#include "harness/model/ops.h"
#include "harness/model/ops_train.h"
#include "tests/model/model_test_data.h"
#include "tests/support/catch.h"
#include "tests/support/naive_attention.h"

namespace {

using fathom::checkpoint::DecoderConfig;
using fathom::model::BlockAttentionInput;
using fathom::model::DecoderLm;
using fathom::model::ForwardInput;
using fathom::model::SequenceSpan;
using fathom::position::LogitBlock;
using fathom::position::PositionScheme;
using fathom::position::Role;
using fathom::test::counted_positions;
using fathom::test::largest_difference;
using fathom::test::make_tiny_decoder;
using fathom::test::random_tensor;
using fathom::test::scheme_variants;
using fathom::test::SchemeVariant;
using fathom::test::tiny_config;
using torch::Tensor;

// Sequences of several attention blocks: tables that end must reach this far.
constexpr std::int64_t kLongContext = 1024;

Tensor conformance_ids(std::int64_t batch, std::int64_t seq) {
  return (torch::arange(batch * seq, torch::kInt64) * 7 % 40).view({batch, seq});
}

Tensor logits_at(DecoderLm& decoder, const Tensor& ids, const Tensor& positions) {
  const Tensor hidden = decoder.hidden({ids, positions, {}, {}});
  return decoder.logits(hidden.reshape({-1, hidden.size(2)})).view({ids.size(0), ids.size(1), -1});
}

Tensor conformance_logits(DecoderLm& decoder, const Tensor& ids) {
  return logits_at(decoder, ids, counted_positions(ids.size(0), ids.size(1)));
}

/// The sequence in pieces through a cache, as the engine runs it.
Tensor logits_through_cache(DecoderLm& decoder, const Tensor& ids, const std::vector<std::int64_t>& pieces) {
  const torch::NoGradGuard no_grad;
  fathom::engine::KvCache cache(decoder.config(), fathom::kernels::ElementType::kFloat32);
  const std::int64_t seq = ids.size(1);
  cache.reserve(seq);
  std::vector<Tensor> out;
  std::int64_t begin = 0;
  for (const std::int64_t n : pieces) {
    ForwardInput input{ids.narrow(1, begin, n), counted_positions(1, seq).narrow(1, begin, n), {}, {}};
    input.sequences = {SequenceSpan{0, n, begin, seq, &cache}};
    out.push_back(decoder.logits(decoder.hidden(input)[0]));
    begin += n;
    cache.set_length(begin);
  }
  return torch::cat(out, 0);
}

/// What an attention layer gets, drawn; q, k after rotation and query scale.
struct LayerCall {
  BlockAttentionInput input;
  DecoderConfig config;
  std::shared_ptr<DecoderLm> decoder;
};

/// Queries and keys as a layer would hand them on. The scheme of layer 1 is asked, with layer 0's where it shares.
LayerCall layer_call(const SchemeVariant& variant, std::int64_t seq, torch::Dtype dtype, std::int64_t window = 0) {
  LayerCall call;
  call.config = tiny_config(variant, kLongContext);
  if (window > 0) {
    for (auto& layer : call.config.layers) layer.window = window;
  }
  call.decoder = make_tiny_decoder(call.config);
  if (dtype == torch::kFloat64) call.decoder->to(torch::kFloat64);
  PositionScheme& scheme = call.decoder->scheme(1);
  BlockAttentionInput& input = call.input;
  input.positions = counted_positions(2, seq);
  const auto drawn = [&](std::int64_t heads, std::uint64_t seed) {
    return random_tensor({2, seq, heads, 8}, seed, dtype);
  };
  input.q = drawn(4, 1);
  input.k = drawn(2, 2);
  if (scheme.rotates()) {
    input.q = scheme.rotate(input.q, Role::kQuery, input.positions, seq);
    input.k = scheme.rotate(input.k, Role::kKey, input.positions, seq);
  }
  const Tensor scale = scheme.query_scale(input.positions);
  if (scale.defined()) input.q = input.q * scale.unsqueeze(-1).unsqueeze(-1);
  input.q = input.q.detach().requires_grad_();
  input.k = input.k.detach().requires_grad_();
  input.v = drawn(2, 3).requires_grad_();
  input.hidden = random_tensor({2, seq, 16}, 4, dtype).requires_grad_();
  input.scheme = &scheme;
  input.softmax_scale = scheme.softmax_scale_factor(seq) / std::sqrt(8.0);
  input.window = window;
  return call;
}

/// The bias of the whole square as one block, [batch or 1, heads, seq, seq], or undefined.
Tensor whole_bias(const BlockAttentionInput& input) {
  if (!input.scheme->has_bias()) return {};
  LogitBlock block{input.positions,         input.positions, input.q.transpose(1, 2),
                   input.k.transpose(1, 2), input.hidden,    {}};
  return input.scheme->block_bias(block, true);
}

std::vector<double> flat_doubles(const Tensor& x) {
  const Tensor flat = x.detach().to(torch::kFloat64).contiguous().view({-1});
  return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
}

/// One softmax over the whole square, through LibTorch's own autograd.
Tensor whole_attention(const BlockAttentionInput& input) {
  const std::int64_t seq = input.q.size(1);
  const auto expanded = [](const Tensor& x) { return x.transpose(1, 2).repeat_interleave(2, 1); };
  Tensor s = input.q.transpose(1, 2).matmul(expanded(input.k).transpose(-1, -2)) * input.softmax_scale;
  const Tensor bias = whole_bias(input);
  if (bias.defined()) s = s + bias;
  const Tensor i = torch::arange(seq).unsqueeze(1), j = torch::arange(seq).unsqueeze(0);
  Tensor hidden = j > i;
  if (input.window > 0) hidden = hidden.logical_or(j <= i - input.window);
  return s.masked_fill(hidden, -std::numeric_limits<double>::infinity())
      .softmax(-1)
      .matmul(expanded(input.v))
      .transpose(1, 2);
}

/// Gradients of a drawn linear function of the output in everything that shapes it.
std::vector<Tensor> input_gradients(const Tensor& out, const BlockAttentionInput& input) {
  std::vector<Tensor> of{input.q, input.k, input.v, input.hidden};
  for (const Tensor& parameter : input.scheme->bias_parameters()) of.push_back(parameter);
  const Tensor weights = random_tensor(out.sizes(), 9, out.scalar_type());
  return torch::autograd::grad({(out * weights).sum()}, of, {}, true, false, true);
}

bool throws_model_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const fathom::ModelError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("schemes: shapes are kept, values finite, and every parameter gets a gradient", "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    auto decoder = make_tiny_decoder(tiny_config(variant));
    const Tensor logits = conformance_logits(*decoder, conformance_ids(3, 20));
    CHECK(logits.sizes() == torch::IntArrayRef({3, 20, 40}));
    CHECK(torch::isfinite(logits).all().item<bool>());
    at::cross_entropy_loss(logits.view({-1, 40}), conformance_ids(3, 20).view({-1}).roll(1)).backward();
    for (const auto& item : decoder->named_parameters()) {
      INFO(item.key());
      REQUIRE(item.value().grad().defined());
      CHECK(torch::isfinite(item.value().grad()).all().item<bool>());
      CHECK(item.value().grad().abs().max().item<double>() > 0);
    }
  }
}

TEST_CASE("schemes: parameters that training starts are finite, and differ from layer to layer where drawn",
          "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    const torch::NoGradGuard no_grad;
    DecoderLm decoder(tiny_config(variant), torch::kFloat32);
    for (auto& item : decoder.scheme(0).named_parameters()) {
      if (item.key() == "position_embedding") continue;  // an embedding, which the recipe draws
      INFO(item.key());
      fathom::RngStream one(fathom::RngKey("a")), same(fathom::RngKey("a"));
      Tensor first = torch::full(item.value().sizes(), std::nan("")), second = torch::full_like(first, std::nan(""));
      decoder.scheme(0).draw_parameter(item.key(), first, one);
      decoder.scheme(0).draw_parameter(item.key(), second, same);
      CHECK(torch::isfinite(first).all().item<bool>());  // every element is set
      CHECK(torch::equal(first, second));
    }
  }
}

TEST_CASE("schemes: batch rows are independent, and later tokens do not change earlier logits",
          "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    auto decoder = make_tiny_decoder(tiny_config(variant));
    const Tensor ids = conformance_ids(2, 24);
    const Tensor before = conformance_logits(*decoder, ids);
    Tensor other_row = ids.clone();
    other_row[1] = (other_row[1] + 3) % 40;
    CHECK(largest_difference(conformance_logits(*decoder, other_row)[0], before[0]) < 1e-6);
    Tensor later = ids.clone();
    later.slice(1, 13) = (later.slice(1, 13) + 11) % 40;
    const Tensor after = conformance_logits(*decoder, later);
    CHECK(largest_difference(after.slice(1, 0, 13), before.slice(1, 0, 13)) < 1e-6);
    CHECK(largest_difference(after.slice(1, 13), before.slice(1, 13)) > 1e-3);  // the change is seen where it may be
  }
}

TEST_CASE("schemes: blocked attention equals the naive loop with the bias of the whole square",
          "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    const std::int64_t seq = 21;
    LayerCall call = layer_call(variant, seq, torch::kFloat32);
    if (call.input.scheme->n_regions() > 1) continue;  // remaps run at inference only
    const Tensor bias = whole_bias(call.input);
    for (const std::int64_t block_size : {256, 8}) {
      call.input.block_size = block_size;
      const Tensor out = fathom::model::block_attention(call.input);
      for (std::int64_t row = 0; row < 2; ++row) {
        fathom::test::NaiveAttention naive;
        naive.n_q = seq;
        naive.n_heads = 4;
        naive.n_kv_heads = 2;
        naive.d_head = 8;
        naive.scale = call.input.softmax_scale;
        std::vector<double> values;
        if (bias.defined()) {
          values = flat_doubles(bias[bias.size(0) == 1 ? 0 : row]);
          naive.bias = [&](std::int64_t head, std::int64_t i, std::int64_t j) {
            return values[static_cast<std::size_t>((head * seq + i) * seq + j)];
          };
        }
        const std::vector<double> expected = naive_attention(
            naive, flat_doubles(call.input.q[row]), flat_doubles(call.input.k[row]), flat_doubles(call.input.v[row]));
        const std::vector<double> got = flat_doubles(out[row]);
        double worst = 0;
        for (std::size_t n = 0; n < got.size(); ++n) worst = std::max(worst, std::abs(got[n] - expected[n]));
        CHECK(worst < 3e-6);  // float32 sums of 21 terms
      }
    }
  }
}

TEST_CASE("schemes: float32 in blocks has the values and gradients of one softmax in double",
          "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    for (const std::int64_t window : {0, 20}) {
      INFO(variant.text() << " window " << window);
      LayerCall single = layer_call(variant, 60, torch::kFloat32, window);
      const LayerCall twice = layer_call(variant, 60, torch::kFloat64, window);
      if (single.input.scheme->n_regions() > 1) continue;
      single.input.block_size = 16;
      const Tensor out = fathom::model::block_attention(single.input), expected = whole_attention(twice.input);
      CHECK(largest_difference(out, expected) < 1e-5);  // float32 against double, logits of a few units
      const auto ours = input_gradients(out, single.input), theirs = input_gradients(expected, twice.input);
      for (std::size_t n = 0; n < ours.size(); ++n) {
        INFO("gradient " << n);
        REQUIRE(ours[n].defined() == theirs[n].defined());
        if (!ours[n].defined()) continue;
        // Sums over all pairs: the tolerance grows with the gradient.
        CHECK(largest_difference(ours[n], theirs[n]) < 3e-5 * (1 + theirs[n].abs().max().item<double>()));
      }
    }
  }
}

TEST_CASE("schemes: T-68: the fused attention of inference equals the differentiable one", "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    for (const std::int64_t window : {0, 100}) {
      INFO(variant.text() << " window " << window);
      DecoderConfig config = tiny_config(variant, kLongContext);
      if (window > 0) {
        for (auto& layer : config.layers) layer.window = window;
      }
      auto decoder = make_tiny_decoder(config);
      if (decoder->scheme(0).n_regions() > 1) continue;
      const Tensor ids = conformance_ids(2, 300);  // more than one block of 256
      const Tensor expected = conformance_logits(*decoder, ids).detach();
      const torch::NoGradGuard no_grad;
      CHECK(largest_difference(conformance_logits(*decoder, ids), expected) < 1e-4);  // logits of several units
    }
  }
}

TEST_CASE("schemes: prefill of N tokens equals prefill of k and decoding of N - k", "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    auto decoder = make_tiny_decoder(tiny_config(variant, kLongContext));
    const Tensor ids = conformance_ids(1, 300);
    const Tensor whole = logits_through_cache(*decoder, ids, {300});
    std::vector<std::int64_t> one_by_one{270};
    for (std::int64_t i = 0; i < 30; ++i) one_by_one.push_back(1);
    const double decoded = largest_difference(logits_through_cache(*decoder, ids, one_by_one), whole);
    const double in_pieces = largest_difference(logits_through_cache(*decoder, ids, {1, 200, 56, 1, 42}), whole);
    INFO(variant.text() << ": largest difference " << decoded << " decoded, " << in_pieces << " in pieces");
    CHECK(decoded < 5e-5);  // other orders of the same float32 sums, logits of several units
    CHECK(in_pieces < 5e-5);
  }
}

TEST_CASE("schemes: T-64: packed sequences give what each gives alone", "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    auto decoder = make_tiny_decoder(tiny_config(variant, kLongContext));
    if (decoder->scheme(0).n_regions() > 1) continue;
    const Tensor ids = conformance_ids(1, 330);
    const Tensor positions = torch::cat({counted_positions(1, 290), counted_positions(1, 40)}, 1);
    const Tensor packed = logits_at(*decoder, ids, positions)[0];
    const Tensor first = conformance_logits(*decoder, ids.narrow(1, 0, 290))[0];
    const Tensor second = conformance_logits(*decoder, ids.narrow(1, 290, 40))[0];
    CHECK(largest_difference(packed.narrow(0, 0, 290), first) < 5e-5);
    CHECK(largest_difference(packed.narrow(0, 290, 40), second) < 5e-5);

    const torch::NoGradGuard no_grad;  // the engine's form: one row, a cache each
    fathom::engine::KvCache one(decoder->config(), fathom::kernels::ElementType::kFloat32), two = one;
    one.reserve(290);
    two.reserve(40);
    ForwardInput input{ids, positions, {}, {}};
    input.sequences = {SequenceSpan{0, 290, 0, 290, &one}, SequenceSpan{290, 40, 0, 40, &two}};
    const Tensor fused = decoder->logits(decoder->hidden(input)[0]);
    CHECK(largest_difference(fused.narrow(0, 0, 290), first) < 1e-4);
    CHECK(largest_difference(fused.narrow(0, 290, 40), second) < 1e-4);
  }
}

TEST_CASE("schemes: T-59: left padding does not change the logits of a row", "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    auto decoder = make_tiny_decoder(tiny_config(variant));
    if (decoder->scheme(0).n_regions() > 1) continue;
    const Tensor ids = conformance_ids(2, 24);  // row 1 has 15 tokens after 9 of padding
    const Tensor alone = conformance_logits(*decoder, ids.narrow(0, 1, 1).narrow(1, 9, 15))[0];
    for (const std::int64_t padding : {0, 1}) {  // any constant; Hugging Face's generate() has 1
      INFO(variant.text() << " padding at position " << padding);
      Tensor positions = counted_positions(2, 24).clone();
      positions[1].slice(0, 0, 9) = padding;
      positions[1].slice(0, 9, 24) = torch::arange(15);
      CHECK(largest_difference(logits_at(*decoder, ids, positions)[1].slice(0, 9), alone) < 1e-5);
      const torch::NoGradGuard no_grad;
      CHECK(largest_difference(logits_at(*decoder, ids, positions)[1].slice(0, 9), alone) < 1e-5);
    }
  }
}

TEST_CASE("schemes: T-70: the bias of a decoded query is the last row of the whole square", "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    const std::int64_t seq = 40;
    LayerCall call = layer_call(variant, seq, torch::kFloat32);
    if (!call.input.scheme->has_bias()) continue;
    const Tensor whole = whole_bias(call.input);
    const auto last = [&](const Tensor& x) { return x.narrow(1, seq - 1, 1); };
    LogitBlock block{last(call.input.positions),   call.input.positions,    last(call.input.q).transpose(1, 2),
                     call.input.k.transpose(1, 2), last(call.input.hidden), {}};
    const Tensor row = call.input.scheme->block_bias(block, true);
    CHECK(largest_difference(row, whole.narrow(2, seq - 1, 1).expand_as(row)) < 1e-5);  // products of other shapes
  }
}

TEST_CASE("schemes: the bias function of inference equals the differentiable bias", "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    const std::int64_t seq = 90;
    LayerCall call = layer_call(variant, seq, torch::kFloat32);
    const auto function = call.input.scheme->bias_function();
    if (!function) continue;
    REQUIRE(call.input.scheme->has_bias());
    const Tensor whole = whole_bias(call.input)[0].detach().contiguous();
    std::vector<std::int32_t> positions;
    for (std::int32_t i = 0; i < seq; ++i) positions.push_back(i);
    Tensor filled = torch::full({4, 17, 60}, std::nan(""));  // queries 70.. on keys 5 .. 54, rows 60 apart
    for (std::int64_t head = 0; head < 4; ++head)
      function(head, positions.data() + 70, 17, positions.data() + 5, 50, filled[head].data_ptr<float>(), 60);
    CHECK(largest_difference(filled.slice(2, 0, 50), whole.slice(1, 70, 87).slice(2, 5, 55)) < 1e-5);
  }
}

TEST_CASE("schemes: bf16 inputs give finite values close to those of float32", "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    const DecoderConfig config = tiny_config(variant);
    auto decoder = make_tiny_decoder(config);
    PositionScheme& scheme = decoder->scheme(1);
    if (scheme.n_regions() > 1) continue;
    const auto attend = [&](torch::Dtype dtype) {
      fathom::model::ops::AttentionCall call;
      const auto drawn = [&](torch::IntArrayRef shape, std::uint64_t seed) {
        return random_tensor(shape, seed).to(torch::kBFloat16).to(dtype).requires_grad_();  // the same numbers
      };
      call.q = drawn({2, 30, 4, 8}, 1);
      call.k = drawn({2, 30, 2, 8}, 2);
      call.v = drawn({2, 30, 2, 8}, 3);
      call.hidden = drawn({2, 30, 16}, 4);
      call.positions = counted_positions(2, 30);
      call.layer = 1;
      call.spec = &config.layers[1];
      call.scheme = &scheme;
      const Tensor out = fathom::model::ops::train::attention(call);
      out.sum().backward();
      CHECK(torch::isfinite(call.q.grad()).all().item<bool>());
      CHECK(torch::isfinite(call.k.grad()).all().item<bool>());
      return out.detach();
    };
    const Tensor half = attend(torch::kBFloat16), single = attend(torch::kFloat32);
    CHECK(half.scalar_type() == torch::kBFloat16);
    CHECK(torch::isfinite(half).all().item<bool>());
    CHECK(largest_difference(half, single) < 3e-2);  // 8 bits: rotated queries, keys and the output are rounded
  }
}

TEST_CASE("schemes: T-50: rotating twice is another thing, and at one position products stay",
          "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    auto decoder = make_tiny_decoder(tiny_config(variant));
    PositionScheme& scheme = decoder->scheme(1);
    if (!scheme.rotates()) continue;
    const Tensor q = random_tensor({1, 12, 4, 8}, 1), k = random_tensor({1, 12, 2, 8}, 2);
    const Tensor positions = counted_positions(1, 12) + 7;
    const auto turned = [&](const Tensor& x, Role role) { return scheme.rotate(x, role, positions, 19); };
    const auto products = [](const Tensor& a, const Tensor& b) { return (a * b.repeat_interleave(2, 2)).sum(-1); };
    CHECK(largest_difference(products(turned(q, Role::kQuery), turned(k, Role::kKey)), products(q, k)) < 1e-5);
    CHECK(largest_difference(turned(turned(q, Role::kQuery), Role::kQuery), turned(q, Role::kQuery)) > 1e-2);
    if (torch::equal(turned(k, Role::kQuery), turned(k, Role::kKey)))
      CHECK(largest_difference(turned(q, Role::kQuery).norm(2, -1), q.norm(2, -1)) < 1e-5);
  }
}

TEST_CASE("schemes: T-63: where positions end, the last works and the next is a clean error",
          "[position][conformance]") {
  for (const SchemeVariant& variant : scheme_variants()) {
    INFO(variant.text());
    auto decoder = make_tiny_decoder(tiny_config(variant));
    PositionScheme& scheme = decoder->scheme(0);
    if (!scheme.max_positions()) continue;
    const std::int64_t last = *scheme.max_positions() - 1;
    const auto reach = [&](std::int64_t position) {
      const Tensor positions = torch::full({1, 1}, position, torch::kInt64);
      static_cast<void>(scheme.embed(random_tensor({1, 1, 16}, 1), positions));
      if (scheme.rotates()) {
        const Tensor q = scheme.rotate(random_tensor({1, 1, 4, 8}, 2), Role::kQuery, positions, position + 1);
        CHECK(torch::isfinite(q).all().item<bool>());
      }
    };
    CHECK_NOTHROW(reach(last));
    CHECK(throws_model_error([&] { reach(last + 1); }));
  }
}
