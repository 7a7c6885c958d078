#include <map>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/gguf_config.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

using test::contains;
using test::model_error;
using test::TinyLlama;

std::vector<float> read_all(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  std::size_t n = 1;
  for (const std::int64_t size : tensor.shape) n *= static_cast<std::size_t>(size);
  std::vector<float> values(n);
  checkpoint.read_float32(tensor.name, 0, tensor.shape.front(), values.data());
  return values;
}

std::map<std::string, TensorInfo> by_name(const Checkpoint& checkpoint) {
  std::map<std::string, TensorInfo> out;
  for (const TensorInfo& tensor : checkpoint.tensors()) out[tensor.name] = tensor;
  return out;
}

std::unique_ptr<Checkpoint> open_bytes(const std::string& bytes) {
  // The map outlives the folder: the file's pages stay until the map goes.
  const test::TemporaryFolder folder("open");
  return open_checkpoint(folder.write("tiny.gguf", bytes));
}

std::string open_error(const std::string& bytes) {
  std::string message = model_error([&] { open_bytes(bytes); });
  const std::size_t at = message.find("tiny.gguf");
  return at == std::string::npos ? message : message.substr(at);
}

TEST_CASE("gguf llama: configuration and canonical tensors", "[checkpoint][open]") {
  TinyLlama llama;
  const auto checkpoint = open_bytes(llama.whole().bytes());
  const DecoderConfig& config = checkpoint->config();
  CHECK(config.name == "tiny");
  CHECK(config.architecture == "llama");
  CHECK(config.vocab_size == 5);
  CHECK(config.d_model == 4);
  CHECK(config.claimed_context == 64);
  CHECK(config.norm_eps == 0.5);
  CHECK(config.tied_head);
  CHECK_FALSE(config.attention_bias);
  REQUIRE(config.n_layers() == 1);
  CHECK(config.layers[0].d_head == 2);
  CHECK(config.layers[0].position.layout == RopeLayout::kInterleaved);
  CHECK(config.layers[0].position.rotary_dim == 2);
  CHECK(config.layers[0].position.rope_base == 16.0);

  const auto tensors = by_name(*checkpoint);
  CHECK(tensors.size() == 11);
  CHECK(tensors.at("token_embedding").shape == std::vector<std::int64_t>{5, 4});
  CHECK(tensors.at("layers.0.attention.k.weight").shape == std::vector<std::int64_t>{2, 4});
  CHECK(tensors.at("layers.0.mlp.down.weight").shape == std::vector<std::int64_t>{4, 3});
  CHECK(tensors.at("layers.0.mlp.down.weight").stored_type == "F32");
  CHECK(tensors.count("head.weight") == 0);
  CHECK(read_all(*checkpoint, tensors.at("token_embedding"))[19] == 19.0f);
  CHECK(read_all(*checkpoint, tensors.at("final_norm.weight"))[0] == 20.0f);

  float rows[8];
  checkpoint->read_float32("token_embedding", 1, 3, rows);
  CHECK(rows[0] == 4.0f);
  CHECK(rows[7] == 11.0f);
  float part[2];
  checkpoint->read_float32("final_norm.weight", 1, 3, part);
  CHECK(part[0] == 21.0f);
  CHECK(part[1] == 22.0f);
}

TEST_CASE("gguf llama: biases and a head of its own are seen", "[checkpoint][open]") {
  TinyLlama llama;
  llama.whole()
      .floats("output.weight", {4, 5}, std::vector<float>(20, 1.0f))
      .floats("blk.0.attn_q.bias", {4}, {1, 2, 3, 4})
      .floats("blk.0.attn_k.bias", {2}, {1, 2})
      .floats("blk.0.attn_v.bias", {2}, {1, 2});
  const auto checkpoint = open_bytes(llama.builder().bytes());
  CHECK_FALSE(checkpoint->config().tied_head);
  CHECK(checkpoint->config().attention_bias);
  CHECK_FALSE(checkpoint->config().attention_out_bias);
  CHECK(by_name(*checkpoint).count("head.weight") == 1);
  CHECK(by_name(*checkpoint).at("layers.0.attention.q.bias").shape == std::vector<std::int64_t>{4});
}

/// The scaling that a GGUF with these extra entries declares.
template <typename AddEntries>
ScalingSpec gguf_scaling(AddEntries add) {
  TinyLlama llama;
  add(llama.metadata().uint32("llama.attention.key_length", 8).uint32("llama.attention.value_length", 8));
  llama.builder().floats("token_embd.weight", {4, 5}, std::vector<float>(20, 1.0f));
  const test::TemporaryFolder folder("scaling");
  return read_config(folder.write("m.gguf", llama.builder().bytes())).layers[0].position.scaling;
}

TEST_CASE("gguf llama: scaling keys as llama.cpp means them", "[checkpoint][open]") {
  using test::GgufBuilder;
  const auto plain = gguf_scaling([](GgufBuilder&) {});
  CHECK(plain.method == "none");
  CHECK(plain.original_context == 64);
  CHECK(gguf_scaling([](GgufBuilder& b) { b.text("llama.rope.scaling.type", "linear"); }).method == "none");
  const auto linear = gguf_scaling(
      [](GgufBuilder& b) { b.text("llama.rope.scaling.type", "linear").float32("llama.rope.scaling.factor", 4); });
  CHECK(linear.method == "linear");
  CHECK(linear.factor == 4.0);
  const auto legacy = gguf_scaling([](GgufBuilder& b) { b.float32("llama.rope.scale_linear", 2); });
  CHECK(legacy.method == "linear");
  CHECK(legacy.factor == 2.0);
  const auto yarn = gguf_scaling([](GgufBuilder& b) {
    b.text("llama.rope.scaling.type", "yarn")
        .float32("llama.rope.scaling.factor", 4)
        .uint32("llama.rope.scaling.original_context_length", 16)
        .float32("llama.rope.scaling.yarn_beta_fast", 8);
  });
  CHECK(yarn.method == "yarn");
  CHECK(yarn.original_context == 16);
  CHECK(yarn.options.values() == std::map<std::string, std::string>{{"beta_fast", "8"}});
  const auto divisors = gguf_scaling([](GgufBuilder& b) { b.floats("rope_freqs.weight", {4}, {1, 1, 2, 8}); });
  CHECK(divisors.method == "divisors");
  CHECK(divisors.options.values().at("divisors") == "1,1,2,8");
  const auto longrope = gguf_scaling([](GgufBuilder& b) {
    b.text("llama.rope.scaling.type", "longrope")
        .uint32("llama.rope.scaling.original_context_length", 16)
        .floats("rope_factors_short.weight", {4}, {1, 1, 1, 1})
        .floats("rope_factors_long.weight", {4}, {1, 2, 3, 4});
  });
  CHECK(longrope.method == "longrope");
  CHECK(longrope.factor == 4.0);
}

TEST_CASE("gguf llama: YaRN's amplitude times the file's extra factor", "[checkpoint][open]") {
  using test::GgufBuilder;
  const auto yarn = gguf_scaling([](GgufBuilder& b) {
    b.text("llama.rope.scaling.type", "yarn")
        .float32("llama.rope.scaling.factor", 4)
        .uint32("llama.rope.scaling.original_context_length", 16)
        .float32("llama.rope.scaling.attn_factor", 0.5);
  });
  const double amplitude = std::stod(yarn.options.values().at("attention_factor"));
  CHECK_THAT(amplitude, Catch::Matchers::WithinAbs(0.5 * (0.1 * std::log(4.0) + 1), 1e-15));
}

TEST_CASE("gguf llama: what is missing or contradictory is named", "[checkpoint][open][errors]") {
  const auto with = [](auto change) {
    TinyLlama llama;
    llama.metadata();
    change(llama.builder());
    return open_error(llama.tensors().bytes());
  };
  using test::GgufBuilder;
  CHECK(open_error(GgufBuilder().bytes()) == "tiny.gguf: general.architecture is missing");
  const std::string unknown = open_error(GgufBuilder().text("general.architecture", "qwen9").bytes());
  CHECK(contains(unknown, "tiny.gguf: general.architecture = 'qwen9' is not supported; decoders of this build: "));
  CHECK(contains(unknown, ", gemma3, "));
  CHECK(contains(open_error(GgufBuilder().text("general.architecture", "jamba").bytes()),
                 "'jamba' cannot be run by this build; `fathom inspect` shows its positions"));
  CHECK(contains(open_error(GgufBuilder().text("general.architecture", "llama").bytes()),
                 "llama.block_count is missing"));
  CHECK(with([](GgufBuilder& b) { b.uint32("llama.expert_count", 8); }) ==
        "tiny.gguf: llama.expert_used_count is missing; an integer in 1..8 is needed");
  CHECK(contains(with([](GgufBuilder& b) { b.text("llama.rope.scaling.type", "su"); }),
                 "llama.rope.scaling.type = 'su' is not supported; supported: none, linear, yarn, longrope"));
  CHECK(contains(with([](GgufBuilder& b) { b.float32("llama.rope.scaling.factor", 0.5); }), "must be at least 1"));
  CHECK(contains(with([](GgufBuilder& b) { b.uint32("llama.rope.dimension_count", 3); }),
                 "llama.rope.dimension_count = 3 must be an even number in 2..2"));
  CHECK(contains(with([](GgufBuilder& b) { b.floats("blk.0.attn_sinks.weight", {1}, {1}); }),
                 "tensor 'blk.0.attn_sinks.weight' is unknown to architecture llama"));
  CHECK(contains(with([](GgufBuilder& b) {
                   b.floats("output.weight", {4, 4}, std::vector<float>(16));
                 }),
                 "tensor 'output.weight' has shape [4, 4], the configuration asks for [5, 4]"));
  CHECK(contains(with([](GgufBuilder& b) {
                   b.floats("blk.0.attn_q.bias", {4}, {1, 2, 3, 4});
                 }),
                 "has no tensor 'blk.0.attn_k.bias' (layers.0.attention.k.bias)"));
}

TEST_CASE("gguf llama: per-layer head counts", "[checkpoint][open]") {
  test::GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .uint32("llama.block_count", 2)
      .uint32("llama.context_length", 64)
      .uint32("llama.embedding_length", 8)
      .uint32_list("llama.feed_forward_length", {3, 5})
      .uint32_list("llama.attention.head_count", {4, 2})
      .uint32("llama.attention.key_length", 2)
      .uint32("llama.attention.value_length", 2)
      .float32("llama.attention.layer_norm_rms_epsilon", 0.5f)
      .floats("token_embd.weight", {8, 3}, std::vector<float>(24));
  const std::string bytes = builder.bytes();
  const DecoderConfig config = read_gguf_decoder(GgufFile::parse(bytes, "m.gguf"));
  CHECK(config.layers[0].n_heads == 4);
  CHECK(config.layers[1].n_heads == 2);
  CHECK(config.layers[1].n_kv_heads == 2);
  CHECK(config.layers[1].d_ff == 5);
}

TEST_CASE("checkpoint: rows that do not exist are refused", "[checkpoint][open][errors]") {
  TinyLlama llama;
  const auto checkpoint = open_bytes(llama.whole().bytes());
  float out[64];
  CHECK(contains(model_error([&] { checkpoint->read_float32("nothing", 0, 1, out); }), "has no tensor 'nothing'"));
  CHECK(contains(model_error([&] { checkpoint->read_float32("token_embedding", 0, 6, out); }),
                 "rows 0 to 6 of tensor 'token_embedding' do not exist; it has 5"));
  CHECK(contains(model_error([&] { checkpoint->read_float32("token_embedding", -1, 1, out); }), "do not exist"));
}

TEST_CASE("checkpoint: the fingerprint follows every byte", "[checkpoint][open]") {
  TinyLlama a;
  TinyLlama b;
  TinyLlama c;
  const std::string first = open_bytes(a.whole().bytes())->fingerprint();
  CHECK(first.size() == 32);
  CHECK(open_bytes(b.whole().bytes())->fingerprint() == first);
  c.metadata().flag("x", 1);
  CHECK(open_bytes(c.tensors().bytes())->fingerprint() != first);
}

TEST_CASE("checkpoint: paths that are no checkpoint are refused", "[checkpoint][open][errors]") {
  const test::TemporaryFolder folder("paths");
  CHECK(contains(model_error([&] { open_checkpoint(folder.path() + "/nothing"); }), "nothing does not exist"));
  CHECK(contains(model_error([&] { open_checkpoint(folder.path() + "/nothing.gguf"); }), "cannot read"));
  CHECK(contains(model_error([&] { open_checkpoint(folder.path()); }), "config.json: No such file"));
  CHECK(contains(model_error([&] { open_checkpoint(folder.write("weights.bin", "x")); }),
                 "is neither a .gguf file nor a folder with config.json and model.safetensors"));
}

TEST_CASE("hf folder: every tiny llama opens, and its tensors fit its configuration", "[checkpoint][open]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/model.safetensors");
  for (const char* name : {"llama", "llama_theta500k", "llama_yarn", "llama_longrope"}) {
    INFO(name);
    const auto checkpoint = open_checkpoint(test::shared_path(std::string("fixtures/tiny/") + name));
    CHECK(checkpoint->config().name == name);
    const auto tensors = by_name(*checkpoint);
    CHECK(tensors.size() == 2u * 9u + (checkpoint->config().tied_head ? 2u : 3u));
    CHECK(tensors.at("layers.1.attention.o.weight").shape == std::vector<std::int64_t>{32, 64});
    const auto expected =
        test::read_json_file(test::shared_path(std::string("fixtures/tiny/") + name + "/expected.json"));
    // The first hidden state is the embedding row of the last input id.
    const std::int64_t id = expected["input_ids"].back();
    std::vector<float> row(32);
    checkpoint->read_float32("token_embedding", id, id + 1, row.data());
    const auto first8 = expected["debug_hidden_last_pos_first8"][0].get<std::vector<double>>();
    for (std::size_t i = 0; i < first8.size(); ++i) {
      CHECK_THAT(static_cast<double>(row[i]), Catch::Matchers::WithinAbs(first8[i], 1e-6));
    }
  }
}

}  // namespace
}  // namespace fathom::checkpoint
