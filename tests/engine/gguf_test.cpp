// Every family with a GGUF form, written out as llama.cpp's converter would and read back: the numbers must not change.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/checkpoint/architecture.h"
#include "harness/engine/probe.h"
#include "tests/engine/gguf_fixture.h"
#include "tests/engine/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/shared_dir.h"

using namespace fathom;          // NOLINT
using namespace fathom::engine;  // NOLINT

namespace {

using nlohmann::json;

/// Refused, with part of the message.
const std::map<std::string, const char*> kRefused = {{"falcon_alibi", "Falcon-RW has ALiBi, which no GGUF key says"}};

/// Models of families without a fixture of that kind.
const char* const kInvented[] = {
    R"({"model_type": "gemma", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 16, "intermediate_size": 48, "max_position_embeddings": 128,
        "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "vocab_size": 50,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}})",
    R"({"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_kv_heads": 2,
        "ffn_hidden_size": 48, "new_decoder_architecture": true, "bias": false, "alibi": false, "multi_query": true,
        "layer_norm_epsilon": 1e-5, "activation": "gelu", "max_position_embeddings": 128, "vocab_size": 50,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}})",
    R"({"model_type": "stablelm", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "intermediate_size": 48, "max_position_embeddings": 128, "layer_norm_eps": 1e-5,
        "use_parallel_residual": true, "use_qkv_bias": false, "vocab_size": 50, "hidden_act": "silu",
        "tie_word_embeddings": false, "partial_rotary_factor": 0.25,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}})",
    R"({"model_type": "gpt_neox", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "max_position_embeddings": 128, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
        "use_parallel_residual": false, "vocab_size": 50, "tie_word_embeddings": false, "attention_bias": true,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}})"};

/// Of float32 weights rearranged: sums in another order.
constexpr double kGgufTolerance = 5e-5;

/// Largest difference of a logit of the last position between the two forms.
double check_both_forms(const checkpoint::Checkpoint& source, const json& config, const TokenIds& ids,
                        test::GgufYear year = test::GgufYear::kNow) {
  const test::TempFolder folder;
  const auto gguf = test::written_out(source, config, folder, year);
  const ProbeResult own = test::probe_of(source, ids), other = test::probe_of(*gguf, ids);
  const double gap = test::largest_gap(own.last_logits, other.last_logits);
  CHECK(gap < kGgufTolerance);
  CHECK(test::largest_gap(own.next_logprobs, other.next_logprobs) < kGgufTolerance);
  return gap;
}

}  // namespace

TEST_CASE("gguf: a tiny checkpoint of every family gives the reference's logits from a GGUF file", "[engine][gguf]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/INDEX.md");
  const std::string root = test::shared_path("fixtures/tiny/");
  std::string table;
  std::set<std::string> covered = {"gemma"};  // by the test below
  for (const std::string& name : test::fixture_names(root)) {
    const std::string type = test::model_type_of(root + name);
    if (!test::has_gguf_form(type) || kRefused.count(name) != 0) continue;
    INFO("fixture " << name);
    try {
      const test::GgufFixture fixture(root + name, name);
      const double gap = check_both_forms(*fixture.checkpoint, fixture.config, fixture.ids);
      const test::TempFolder folder;
      const auto gguf = test::written_out(*fixture.checkpoint, fixture.config, folder);
      if (!fixture.reference.empty())
        CHECK(test::largest_gap(fixture.reference, test::probe_of(*gguf, fixture.ids).last_logits) < fixture.tolerance);
      covered.insert(test::gguf_architecture(type));
      char line[96];
      std::snprintf(line, sizeof line, "%s: %.1e\n", name.c_str(), gap);
      table += line;
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
  for (const checkpoint::ArchitectureEntry& entry : checkpoint::architectures().entries()) {
    if (entry.config_from_gguf != nullptr) CHECK(covered.count(std::string(entry.gguf_name)) == 1);
  }
  WARN("GGUF against safetensors, largest difference of a last logit\n" << table);
}

TEST_CASE("gguf: families and forms without a tiny checkpoint, with invented weights", "[engine][gguf]") {
  for (const char* text : kInvented) {
    const json config = json::parse(text);
    const std::string type = config["model_type"];
    INFO(type);
    const auto object = checkpoint::JsonObject::parse(text, "config.json", 8);
    const auto& entries = checkpoint::architectures().entries();
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == type; });
    REQUIRE(entry != entries.end());
    const test::RandomCheckpoint source(entry->config_from_json(object));
    check_both_forms(source, config, test::random_ids(60, 3));
  }
}

TEST_CASE("gguf: files of converters from before 2025", "[engine][gguf]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/INDEX.md");
  const std::string name = GENERATE("deepseek_v2", "deepseek_v3", "phi");
  INFO(name);
  const test::GgufFixture fixture(test::shared_path("fixtures/tiny/" + name), name);
  check_both_forms(*fixture.checkpoint, fixture.config, fixture.ids, test::GgufYear::kBefore2025);
}

TEST_CASE("gguf: what no key can say is refused", "[engine][gguf][errors]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/INDEX.md");
  for (const auto& [name, message] : kRefused) {
    INFO(name);
    const test::GgufFixture fixture(test::shared_path("fixtures/tiny/" + name), name);
    const test::TempFolder folder;
    try {
      test::written_out(*fixture.checkpoint, fixture.config, folder);
      FAIL_CHECK("opens");
    } catch (const ModelError& error) {
      CHECK(std::string(error.what()).find(message) != std::string::npos);
    }
  }
}

TEST_CASE("gguf: a model in three files is the model in one", "[engine][gguf][split]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/model.safetensors");
  const test::GgufFixture fixture(test::shared_path("fixtures/tiny/llama"), "llama");
  const test::TempFolder folder;
  const auto files = test::split_gguf_of(*fixture.checkpoint, fixture.config, 3);
  for (std::size_t i = 0; i < files.size(); ++i) {
    // As llama-gguf-split names them.
    char name[64];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.gguf", i + 1, files.size());
    std::ofstream(folder.file(name), std::ios::binary) << files[i];
  }
  const auto split = checkpoint::open_checkpoint(folder.file("model-00001-of-00003.gguf"));
  const double gap = test::largest_gap(fixture.reference, test::probe_of(*split, fixture.ids).last_logits);
  CHECK(gap < fixture.tolerance);
}
