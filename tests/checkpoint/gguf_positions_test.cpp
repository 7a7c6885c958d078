// The resolver on GGUF metadata: what stands in the file, and what only the loader knows.

#include "harness/checkpoint/gguf_positions.h"

#include <cmath>

#include "harness/checkpoint/gguf_family.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

using test::contains;

/// Eight layers of four heads of 16, 8192 tokens.
test::GgufBuilder metadata(const std::string& arch) {
  test::GgufBuilder builder;
  builder.text("general.architecture", arch)
      .uint32(arch + ".block_count", 8)
      .uint32(arch + ".context_length", 8192)
      .uint32(arch + ".embedding_length", 64)
      .uint32(arch + ".attention.head_count", 4);
  return builder;
}

DecoderConfig resolve_gguf(const test::GgufBuilder& builder) {
  return resolve_gguf_positions(GgufFile::parse(builder.bytes(), "m.gguf"));
}

std::string gguf_error(const test::GgufBuilder& builder) {
  return test::model_error([&] { resolve_gguf(builder); });
}

TEST_CASE("gguf positions: every row of the table resolves", "[checkpoint][gguf]") {
  std::size_t n = 0;
  for (const std::string& arch : gguf_architectures()) {
    INFO(arch);
    test::GgufBuilder builder = metadata(arch);
    builder.float32(arch + ".attention.max_alibi_bias", 8).uint32(arch + ".attention.relative_buckets_count", 32);
    CHECK(resolve_gguf(builder).architecture == arch);
    ++n;
  }
  CHECK(n >= 60);
}

TEST_CASE("gguf positions: the layout is the architecture's", "[checkpoint][gguf]") {
  const auto layout = [](const char* arch) { return resolve_gguf(metadata(arch)).layers[0].position.layout; };
  for (const char* arch : {"llama", "command-r", "glm4", "granite", "ernie4_5"}) {
    INFO(arch);
    CHECK(layout(arch) == RopeLayout::kInterleaved);
  }
  for (const char* arch : {"qwen2", "qwen3moe", "gemma", "phi3", "gptneox", "falcon", "starcoder2", "olmo2"}) {
    INFO(arch);
    CHECK(layout(arch) == RopeLayout::kSplitHalf);
  }
  CHECK(contains(gguf_error(metadata("lama")), "general.architecture = 'lama' is not supported"));
}

TEST_CASE("gguf positions: Gemma-3's pattern, local theta and unscaled windows are the loader's",
          "[checkpoint][gguf]") {
  test::GgufBuilder builder = metadata("gemma3");
  builder.uint32("gemma3.attention.sliding_window", 512)
      .float32("gemma3.rope.freq_base", 1e6f)
      .text("gemma3.rope.scaling.type", "linear")
      .float32("gemma3.rope.scaling.factor", 8);
  const DecoderConfig config = resolve_gguf(builder);
  CHECK(config.layers[0].window == 512);
  CHECK(test::frequencies(config.layers[0]) == rope::default_inv_freq(16, 1e4));
  CHECK_FALSE(config.layers[5].window.has_value());
  std::vector<double> eighth = rope::default_inv_freq(16, 1e6);
  for (double& theta : eighth) theta /= 8;
  CHECK(test::worst_ratio(test::frequencies(config.layers[5]), eighth) < 1e-12);
  CHECK(config.layers[6].window == 512);
}

TEST_CASE("gguf positions: windows by list, by number, and where nothing uses them", "[checkpoint][gguf]") {
  test::GgufBuilder listed = metadata("gpt-oss");
  listed.uint32("gpt-oss.attention.sliding_window", 128)
      .uint32_list("gpt-oss.attention.sliding_window_pattern", {0, 1, 1, 1, 0, 0, 0, 0});
  CHECK_FALSE(resolve_gguf(listed).layers[0].window.has_value());
  CHECK(resolve_gguf(listed).layers[3].window == 128);
  CHECK(contains(gguf_error(metadata("gpt-oss")
                                .uint32("gpt-oss.attention.sliding_window", 128)
                                .uint32_list("gpt-oss.attention.sliding_window_pattern", {1})),
                 "has 1 entries for 8 layers"));
  const DecoderConfig unused = resolve_gguf(metadata("qwen2").uint32("qwen2.attention.sliding_window", 4096));
  CHECK_FALSE(unused.layers[0].window.has_value());
  CHECK(contains(unused.warnings.at(0), "sliding_window = 4096 is not used"));
}

TEST_CASE("gguf positions: Cohere2 and EXAONE-4 rotate where they slide", "[checkpoint][gguf]") {
  for (const std::string arch : {"cohere2", "exaone4"}) {
    const DecoderConfig config = resolve_gguf(metadata(arch).uint32(arch + ".attention.sliding_window", 64));
    INFO(arch);
    CHECK(config.layers[2].position.rotary_dim == 16);
    CHECK(config.layers[3].position.kind == "nope");
    CHECK(resolve_gguf(metadata(arch)).layers[3].position.rotary_dim == 16);
  }
}

TEST_CASE("gguf positions: Llama-4 has chunks, NoPE layers and a temperature on them", "[checkpoint][gguf]") {
  const DecoderConfig config = resolve_gguf(metadata("llama4"));
  CHECK(config.layers[0].chunk == 8192);
  CHECK(config.layers[0].position.temperature.kind == rope::TemperatureKind::kNone);
  CHECK(config.layers[3].position.kind == "nope");
  CHECK_FALSE(config.layers[3].chunk.has_value());
  CHECK(config.layers[3].position.temperature.scale == 0.1);
  CHECK(config.layers[3].position.temperature.length == 8192);
}

TEST_CASE("gguf positions: ALiBi, tables and buckets", "[checkpoint][gguf]") {
  CHECK(resolve_gguf(metadata("bloom")).layers[0].position.options.at("max_bias") == "8");
  CHECK(resolve_gguf(metadata("mpt").float32("mpt.attention.max_alibi_bias", 16))
            .layers[0]
            .position.options.at("max_bias") == "16");
  CHECK(contains(gguf_error(metadata("mpt")), "mpt.attention.max_alibi_bias = 0 must be above 0"));
  CHECK(resolve_gguf(metadata("gpt2")).layers[0].position.options.at("positions") == "8192");
  const auto t5 = resolve_gguf(metadata("t5").uint32("t5.attention.relative_buckets_count", 32)).layers[0];
  CHECK(t5.position.options.at("buckets") == "32");
  CHECK(t5.position.options.at("max_distance") == "128");
  CHECK(t5.softmax_scale == 1.0);
}

TEST_CASE("gguf positions: layers without KV heads are no softmax attention", "[checkpoint][gguf]") {
  const DecoderConfig config =
      resolve_gguf(metadata("nemotron_h").uint32_list("nemotron_h.attention.head_count_kv", {0, 0, 2, 0, 0, 0, 2, 0}));
  CHECK_FALSE(config.layers[0].softmax_attention);
  CHECK(config.layers[2].softmax_attention);
  CHECK(config.layers[2].position.kind == "nope");
  CHECK_FALSE(resolve_gguf(metadata("qwen3next")).layers[2].softmax_attention);
  CHECK(resolve_gguf(metadata("qwen3next")).layers[3].softmax_attention);
}

TEST_CASE("gguf positions: divisors of 1e30 freeze a channel", "[checkpoint][gguf]") {
  test::GgufBuilder builder = metadata("gemma4");
  builder.floats("rope_freqs.weight", {8}, {1, 1, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f});
  const std::vector<double> theta = test::frequencies(resolve_gguf(builder).layers[0]);
  CHECK(theta[1] == rope::default_inv_freq(16, 10000)[1]);
  CHECK(theta[2] * 1e7 < 1e-20);  // no turn worth a rounding error within ten million tokens
}

TEST_CASE("gguf positions: impossible values are refused by key", "[checkpoint][gguf][errors]") {
  CHECK(contains(gguf_error(metadata("qwen2").uint32("qwen2.rope.dimension_count", 15)),
                 "qwen2.rope.dimension_count = 15 must be an even number in 2..16"));
  // Found by fuzzing: a head this wide asked for a table of half a gigabyte.
  CHECK(contains(gguf_error(metadata("qwen2").uint32("qwen2.attention.key_length", 1U << 27U)),
                 "134217728 rotated lanes a head; at most 65536 are allowed"));
  CHECK(contains(gguf_error(metadata("qwen2").float32("qwen2.rope.freq_base", -1)),
                 "qwen2.rope.freq_base = -1 must be above 0"));
  CHECK(contains(gguf_error(metadata("qwen2").text("qwen2.rope.scaling.type", "spiral")),
                 "qwen2.rope.scaling.type = 'spiral' is not supported"));
  CHECK(contains(gguf_error(metadata("qwen2").uint32("qwen2.attention.head_count_kv", 3)), "does not divide"));
  CHECK(contains(gguf_error(metadata("qwen2").text("qwen2.rope.freq_base", "1e4")), "qwen2.rope.freq_base"));
}

}  // namespace
}  // namespace fathom::checkpoint
