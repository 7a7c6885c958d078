#include "harness/checkpoint/prefill_cost.h"

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

/// Names and shapes alone.
class Shapes : public Checkpoint {
 public:
  Shapes(DecoderConfig config, std::vector<TensorInfo> tensors)
      : config_(std::move(config)), tensors_(std::move(tensors)) {}
  const DecoderConfig& config() const override { return config_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  void read_float32(std::string_view, std::int64_t, std::int64_t, float*) const override {
    throw ModelError("no weights");
  }
  std::unique_ptr<text::Tokenizer> make_tokenizer() const override { throw ModelError("no tokenizer"); }
  std::optional<text::ChatTemplate> chat_template() const override { return std::nullopt; }
  std::string fingerprint() const override { return "00"; }

 private:
  DecoderConfig config_;
  std::vector<TensorInfo> tensors_;
};

LayerSpec layer_of(std::optional<std::int64_t> window, std::optional<std::int64_t> chunk) {
  LayerSpec layer;
  layer.n_heads = 2;
  layer.d_head = 8;
  layer.window = window;
  layer.chunk = chunk;
  return layer;
}

}  // namespace

TEST_CASE("prefill cost: keys that a token sees, counted by hand", "[checkpoint][cost]") {
  const LayerSpec full = layer_of(std::nullopt, std::nullopt);
  CHECK(mean_visible_keys(full, 1) == 1);
  CHECK(mean_visible_keys(full, 4) == 2.5);                                     // 1 2 3 4
  CHECK(mean_visible_keys(layer_of(2, std::nullopt), 4) == 1.75);               // 1 2 2 2
  CHECK(mean_visible_keys(layer_of(8, std::nullopt), 4) == 2.5);                // hides nothing
  CHECK(mean_visible_keys(layer_of(std::nullopt, 3), 8) == (6 + 6 + 3) / 8.0);  // 1 2 3 1 2 3 1 2
  CHECK(mean_visible_keys(layer_of(std::nullopt, 4), 4) == 2.5);                // one chunk
  CHECK(mean_visible_keys(layer_of(512, std::nullopt), 32768) < 512);           // and hardly less
  CHECK(mean_visible_keys(layer_of(512, std::nullopt), 32768) > 507);
  LayerSpec linear = full;
  linear.softmax_attention = false;
  CHECK(mean_visible_keys(linear, 4) == 0);
}

TEST_CASE("prefill cost: matrices of the layers, the chosen experts, and the attention", "[checkpoint][cost]") {
  DecoderConfig config;
  config.layers = {layer_of(std::nullopt, std::nullopt), layer_of(2, std::nullopt)};
  config.layers[1].moe = MoeSpec();
  config.layers[1].moe->n_experts = 8;
  config.layers[1].moe->n_chosen = 2;
  std::vector<TensorInfo> tensors = {{"embedding.weight", {1000, 16}, "F32"},
                                     {"layers.0.attention.q.weight", {16, 16}, "F32"},
                                     {"layers.0.attention_norm.weight", {16}, "F32"},
                                     {"layers.1.mlp.shared.up.weight", {4, 16}, "F32"}};
  for (int expert = 0; expert < 8; ++expert) {
    tensors.push_back({"layers.1.mlp.experts." + std::to_string(expert) + ".up.weight", {4, 16}, "F32"});
  }
  // 256 + 64 + 2 of 8 experts of 64 multiply-adds; scores and sums of 16 channels with 2.5 and 1.75 keys.
  const PrefillFlops flops = prefill_flops_per_token(Shapes(config, tensors), 4);
  CHECK(flops.matrices == 2 * (256 + 64 + 128));
  CHECK(flops.attention == 2 * 2 * 16 * (2.5 + 1.75));
}

}  // namespace fathom::checkpoint
