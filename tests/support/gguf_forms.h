#pragma once
// What llama.cpp's converter makes of each family: names, keys, rearrangements. For gguf_writer.cpp.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tests/support/gguf_writer.h"

namespace fathom::test {

/// The first of these keys that the configuration has, and that is not null.
inline std::optional<nlohmann::json> first_of(const nlohmann::json& config, const std::vector<const char*>& keys) {
  for (const char* key : keys) {
    if (config.contains(key) && !config[key].is_null()) return config[key];
  }
  return std::nullopt;
}

/// One file's metadata: keys get the architecture in front.
class GgufMetadata {
 public:
  GgufMetadata(GgufBuilder& builder, std::string architecture, const nlohmann::json& configuration, GgufYear of)
      : config(configuration), year(of), builder_(builder), architecture_(std::move(architecture)) {}

  void integer(const char* key, const std::vector<const char*>& names) {
    if (const auto value = first_of(config, names)) integer(key, value->get<std::int64_t>());
  }
  void integer(const char* key, std::int64_t value) { builder_.uint32(full(key), static_cast<std::uint32_t>(value)); }
  void real(const char* key, const std::vector<const char*>& names) {
    if (const auto value = first_of(config, names)) real(key, value->get<double>());
  }
  void real(const char* key, double value) { builder_.float32(full(key), static_cast<float>(value)); }
  void flag(const char* key, bool value) { builder_.flag(full(key), value ? 1 : 0); }
  void text(const char* key, const std::string& value) { builder_.text(full(key), value); }
  /// The window, and a flag for every layer that has it.
  void windows() {
    integer("attention.sliding_window", {"sliding_window"});
    std::vector<std::uint32_t> flags;
    for (const nlohmann::json& kind : config["layer_types"]) flags.push_back(kind == "sliding_attention" ? 1 : 0);
    builder_.uint32_list(full("attention.sliding_window_pattern"), flags);
  }

  const nlohmann::json& config;
  GgufYear year;

 private:
  std::string full(const char* key) const { return architecture_ + "." + key; }

  GgufBuilder& builder_;
  std::string architecture_;
};

/// What a family adds to the keys that all have.
using AddKeys = void (*)(GgufMetadata&);

enum class QkRows { kAsTheyAre, kPairsTogether };

/// What the converter makes of a family.
struct GgufForm {
  const char* architecture;
  AddKeys keys = nullptr;
  QkRows qk_rows = QkRows::kAsTheyAre;
  bool fused_qkv = false;                         ///< rows of queries, keys and values in one tensor
  bool fused_gate_up = false;                     ///< rows of gate and up in "ffn_up"
  std::map<std::string, std::string> names = {};  ///< other than the common ones
};

/// By `model_type`.
const std::map<std::string, GgufForm, std::less<>>& gguf_forms();

/// The tensor names that most files share, by canonical name without ".weight" and ".bias"; experts are one tensor.
const std::map<std::string, std::string>& common_gguf_names();

}  // namespace fathom::test
