#include "harness/checkpoint/save.h"

#include <cmath>
#include <filesystem>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/safetensors_file.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

using test::contains;
using test::model_error;

/// No field holds its default, so that a forgotten one shows.
DecoderConfig unusual_config() {
  DecoderConfig config;
  config.name = "an \"odd\" näme";
  config.architecture = "fathom";
  config.vocab_size = 721;
  config.d_model = 48;
  config.claimed_context = 256;
  config.trained_context = 255;
  config.norm = NormKind::kLayer;
  config.norm_eps = 0.1 + 0.2;
  config.norm_bias = true;
  config.activation = Activation::kGeluTanh;
  config.gated_mlp = false;
  config.attention_bias = true;
  config.attention_out_bias = true;
  config.mlp_bias = true;
  config.tied_head = true;
  config.warnings = {"one", "two"};
  LayerSpec rope;
  rope.n_heads = 6;
  rope.n_kv_heads = 2;
  rope.d_head = 8;
  rope.d_ff = 100;
  rope.window = 16;
  rope.softmax_scale = 1.0 / 3;
  rope.position.kind = "rope_variant";
  rope.position.layout = RopeLayout::kInterleavedInSplitOut;
  rope.position.side = RotarySide::kSuffix;
  rope.position.rotary_dim = 4;
  rope.position.rope_base = 1234.5678901234567;
  rope.position.scaling.method = "yarn";
  rope.position.scaling.factor = 1.1;
  rope.position.scaling.original_context = 200;
  rope.position.scaling.length_policy = rope::LengthPolicy::kFrozen;
  rope.position.scaling.frozen_length = 512;
  rope.position.scaling.options = OptionSource("[model.scaling]", {{"beta_fast", "16"}, {"truncate", "off"}});
  rope.position.options = {{"extent", "64"}, {"kind", "x,y"}};
  LayerSpec alibi;
  alibi.n_heads = alibi.n_kv_heads = 3;
  alibi.d_head = 16;
  alibi.d_ff = 7;
  alibi.position.kind = "alibi";
  config.layers = {rope, alibi};
  return config;
}

TEST_CASE("fathom config: T-56: every field survives writing and reading, the layout too", "[checkpoint][save]") {
  const DecoderConfig config = unusual_config();
  const test::TemporaryFolder folder("save");
  const DecoderConfig got = read_config(folder.write("config.json", fathom_config_json(config)));
  CHECK(got.name == config.name);
  CHECK(got.architecture == config.architecture);
  CHECK(got.vocab_size == config.vocab_size);
  CHECK(got.d_model == config.d_model);
  CHECK(got.claimed_context == config.claimed_context);
  CHECK(got.trained_context == config.trained_context);
  CHECK(got.norm == config.norm);
  CHECK(got.norm_eps == config.norm_eps);
  CHECK(got.norm_bias == config.norm_bias);
  CHECK(got.activation == config.activation);
  CHECK(got.gated_mlp == config.gated_mlp);
  CHECK(got.attention_bias == config.attention_bias);
  CHECK(got.attention_out_bias == config.attention_out_bias);
  CHECK(got.mlp_bias == config.mlp_bias);
  CHECK(got.tied_head == config.tied_head);
  CHECK(got.warnings == config.warnings);
  REQUIRE(got.n_layers() == 2);
  const LayerSpec& a = got.layers[0];
  const LayerSpec& b = config.layers[0];
  CHECK(a.n_heads == b.n_heads);
  CHECK(a.n_kv_heads == b.n_kv_heads);
  CHECK(a.d_head == b.d_head);
  CHECK(a.d_ff == b.d_ff);
  CHECK(a.window == b.window);
  CHECK(a.softmax_scale == b.softmax_scale);
  CHECK(a.position.kind == b.position.kind);
  CHECK(a.position.layout == b.position.layout);
  CHECK(a.position.side == b.position.side);
  CHECK(a.position.rotary_dim == b.position.rotary_dim);
  CHECK(a.position.rope_base == b.position.rope_base);
  CHECK(a.position.options == b.position.options);
  const ScalingSpec& s = a.position.scaling;
  const ScalingSpec& t = b.position.scaling;
  CHECK(s.method == t.method);
  CHECK(s.factor == t.factor);
  CHECK(s.original_context == t.original_context);
  CHECK(s.length_policy == t.length_policy);
  CHECK(s.frozen_length == t.frozen_length);
  CHECK(s.options.where() == t.options.where());
  CHECK(s.options.values() == t.options.values());
  CHECK(got.layers[1].window == std::nullopt);
  CHECK(got.layers[1].softmax_scale == std::nullopt);
  CHECK(got.layers[1].position.kind == "alibi");
  CHECK(fathom_config_json(got) == fathom_config_json(config));
}

TEST_CASE("fathom config: temperature and chunk are written where they are set, and files without them are read",
          "[checkpoint][save]") {
  const test::TemporaryFolder folder("save");
  DecoderConfig config = unusual_config();
  const std::string older = fathom_config_json(config);
  CHECK(older.find("temperature") == std::string::npos);
  CHECK(older.find("chunk") == std::string::npos);
  config.layers[0].position.temperature = {rope::TemperatureKind::kLlama4, 0.1, 8192};
  config.layers[0].chunk = 64;
  config.layers[0].position.remap.method = "rerope";
  const std::string text = fathom_config_json(config);
  CHECK(text.find("rerope") == std::string::npos);  // a matter of test time
  const DecoderConfig got = read_config(folder.write("config.json", text));
  CHECK(got.layers[0].position.temperature.kind == rope::TemperatureKind::kLlama4);
  CHECK(got.layers[0].position.temperature.scale == 0.1);
  CHECK(got.layers[0].position.temperature.length == 8192);
  CHECK(got.layers[0].chunk == 64);
  CHECK(got.layers[1].position.temperature.kind == rope::TemperatureKind::kNone);
  CHECK(read_config(folder.write("config.json", older)).layers[0].chunk == std::nullopt);
}

std::string spoiled_error(const std::string& from, const std::string& to) {
  const test::TemporaryFolder folder("save");
  std::string text = fathom_config_json(unusual_config());
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  return model_error([&] { read_config(folder.write("config.json", text)); });
}

TEST_CASE("fathom config: missing, unknown and impossible fields are refused by key", "[checkpoint][save][errors]") {
  CHECK(contains(spoiled_error("\"d_model\"", "\"d_modell\""), "config.json: d_model is missing"));
  CHECK(contains(spoiled_error("\"d_model\": 48", "\"d_model\": 48, \"extra\": 1"), "extra is an unknown key"));
  CHECK(contains(spoiled_error("\"d_model\": 48", "\"d_model\": 0"), "d_model = 0 is outside 1.."));
  CHECK(contains(spoiled_error("\"norm\": \"layer\"", "\"norm\": \"batch\""),
                 "norm = 'batch' must be one of rms, layer"));
  CHECK(contains(spoiled_error("\"format_version\": 1", "\"format_version\": 2"),
                 "format_version = 2 cannot be read; this build reads 1"));
  CHECK(contains(spoiled_error("\"n_kv_heads\": 2", "\"n_kv_heads\": 4"), "layers[0] has n_heads = 6, n_kv_heads = 4"));
  CHECK(contains(spoiled_error("\"rotary_dim\": 4", "\"rotary_dim\": 5"), "layers[0].position.rotary_dim = 5"));
  CHECK(contains(spoiled_error("\"method\": \"yarn\"", "\"method\": \"yarnn\""), "unknown scaling method 'yarnn'"));
  CHECK(contains(spoiled_error("\"window\": 16", "\"window\": \"16\""),
                 "layers[0].window = \"16\" is not a 64-bit integer"));
  CHECK(contains(spoiled_error("\"where\"", "\"wheree\""), "layers[0].position.scaling.options.where is missing"));
}

TEST_CASE("save: a folder written here opens with its own tensor names", "[checkpoint][save]") {
  const test::TemporaryFolder folder("save");
  const std::vector<float> embedding = {1, 2, 3, 4, 5, 6};
  const std::vector<float> slopes = {0.5f, -0.25f};
  write_safetensors(folder.path() + "/model.safetensors",
                    {{"token_embedding", {3, 2}, embedding.data()}, {"layers.0.position.slopes", {2}, slopes.data()}});
  write_file_atomically(folder.path() + "/config.json", fathom_config_json(unusual_config()));
  const auto checkpoint = open_checkpoint(folder.path());
  CHECK(checkpoint->config().name == unusual_config().name);
  REQUIRE(checkpoint->tensors().size() == 2);
  float got[2];
  checkpoint->read_float32("token_embedding", 1, 2, got);
  CHECK(got[0] == 3.0f);
  CHECK(got[1] == 4.0f);
  checkpoint->read_float32("layers.0.position.slopes", 0, 2, got);
  CHECK(got[1] == -0.25f);
  CHECK(checkpoint->chat_template() == std::nullopt);
}

TEST_CASE("save: the data begins aligned and equal tensors give equal bytes", "[checkpoint][save]") {
  const test::TemporaryFolder folder("save");
  const std::vector<float> values = {1, 2, 3};
  for (const char* name : {"/a", "/b"}) write_safetensors(folder.path() + name, {{"w", {3}, values.data()}});
  const SafetensorsFile a = SafetensorsFile::open(folder.path() + "/a");
  const SafetensorsFile b = SafetensorsFile::open(folder.path() + "/b");
  CHECK(a.bytes() == b.bytes());
  CHECK((a.bytes().size() - 12) % 8 == 0);
  CHECK(a.metadata().at("format") == "pt");
}

TEST_CASE("save: a failed write leaves the old file and no rubbish", "[checkpoint][save][errors]") {
  const test::TemporaryFolder folder("save");
  const std::string path = folder.write("model.safetensors", "old");
  const float value = 1;
  CHECK_THROWS_AS(write_safetensors(path, {{"w", {1}, &value}, {"w", {1}, &value}}), DataError);
  CHECK_THROWS_WITH(write_safetensors(path, {{"w", {1}, &value}, {"w", {1}, &value}}),
                    "model: tensor name 'w' cannot be saved twice");
  CHECK(std::filesystem::file_size(path) == 3);
  CHECK_THROWS_AS(write_file_atomically(folder.path() + "/no/such/folder", "x"), DataError);
  std::filesystem::create_directory(folder.path() + "/taken");
  CHECK_THROWS_AS(write_file_atomically(folder.path() + "/taken", "x"), DataError);
  std::size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    INFO(entry.path());
    ++n_files;
  }
  CHECK(n_files == 2);
}

}  // namespace
}  // namespace fathom::checkpoint
