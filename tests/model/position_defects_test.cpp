// Defects of other programs that a decoder and its schemes can have, by number: layouts, layers without rotation,
// ALiBi.

#include <torch/torch.h>

#include <cmath>
#include <set>
#include <vector>

#include "harness/rope/alibi_slopes.h"
#include "tests/model/model_test_data.h"
#include "tests/support/catch.h"

namespace {

using fathom::checkpoint::DecoderConfig;
using fathom::checkpoint::RopeLayout;
using fathom::model::DecoderLm;
using fathom::position::PositionScheme;
using fathom::position::Role;
using fathom::test::counted_positions;
using fathom::test::largest_difference;
using fathom::test::random_tensor;
using fathom::test::tiny_config;
using torch::Tensor;

/// Heads of width d as rows [.., n_heads * d, ..] of dimension `dim`: channel (half, i) moves to (i, half).
Tensor interleaved_channels(const Tensor& x, std::int64_t dim, std::int64_t d_head) {
  std::vector<std::int64_t> split(x.sizes().begin(), x.sizes().end());
  const std::int64_t n_heads = split[static_cast<std::size_t>(dim)] / d_head;
  split[static_cast<std::size_t>(dim)] = n_heads;
  split.insert(split.begin() + dim + 1, {2, d_head / 2});
  return x.reshape(split).transpose(dim + 1, dim + 2).reshape(x.sizes());
}

DecoderConfig with_layout(RopeLayout layout) {
  DecoderConfig config = tiny_config("rope");
  for (auto& layer : config.layers) layer.position.layout = layout;
  return config;
}

/// Rows of q and k in interleaved order, as a GGUF of the same model holds them.
void permute_projections(DecoderLm& decoder, std::int64_t d_head) {
  const torch::NoGradGuard no_grad;
  std::size_t n = 0;
  for (auto& item : decoder.named_parameters()) {
    const std::string& name = item.key();
    if (name.find("attention.q.weight") == std::string::npos && name.find("attention.k.weight") == std::string::npos)
      continue;
    item.value().copy_(interleaved_channels(item.value(), 0, d_head));
    ++n;
  }
  REQUIRE(n == 2 * decoder.config().layers.size());
}

/// By the differentiable path, which takes a batch as it is.
Tensor tiny_logits(DecoderLm& decoder, const Tensor& ids) {
  const Tensor hidden = decoder.hidden({ids, counted_positions(ids.size(0), ids.size(1)), {}, {}});
  return decoder.logits(hidden.view({-1, hidden.size(2)})).view({ids.size(0), ids.size(1), -1}).detach();
}

Tensor mixed_ids(std::int64_t n) {
  return (torch::arange(n, torch::kInt64) * 7 % 40).view({1, n});
}

/// Bias of one head for a query at the last of n positions, by the function that inference calls; newest key last.
std::vector<float> last_row(const PositionScheme& scheme, std::int64_t head, std::int64_t n) {
  std::vector<std::int32_t> keys;
  for (std::int64_t j = 0; j < n; ++j) keys.push_back(static_cast<std::int32_t>(j));
  const auto query = static_cast<std::int32_t>(n - 1);
  std::vector<float> out(keys.size());
  scheme.bias_function()(head, &query, 1, keys.data(), n, out.data(), n);
  return out;
}

DecoderConfig alibi_config(std::int64_t n_heads, const std::map<std::string, std::string>& options = {}) {
  DecoderConfig config = tiny_config("alibi");
  config.layers.resize(1);
  config.layers[0].n_heads = config.layers[0].n_kv_heads = n_heads;
  config.layers[0].position.options = options;
  return config;
}

}  // namespace

TEST_CASE("T-52, T-55: a model and its copy with permuted rows agree, each in its own layout only",
          "[position][defects]") {
  auto halves = fathom::test::make_tiny_decoder(with_layout(RopeLayout::kSplitHalf));
  auto pairs = fathom::test::make_tiny_decoder(with_layout(RopeLayout::kInterleaved));
  const Tensor ids = mixed_ids(24);
  const Tensor expected = tiny_logits(*halves, ids);
  CHECK(largest_difference(tiny_logits(*pairs, ids), expected) > 1e-3);  // the layout alone
  permute_projections(*pairs, 8);
  CHECK(largest_difference(tiny_logits(*pairs, ids), expected) < 1e-5);
  permute_projections(*halves, 8);
  CHECK(largest_difference(tiny_logits(*halves, ids), expected) > 1e-3);  // the rows alone
}

TEST_CASE("T-53, T-55: rotated queries and keys of every layer tell the layouts apart from position 1 on",
          "[position][defects]") {
  DecoderConfig config = with_layout(RopeLayout::kSplitHalf);
  config.layers[1].position = {};
  config.layers[1].position.kind = "nope";
  DecoderConfig other = config;
  other.layers[0].position.layout = RopeLayout::kInterleaved;
  auto halves = fathom::test::make_tiny_decoder(config), pairs = fathom::test::make_tiny_decoder(other);
  const Tensor positions = counted_positions(1, 32);
  for (const Role role : {Role::kQuery, Role::kKey}) {
    const Tensor x = random_tensor({1, 32, 2, 8}, 3);
    const Tensor permuted = interleaved_channels(x, 3, 8);
    const auto rotated = [&](DecoderLm& decoder, std::int64_t layer, const Tensor& values) {
      return decoder.scheme(layer).rotate(values, role, positions, 32);
    };
    const Tensor expected = interleaved_channels(rotated(*halves, 0, x), 3, 8);
    CHECK(largest_difference(rotated(*pairs, 0, permuted), expected) < 1e-6);
    const Tensor wrong = (rotated(*pairs, 0, x) - rotated(*halves, 0, x)).abs().amax({0, 2, 3});
    CHECK(wrong[0].item<float>() == 0);  // position 0 hides the mistake
    CHECK(wrong.slice(0, 1).min().item<float>() > 0.05F);
    // A layer without rotation hides it everywhere, so text alone would not tell.
    CHECK(torch::equal(rotated(*pairs, 1, x), rotated(*halves, 1, x)));
  }
}

TEST_CASE("T-54: the layout that writes halves scores as the interleaved one and caches other keys",
          "[position][defects]") {
  auto inside = fathom::test::make_tiny_decoder(with_layout(RopeLayout::kInterleaved));
  auto halves = fathom::test::make_tiny_decoder(with_layout(RopeLayout::kInterleavedInSplitOut));
  const Tensor positions = counted_positions(1, 16) + 3;
  const auto rotated = [&](DecoderLm& decoder, Role role, std::uint64_t seed) {
    return decoder.scheme(0).rotate(random_tensor({1, 16, 2, 8}, seed), role, positions, 19).transpose(1, 2);
  };
  const auto scores = [&](DecoderLm& decoder) {
    return rotated(decoder, Role::kQuery, 1).matmul(rotated(decoder, Role::kKey, 2).transpose(-1, -2));
  };
  CHECK(largest_difference(scores(*inside), scores(*halves)) < 1e-6);
  const Tensor plain = rotated(*inside, Role::kKey, 2), parted = rotated(*halves, Role::kKey, 2);
  CHECK(largest_difference(plain, parted) > 0.1);
  CHECK(torch::equal(interleaved_channels(parted.contiguous(), 3, 8), plain.contiguous()));
}

TEST_CASE("T-58: one token at two positions has one query on NoPE layers, two on RoPE layers", "[position][defects]") {
  DecoderConfig config = tiny_config("rope");
  config.layers[1].position = {};
  config.layers[1].position.kind = "nope";
  auto decoder = fathom::test::make_tiny_decoder(config);
  const Tensor q = random_tensor({1, 1, 4, 8}, 5).expand({1, 2, 4, 8}).contiguous();
  const Tensor positions = torch::tensor({{3, 17}}, torch::kInt64);
  const auto apart = [&](std::int64_t layer) {
    const Tensor turned = decoder->scheme(layer).rotate(q, Role::kQuery, positions, 18);
    return largest_difference(turned.select(1, 0), turned.select(1, 1));
  };
  CHECK(apart(0) > 0.1);
  CHECK(apart(1) == 0);
}

TEST_CASE("T-18: float32 keeps 70,000 distances apart in every head, Falcon's form is its bf16",
          "[position][defects][alibi]") {
  constexpr std::int64_t kFar = 70000;
  const DecoderConfig config = alibi_config(71);  // Falcon-7B's count: slopes of both kinds
  const auto scheme = fathom::position::make_position_scheme({&config, 0, nullptr, nullptr});
  const std::vector<double> slopes = fathom::rope::alibi_slopes(71);
  for (const std::int64_t head : {0, 35, 63, 64, 70}) {
    INFO("head " << head);
    const std::vector<float> row = last_row(*scheme, head, kFar);
    std::int64_t equal_neighbours = 0;
    for (std::size_t j = 1; j < row.size(); ++j) equal_neighbours += row[j] > row[j - 1] ? 0 : 1;
    CHECK(equal_neighbours == 0);
    CHECK(row.back() == 0);
    const double exact = -slopes[static_cast<std::size_t>(head)] * static_cast<double>(kFar - 1);
    CHECK(std::abs(static_cast<double>(row.front()) / exact - 1) < 2e-7);
  }
  const DecoderConfig falcon = alibi_config(71, {{"before_scale", "on"}});
  const auto rounded = fathom::position::make_position_scheme({&falcon, 0, nullptr, nullptr});
  const std::vector<float> row = last_row(*rounded, 0, 4096);
  const Tensor keys = torch::arange(4096, torch::kInt64).to(torch::kBFloat16);
  const Tensor expected = torch::tensor(static_cast<float>(slopes[0])).to(torch::kBFloat16) * keys;
  for (std::size_t j = 0; j < row.size(); ++j) {
    // Divided with the logits by sqrt(d_head) = sqrt(8).
    const float wanted = expected[static_cast<std::int64_t>(j)].to(torch::kFloat32).item<float>() *
                         static_cast<float>(1 / std::sqrt(8.0));
    if (row[j] != wanted) FAIL("key " << j << ": " << row[j] << " instead of " << wanted);
  }
  CHECK(std::set<float>(row.begin(), row.end()).size() < 1024);  // bf16 merges neighbours from 256 on
}

TEST_CASE("T-69: a bias is made for any length, or the length is refused", "[position][defects]") {
  for (const fathom::test::SchemeVariant& variant : fathom::test::scheme_variants()) {
    INFO(variant.text());
    auto decoder = fathom::test::make_tiny_decoder(tiny_config(variant));  // claims and was trained on 64 tokens
    if (!decoder->scheme(0).has_bias()) continue;
    for (const std::int64_t n : {65, 150}) {
      const auto most = decoder->scheme(0).max_positions();
      if (most && n > *most) continue;  // T-63 asks for the refusal
      const Tensor ids = mixed_ids(n);
      const Tensor longer = tiny_logits(*decoder, ids);
      CHECK(torch::isfinite(longer).all().item<bool>());
      // What comes later does not change what was there, so no bias of a wrong length was stretched over it.
      CHECK(largest_difference(longer.slice(1, 0, 64), tiny_logits(*decoder, ids.slice(1, 0, 64))) < 1e-4);
    }
  }
  const DecoderConfig config = alibi_config(4);
  const auto scheme = fathom::position::make_position_scheme({&config, 0, nullptr, nullptr});
  const std::vector<float> row = last_row(*scheme, 0, 65);  // slope 2^-2
  for (std::size_t j = 0; j < row.size(); ++j) CHECK(row[j] == -0.25F * static_cast<float>(64 - j));
}
