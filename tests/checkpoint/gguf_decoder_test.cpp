// What a GGUF file must say before its decoder is run: the rest is refused with the key.

#include "harness/checkpoint/gguf_config.h"

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/gguf_positions.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

using test::contains;
using test::GgufBuilder;

/// Metadata of a decoder with so many layers of four heads of 16, 8192 tokens, and an embedding.
GgufBuilder gguf_decoder_metadata(const std::string& arch, std::uint32_t n_layers = 2, std::uint32_t d_model = 32) {
  GgufBuilder builder;
  builder.text("general.architecture", arch)
      .uint32(arch + ".block_count", n_layers)
      .uint32(arch + ".context_length", 8192)
      .uint32(arch + ".embedding_length", d_model)
      .uint32(arch + ".feed_forward_length", 8)
      .uint32(arch + ".attention.head_count", 4)
      .uint32(arch + ".attention.key_length", 16)
      .uint32(arch + ".attention.value_length", 16)
      .float32(arch + ".attention.layer_norm_rms_epsilon", 1e-5f)
      .floats("token_embd.weight", {32, 3}, std::vector<float>(96));
  return builder;
}

DecoderConfig run_config(const GgufBuilder& builder) {
  const std::string bytes = builder.bytes();
  return read_gguf_decoder(GgufFile::parse(bytes, "m.gguf"));
}

std::string run_error(const GgufBuilder& builder) {
  return test::model_error([&] { run_config(builder); });
}

std::string open_error_of(const GgufBuilder& builder) {
  const test::TemporaryFolder folder("gguf_decoder");
  return test::model_error([&] { open_checkpoint(folder.write("m.gguf", builder.bytes())); });
}

TEST_CASE("gguf decoder: Gemma's softmax scale is known for published sizes, else it must be said",
          "[checkpoint][gguf]") {
  for (const std::string arch : {"gemma2", "gemma3"}) {
    INFO(arch);
    const std::string error = run_error(gguf_decoder_metadata(arch, 7));
    CHECK(contains(
        error,
        arch + ".attention.scale is missing: GGUF has no key for query_pre_attn_scalar, and 7 layers of width 32"));
    CHECK(contains(error, "set it to query_pre_attn_scalar^-0.5"));
    CHECK(run_config(gguf_decoder_metadata(arch, 7).float32(arch + ".attention.scale", 0.25)).layers[0].softmax_scale ==
          0.25);
    CHECK_FALSE(run_config(gguf_decoder_metadata(arch, 26)).layers[0].softmax_scale.has_value());  // d_head^-0.5
  }
  // 27B: model width / heads = 8.
  const auto scale = run_config(gguf_decoder_metadata("gemma2", 46)).layers[0].softmax_scale;
  CHECK_THAT(scale.value_or(0), Catch::Matchers::WithinAbs(1 / std::sqrt(8.0), 1e-15));
  CHECK(run_config(gguf_decoder_metadata("gemma3", 62)).layers[0].softmax_scale == scale);
  // A model that was cut or grown is known by its width: 5376 / 4 heads for one made from Gemma 3 27B.
  CHECK_FALSE(run_config(gguf_decoder_metadata("gemma3", 40, 3840)).layers[0].softmax_scale.has_value());
  const auto grown = run_config(gguf_decoder_metadata("gemma3", 80, 5376)).layers[0].softmax_scale;
  CHECK_THAT(grown.value_or(0), Catch::Matchers::WithinAbs(1 / std::sqrt(1344.0), 1e-15));
  // A picture of the positions is worth having even so.
  const auto resolved = gguf_decoder_metadata("gemma3", 7).bytes();
  CHECK(contains(resolve_gguf_positions(GgufFile::parse(resolved, "m.gguf")).warnings.at(0),
                 "none of the published sizes"));
}

TEST_CASE("gguf decoder: Gemma 2 slides over 4096 tokens where the file gives no window", "[checkpoint][gguf]") {
  const DecoderConfig config = run_config(gguf_decoder_metadata("gemma2", 26));
  CHECK(config.layers[0].window == 4096);
  CHECK_FALSE(config.layers[1].window.has_value());
}

TEST_CASE("gguf decoder: a window without a known pattern is every layer's, or refused", "[checkpoint][gguf]") {
  for (const std::string arch : {"llama", "mistral3", "phi3", "starcoder2"}) {
    INFO(arch);
    const DecoderConfig config = run_config(gguf_decoder_metadata(arch).uint32(arch + ".attention.sliding_window", 64));
    CHECK(config.layers[0].window == 64);
    CHECK(config.layers[1].window == 64);
    REQUIRE_FALSE(config.warnings.empty());
    CHECK(contains(config.warnings[0], "holds for every layer; llama.cpp ignores it"));
    // One as wide as the context hides nothing.
    const DecoderConfig wide = run_config(gguf_decoder_metadata(arch).uint32(arch + ".attention.sliding_window", 8192));
    CHECK_FALSE(wide.layers[0].window.has_value());
    CHECK(wide.warnings.empty());
  }
  const GgufBuilder bare = gguf_decoder_metadata("qwen2").uint32("qwen2.attention.sliding_window", 64);
  CHECK(contains(run_error(bare), "qwen2.attention.sliding_window = 64, but which layers have it is nowhere said"));
  const DecoderConfig listed = run_config(gguf_decoder_metadata("qwen2")
                                              .uint32("qwen2.attention.sliding_window", 64)
                                              .uint32_list("qwen2.attention.sliding_window_pattern", {0, 1}));
  CHECK_FALSE(listed.layers[0].window.has_value());
  CHECK(listed.layers[1].window == 64);
  const DecoderConfig none = run_config(gguf_decoder_metadata("qwen2")
                                            .uint32("qwen2.attention.sliding_window", 64)
                                            .uint32_list("qwen2.attention.sliding_window_pattern", {0, 0}));
  CHECK_FALSE(none.layers[1].window.has_value());
}

TEST_CASE("gguf decoder: StarCoder 2 without its maker's window warns", "[checkpoint][gguf]") {
  const DecoderConfig config = run_config(gguf_decoder_metadata("starcoder2"));
  REQUIRE(config.warnings.size() == 1);
  CHECK(contains(config.warnings[0], "the maker's configurations have 4096"));
}

TEST_CASE("gguf decoder: OLMo 3's windows rotate without YaRN", "[checkpoint][gguf]") {
  const DecoderConfig config = run_config(gguf_decoder_metadata("olmo2", 4)
                                              .uint32("olmo2.attention.sliding_window", 64)
                                              .text("olmo2.rope.scaling.type", "yarn")
                                              .float32("olmo2.rope.scaling.factor", 8)
                                              .uint32("olmo2.rope.scaling.original_context_length", 1024));
  CHECK(config.layers[0].window == 64);
  CHECK(config.layers[0].position.scaling.method == "none");
  CHECK(config.layers[3].position.scaling.method == "yarn");
}

TEST_CASE("gguf decoder: Phi-3's lists make LongRoPE without a type", "[checkpoint][gguf]") {
  const DecoderConfig config = run_config(gguf_decoder_metadata("phi3")
                                              .uint32("phi3.rope.scaling.original_context_length", 1024)
                                              .float32("phi3.rope.scaling.attn_factor", 1.25)
                                              .floats("rope_factors_short.weight", {8}, std::vector<float>(8, 1))
                                              .floats("rope_factors_long.weight", {8}, std::vector<float>(8, 2)));
  CHECK(config.layers[0].position.scaling.method == "longrope");
  CHECK(config.layers[0].position.scaling.original_context == 1024);
  CHECK(config.layers[0].position.scaling.options.values().at("attention_factor") == "1.25");
}

TEST_CASE("gguf decoder: the maker's attention_factor is honoured, and said to be", "[checkpoint][gguf]") {
  const DecoderConfig config = run_config(gguf_decoder_metadata("qwen2")
                                              .text("qwen2.rope.scaling.type", "yarn")
                                              .float32("qwen2.rope.scaling.factor", 4)
                                              .uint32("qwen2.rope.scaling.original_context_length", 1024)
                                              .float32("qwen2.rope.scaling.yarn_beta_fast", 32)
                                              .float32("qwen2.rope.scaling.yarn_attn_factor", 1.5));
  const PositionSpec& position = config.layers[0].position;
  CHECK(position.scaling.options.values().at("attention_factor") == "1.5");
  REQUIRE(position.gguf.has_value());  // beta_fast = 32 is what llama.cpp takes as well
  CHECK(contains(position.gguf->difference,
                 "attention_factor = 1.5 from qwen2.rope.scaling.yarn_attn_factor, which lcpp"));
}

TEST_CASE("gguf decoder: keys that change the computation are read by the family or refused",
          "[checkpoint][gguf][errors]") {
  const auto refused = [](const GgufBuilder& builder, const std::string& key) {
    return contains(open_error_of(builder), key + " is set, which this build does not support for this architecture");
  };
  CHECK(refused(gguf_decoder_metadata("llama").float32("llama.attn_logit_softcapping", 50), "attn_logit_softcapping"));
  CHECK(refused(gguf_decoder_metadata("qwen3").uint32("qwen3.expert_count", 8), "qwen3.expert_count"));
  CHECK(refused(gguf_decoder_metadata("qwen2").flag("qwen2.attention.causal", 0), "qwen2.attention.causal"));
  CHECK(refused(gguf_decoder_metadata("glm4").uint32_list("glm4.rope.dimension_sections", {8, 8, 0, 0}),
                "glm4.rope.dimension_sections"));
  CHECK(refused(gguf_decoder_metadata("llama").float32("llama.logit_scale", 0.5), "llama.logit_scale"));
  // What changes nothing passes: the next complaint is about tensors.
  const GgufBuilder neutral = gguf_decoder_metadata("llama")
                                  .float32("llama.logit_scale", 1)
                                  .flag("llama.attention.causal", 1)
                                  .uint32("llama.expert_count", 0)
                                  .float32("llama.attention.clamp_kqv", 0);
  CHECK(contains(open_error_of(neutral), "has no tensor"));
}

TEST_CASE("gguf decoder: what a family cannot do without is asked for", "[checkpoint][gguf][errors]") {
  CHECK(contains(open_error_of(gguf_decoder_metadata("command-r")), "command-r.logit_scale is missing"));
  CHECK(contains(open_error_of(gguf_decoder_metadata("cohere2")), "cohere2.logit_scale is missing"));
  CHECK(contains(open_error_of(gguf_decoder_metadata("gpt-oss")), "gpt-oss.attention.sliding_window is missing"));
  CHECK(contains(open_error_of(gguf_decoder_metadata("llama4").uint32("llama4.attention.sliding_window", 0)),
                 "stands for attention without chunks"));
  CHECK(contains(
      open_error_of(
          gguf_decoder_metadata("stablelm").floats("blk.0.attn_q_norm.weight", {16, 4}, std::vector<float>(64))),
      "norms of single heads are not supported"));
  CHECK(contains(open_error_of(gguf_decoder_metadata("llama")
                                   .uint32("llama.expert_count", 4)
                                   .uint32("llama.expert_used_count", 2)
                                   .uint32("llama.expert_gating_func", 7)),
                 "llama.expert_gating_func = 7 is not supported; supported: 1 (softmax), 2 (sigmoid)"));
  // A number of experts that no tensor bears out must not make a list of names.
  CHECK(contains(
      open_error_of(
          gguf_decoder_metadata("llama").uint32("llama.expert_count", 65536).uint32("llama.expert_used_count", 2)),
      "blk.0.ffn_up_exps.weight is missing, or not of 65536 experts"));
  std::string minus_five;
  test::append_number<std::int32_t>(minus_five, -5);
  CHECK(contains(open_error_of(gguf_decoder_metadata("deepseek2")
                                   .uint32("deepseek2.attention.kv_lora_rank", 8)
                                   .uint32("deepseek2.rope.dimension_count", 8)
                                   .uint32("deepseek2.expert_feed_forward_length", 8)
                                   .raw("deepseek2.leading_dense_block_count", 5, minus_five)),
                 "deepseek2.leading_dense_block_count = -5 is outside 0.."));
}

}  // namespace
}  // namespace fathom::checkpoint
