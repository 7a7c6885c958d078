// What a file holds beside the weights that its configuration asks for: used, passed over or refused.

#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/safetensors_file.h"
#include "harness/checkpoint/save.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;
using test::contains;
using test::model_error;

struct Values {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
using Weights = std::map<std::string, Values>;

/// A checkpoint that comes with the tests, with other tensors or another configuration.
class EditedCheckpoint {
 public:
  explicit EditedCheckpoint(const std::string& name) : folder_("surplus") {
    const std::string source = std::string(FATHOM_TEST_DIR) + "/engine/checkpoints/" + name;
    config = test::read_json_file(source + "/config.json");
    const SafetensorsFile file = SafetensorsFile::open(source + "/model.safetensors");
    for (const SafetensorsTensor& tensor : file.tensors()) {
      std::size_t n = 1;
      for (const std::int64_t size : tensor.shape) n *= static_cast<std::size_t>(size);
      Values& out = weights[tensor.name];
      out.shape = tensor.shape;
      out.values.resize(n);
      std::memcpy(out.values.data(), tensor.data, n * sizeof(float));
    }
  }

  std::unique_ptr<Checkpoint> open() const {
    std::vector<TensorToSave> list;
    for (const auto& [name, tensor] : weights) list.push_back({name, tensor.shape, tensor.values.data()});
    write_safetensors(folder_.path() + "/model.safetensors", list);
    folder_.write("config.json", config.dump());
    return open_checkpoint(folder_.path());
  }
  std::string error() const {
    return model_error([this] { open(); });
  }

  json config;
  Weights weights;

 private:
  test::TemporaryFolder folder_;
};

std::vector<std::string> names_of(const Checkpoint& checkpoint) {
  std::vector<std::string> out;
  for (const TensorInfo& info : checkpoint.tensors()) out.push_back(info.name);
  return out;
}

bool has_head(const Checkpoint& checkpoint) {
  const auto names = names_of(checkpoint);
  return std::find(names.begin(), names.end(), "head.weight") != names.end();
}

TEST_CASE("checkpoint: a head of the file's own is used, whatever the configuration ties", "[checkpoint][open]") {
  EditedCheckpoint edited("gemma2");
  REQUIRE(edited.open()->config().tied_head);
  Values head = edited.weights.at("model.embed_tokens.weight");
  SECTION("the embedding stored twice is the embedding") {
    edited.weights["lm_head.weight"] = head;
    const auto checkpoint = edited.open();
    CHECK(checkpoint->config().tied_head);
    CHECK_FALSE(has_head(*checkpoint));
  }
  SECTION("one other value makes it another matrix") {
    head.values.back() += 1;
    edited.weights["lm_head.weight"] = head;
    const auto checkpoint = edited.open();
    CHECK_FALSE(checkpoint->config().tied_head);
    REQUIRE(has_head(*checkpoint));
    const std::int64_t rows = head.shape[0], width = head.shape[1];
    std::vector<float> last(static_cast<std::size_t>(width));
    checkpoint->read_float32("head.weight", rows - 1, rows, last.data());
    CHECK(last.back() == head.values.back());
    checkpoint->read_float32("token_embedding", rows - 1, rows, last.data());
    CHECK(last.back() == edited.weights.at("model.embed_tokens.weight").values.back());
  }
  SECTION("alone it is the embedding as well") {
    edited.weights.erase("model.embed_tokens.weight");
    edited.weights["lm_head.weight"] = head;
    const auto checkpoint = edited.open();
    CHECK(checkpoint->config().tied_head);
    std::vector<float> first(static_cast<std::size_t>(head.shape[1]));
    checkpoint->read_float32("token_embedding", 0, 1, first.data());
    CHECK(first.front() == head.values.front());
    edited.weights.erase("lm_head.weight");
    CHECK(contains(edited.error(), "has no tensor 'model.embed_tokens.weight'"));
  }
  SECTION("of another shape it is refused") {
    head.shape[0] /= 2;
    head.values.resize(head.values.size() / 2);
    edited.weights["lm_head.weight"] = head;
    CHECK(contains(edited.error(), "tensor 'lm_head.weight' has shape"));
  }
}

TEST_CASE("checkpoint: T5's files of several years", "[checkpoint][open]") {
  EditedCheckpoint edited("t5_own_head");
  const double width = edited.config["d_model"].get<double>();
  SECTION("tied in the configuration, with a head and without the factor") {
    const auto checkpoint = edited.open();
    CHECK(has_head(*checkpoint));
    CHECK(checkpoint->config().logit_multiplier == 1);
  }
  SECTION("the class ties a file without a head, even where the configuration does not") {
    edited.weights.erase("lm_head.weight");
    edited.config["tie_word_embeddings"] = false;
    edited.config.erase("scale_decoder_outputs");
    const auto checkpoint = edited.open();
    CHECK(checkpoint->config().tied_head);
    CHECK(checkpoint->config().logit_multiplier == 1);
    edited.config["tie_word_embeddings"] = true;
    CHECK(edited.open()->config().logit_multiplier == 1 / std::sqrt(width));
  }
  SECTION("a table that nothing uses is passed over") {
    edited.weights["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = {{8, 3},
                                                                                                std::vector<float>(24)};
    CHECK(edited.error() == "no ModelError");
  }
  SECTION("one embedding for both halves") {
    edited.weights["encoder.embed_tokens.weight"] = edited.weights.at("shared.weight");
    CHECK(edited.error() == "no ModelError");
    edited.weights["encoder.embed_tokens.weight"].values[0] += 1;
    CHECK(contains(edited.error(), "tensor 'encoder.embed_tokens.weight' differs from shared.weight"));
  }
  SECTION("the activation that stands by itself counts first") {
    CHECK(edited.open()->config().activation == Activation::kGeluTanh);
    edited.config["dense_act_fn"] = "relu";
    CHECK(edited.open()->config().activation == Activation::kRelu);
    edited.config.erase("dense_act_fn");
    edited.config["feed_forward_proj"] = "gated-silu";
    CHECK(edited.open()->config().activation == Activation::kSilu);
  }
}

TEST_CASE("checkpoint: layers that predict further tokens are passed over where the file declares them",
          "[checkpoint][open]") {
  EditedCheckpoint edited("gemma2");
  const auto n_layers = edited.config["num_hidden_layers"].get<int>();
  edited.weights["model.layers." + std::to_string(n_layers) + ".eh_proj.weight"] = {{2}, {1, 2}};
  CHECK(contains(edited.error(), ".eh_proj.weight' is unknown to architecture gemma2"));
  edited.config["num_nextn_predict_layers"] = 1;
  CHECK(edited.error() == "no ModelError");
}

}  // namespace
}  // namespace fathom::checkpoint
