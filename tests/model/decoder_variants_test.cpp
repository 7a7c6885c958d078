// What DecoderConfig can say about a block: the differentiable decoder and the fused one agree, and gradients reach
// every parameter.

#include <functional>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "tests/model/model_test_data.h"
#include "tests/support/catch.h"

using namespace fathom;  // NOLINT

namespace {

using checkpoint::DecoderConfig;
using checkpoint::QkNorm;

struct Variant {
  std::string name;
  std::function<void(DecoderConfig&)> change;
};

checkpoint::MoeSpec small_mixture(checkpoint::RouterKind router) {
  checkpoint::MoeSpec moe;
  moe.n_experts = 4;
  moe.n_chosen = 2;
  moe.d_ff = 6;
  moe.router = router;
  moe.renormalise = true;
  return moe;
}

void mix(DecoderConfig& config, const checkpoint::MoeSpec& moe) {
  for (checkpoint::LayerSpec& layer : config.layers) layer.moe = moe;
}

std::vector<Variant> variants() {
  using checkpoint::RouterKind;
  return {
      {"norms before and after", [](DecoderConfig& c) { c.post_norm = true; }},
      {"norms after only",
       [](DecoderConfig& c) {
         c.pre_norm = false;
         c.post_norm = true;
       }},
      {"side by side", [](DecoderConfig& c) { c.parallel_residual = true; }},
      {"side by side on one norm", [](DecoderConfig& c) { c.parallel_residual = c.shared_norm = true; }},
      {"normed embedding", [](DecoderConfig& c) { c.embedding_norm = true; }},
      {"normed heads", [](DecoderConfig& c) { c.qk_norm = QkNorm::kPerHead; }},
      {"heads normed apart", [](DecoderConfig& c) { c.qk_norm = QkNorm::kPerHeadOwn; }},
      {"queries and keys normed whole", [](DecoderConfig& c) { c.qk_norm = QkNorm::kWhole; }},
      {"unit heads", [](DecoderConfig& c) { c.qk_norm = QkNorm::kUnit; }},
      {"biases", [](DecoderConfig& c) { c.attention_bias = c.attention_out_bias = c.mlp_bias = c.head_bias = true; }},
      {"multipliers",
       [](DecoderConfig& c) {
         c.embedding_multiplier = 3;
         c.residual_multiplier = 0.5;
         c.logit_multiplier = 0.25;
         c.logit_softcap = 2;
         c.qkv_clip = 0.4;
       }},
      {"squared ReLU", [](DecoderConfig& c) { c.activation = checkpoint::Activation::kReluSquared; }},
      {"experts, softmax first", [](DecoderConfig& c) { mix(c, small_mixture(RouterKind::kSoftmaxThenTop)); }},
      {"experts, best first", [](DecoderConfig& c) { mix(c, small_mixture(RouterKind::kTopThenSoftmax)); }},
      {"experts, scaled input", [](DecoderConfig& c) { mix(c, small_mixture(RouterKind::kSigmoidOnInput)); }},
      {"experts in groups with a shared one",
       [](DecoderConfig& c) {
         checkpoint::MoeSpec moe = small_mixture(RouterKind::kSigmoid);
         moe.n_groups = 2;
         moe.n_chosen_groups = 1;
         moe.group_best = 2;
         moe.d_ff_shared = 5;
         moe.shared_gate = true;
         moe.scale = 2;
         mix(c, moe);
       }},
      {"clamped experts with biases",
       [](DecoderConfig& c) {
         c.gated_mlp = true;
         checkpoint::MoeSpec moe = small_mixture(RouterKind::kTopThenSoftmax);
         moe.clamp = 0.5;
         moe.router_bias = moe.expert_bias = true;
         mix(c, moe);
       }},
      {"experts that every token takes",
       [](DecoderConfig& c) {
         checkpoint::MoeSpec moe = small_mixture(RouterKind::kSigmoid);
         moe.n_always = 1;
         c.mlp_scale = true;
         mix(c, moe);
       }},
      {"latent keys and values",
       [](DecoderConfig& c) {
         for (checkpoint::LayerSpec& layer : c.layers) {
           layer.n_kv_heads = layer.n_heads;
           layer.latent = checkpoint::LatentSpec{6, 5, 4, 6, 1e-6};
           layer.position.side = checkpoint::RotarySide::kSuffix;
           layer.position.rotary_dim = 4;
         }
       }},
      {"short convolutions", [](DecoderConfig& c) { c.layers[1].conv_width = 3; }},
      {"normed residual",
       [](DecoderConfig& c) {
         c.residual_after_norm = true;
         c.layers[0].attention_carried = 0.7;
         c.layers[0].mlp_added = 1.3;
       }},
      {"lightning attention",
       [](DecoderConfig& c) {
         c.layers[0].n_kv_heads = 4;
         c.layers[0].linear = checkpoint::LinearSpec{};
       }},
      {"xLSTM", [](DecoderConfig& c) {
         checkpoint::LinearSpec linear;
         linear.kind = checkpoint::LinearKind::kMlstm;
         linear.d_key = 5;
         linear.gate_softcap = 3;
         c.layers[0].n_kv_heads = 4;
         c.layers[0].linear = linear;
       }}};
}

torch::Tensor run(model::DecoderLm& decoder, const torch::Tensor& ids) {
  model::ForwardInput input;
  input.ids = ids;
  input.positions = test::counted_positions(ids.size(0), ids.size(1));
  const torch::Tensor hidden = decoder.hidden(input);
  return decoder.logits(hidden.reshape({-1, hidden.size(-1)}));
}

}  // namespace

TEST_CASE("decoder variants: training and inference agree, and everything learns", "[model][variants]") {
  for (const Variant& variant : variants()) {
    INFO(variant.name);
    DecoderConfig config = test::tiny_config("rope");
    variant.change(config);
    const auto decoder = test::make_tiny_decoder(config);
    const torch::Tensor ids = (test::random_tensor({2, 21}, 5).abs() * 39).to(torch::kInt64);
    torch::Tensor fused;
    {
      const torch::NoGradGuard no_grad;
      fused = run(*decoder, ids);
    }
    const torch::Tensor trained = run(*decoder, ids);
    CHECK(test::largest_difference(trained, fused) < 2e-5 * (1 + fused.abs().max().item<double>()));
    trained.square().sum().backward();
    for (const auto& item : decoder->named_parameters()) {
      INFO(item.key());
      if (item.key().find("router_correction") != std::string::npos) continue;  // only chooses
      if (item.key().find(".experts.") != std::string::npos && !item.value().grad().defined()) continue;  // not chosen
      REQUIRE(item.value().grad().defined());
      CHECK(item.value().grad().isfinite().all().item<bool>());
    }
  }
}

TEST_CASE("decoder variants: what only inference can do says so in training", "[model][variants][errors]") {
  const torch::Tensor ids = torch::zeros({1, 4}, torch::kInt64);
  for (const auto& change : std::vector<std::function<void(checkpoint::LayerSpec&)>>{
           [](checkpoint::LayerSpec& layer) { layer.softcap = 5; },
           [](checkpoint::LayerSpec& layer) { layer.chunk = 3; },
           [](checkpoint::LayerSpec& layer) { layer.sinks = true; }}) {
    DecoderConfig config = test::tiny_config("rope");
    change(config.layers[1]);
    const auto decoder = test::make_tiny_decoder(config);
    CHECK_THROWS_AS(run(*decoder, ids), ModelError);
    const torch::NoGradGuard no_grad;
    CHECK(run(*decoder, ids).isfinite().all().item<bool>());
  }
}
