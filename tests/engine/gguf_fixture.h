#pragma once
// Tiny checkpoints in both forms: as Hugging Face has them, and written out as GGUF.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/checkpoint/checkpoint.h"
#include "harness/engine/probe.h"
#include "tests/engine/fixture.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temp_folder.h"

namespace fathom::test {

inline nlohmann::json read_fixture_json(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

/// Fixtures with what no GGUF key can say, and what to say instead. Their reference is then the same checkpoint in
/// Hugging Face's form under the same configuration.
inline const std::map<std::string, const char*>& gguf_edits() {
  static const std::map<std::string, const char*> edits = {
      {"gpt_oss", R"({"swiglu_limit": 7.0})"},
      {"llama4_text", R"({"no_rope_layers": [1, 1, 1, 0], "layer_types":
                        ["chunked_attention", "chunked_attention", "chunked_attention", "full_attention"]})"},
      {"llama_dynamic", R"({"rope_parameters": {"rope_type": "default", "factor": null}})"},
      {"smollm3", R"({"no_rope_layers": [1, 1, 1]})"}};
  return edits;
}

/// A fixture, with its configuration edited where GGUF can't say it.
class GgufFixture {
 public:
  GgufFixture(const std::string& folder, const std::string& name) : config(read_fixture_json(folder + "/config.json")) {
    const auto edit = gguf_edits().find(name);
    if (edit != gguf_edits().end()) config.merge_patch(nlohmann::json::parse(edit->second));
    std::ofstream(folder_.file("config.json")) << config.dump();
    std::filesystem::create_symlink(std::filesystem::absolute(folder + "/model.safetensors"),
                                    folder_.file("model.safetensors"));
    checkpoint = checkpoint::open_checkpoint(folder_.path().string());
    const nlohmann::json expected = read_fixture_json(folder + "/expected.json");
    ids = expected.at("input_ids").get<TokenIds>();
    if (edit == gguf_edits().end()) reference = expected.at("logits_last").get<std::vector<double>>();
    tolerance = expected.at("tolerance_abs");
  }

  nlohmann::json config;
  std::unique_ptr<checkpoint::Checkpoint> checkpoint;
  TokenIds ids;
  std::vector<double> reference;  ///< of the last position; empty where the configuration is edited
  double tolerance = 0;

 private:
  TempFolder folder_;
};

inline std::string model_type_of(const std::string& folder) {
  return read_fixture_json(folder + "/config.json")["model_type"];
}

inline engine::ProbeResult probe_of(const checkpoint::Checkpoint& checkpoint, const TokenIds& ids) {
  engine::EngineOptions options;
  options.dtype = "float32";
  return engine::probe_logits(engine::load_weights(checkpoint, options), checkpoint.config(), options, ids);
}

/// Infinite for lists of different lengths, and for what is no number.
template <typename A, typename B>
double largest_gap(const std::vector<A>& a, const std::vector<B>& b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double gap = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(gap <= largest)) largest = std::isfinite(gap) ? gap : INFINITY;
  }
  return largest;
}

/// The checkpoint as a GGUF file in the folder, opened.
inline std::unique_ptr<checkpoint::Checkpoint> written_out(const checkpoint::Checkpoint& source,
                                                           const nlohmann::json& config, const TempFolder& folder,
                                                           GgufYear year = GgufYear::kNow) {
  const std::string path = folder.file("model.gguf");
  std::ofstream(path, std::ios::binary) << gguf_of(source, config, year);
  return checkpoint::open_checkpoint(path);
}

}  // namespace fathom::test
