#include "harness/checkpoint/presets.h"

#include "harness/checkpoint/embedded_data.h"
#include "harness/checkpoint/hf_positions.h"
#include "harness/checkpoint/json_reader.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr const char* kPresetTable = "presets.json";
constexpr int kPresetMaxDepth = 8;

ModelPreset read_preset(const JsonObject& row) {
  ModelPreset preset;
  preset.name = row.required_text("name");
  preset.source = row.required_text("source");
  preset.note = row.text("note").value_or("");
  preset.claimed = row.integer("claimed").value_or(0);
  preset.declared = row.object("config").value().dump();
  preset.config = resolve_hf_positions(JsonObject::parse(preset.declared, "preset " + preset.name, kPresetMaxDepth));
  preset.config.name = preset.name;
  preset.config.claimed_context = preset.claimed;
  return preset;
}

std::vector<ModelPreset> read_presets() {
  const JsonObject table = JsonObject::parse(embedded_data(kPresetTable), kPresetTable, kPresetMaxDepth);
  const auto rows = table.object_list("presets").value();
  std::vector<ModelPreset> out;
  out.reserve(rows.size());
  for (const JsonObject& row : rows) out.push_back(read_preset(row));
  return out;
}

}  // namespace

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = read_presets();
  return presets;
}

const ModelPreset* find_model_preset(std::string_view name) {
  for (const ModelPreset& preset : model_presets()) {
    if (ascii_lower(preset.name) == ascii_lower(name)) return &preset;
  }
  return nullptr;
}

}  // namespace fathom::checkpoint
