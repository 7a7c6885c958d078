#include "harness/checkpoint/hf_family.h"

#include "harness/checkpoint/embedded_data.h"
#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

constexpr int kFamilyMaxDepth = 6;

RopeLayout parse_family_layout(const std::string& name) {
  for (const RopeLayout layout :
       {RopeLayout::kSplitHalf, RopeLayout::kInterleaved, RopeLayout::kInterleavedInSplitOut}) {
    if (to_string(layout) == name) return layout;
  }
  FATHOM_CHECK(false, "hf_families.json: layout " + name);
}

KeyNames read_key_names(const JsonObject& row, std::string_view key) {
  KeyNames out;
  const auto names = row.object(key);
  if (!names) return out;
  for (const std::string& name : names->keys()) out[name] = names->required_text(name);
  return out;
}

HfFamily read_family(const JsonObject& row, const std::string& model_type) {
  HfFamily family;
  family.model_type = model_type;
  family.defaults = row.object("defaults");
  const auto text = [&row](const char* key, std::string& value) { value = row.text(key).value_or(value); };
  text("text_model_type", family.text_model_type);
  text("scheme", family.scheme);
  text("heads", family.heads);
  text("layers", family.layers);
  text("rotates", family.rotates);
  text("softmax_scale", family.softmax_scale);
  text("temperature", family.temperature);
  text("local_theta", family.local_theta);
  text("global_theta", family.global_theta);
  text("local_block", family.local_block);
  text("global_block", family.global_block);
  family.layout = parse_family_layout(row.text("layout").value_or("split_half"));
  family.side = family.heads == "mla" || row.text("side") == "suffix" ? RotarySide::kSuffix : RotarySide::kPrefix;
  family.partial = row.real("partial").value_or(1);
  family.yarn_is_longrope = row.flag("yarn_is_longrope").value_or(false);
  family.whole_head = row.flag("whole_head").value_or(false);
  family.ignores_layer_types = row.flag("ignores_layer_types").value_or(false);
  family.full_layers_slide = row.flag("full_layers_slide").value_or(false);
  family.reads_rotary_dim = row.flag("reads_rotary_dim").value_or(false);
  family.yarn_attention_factor = row.real("yarn_attention_factor");
  family.names = read_key_names(row, "names");
  family.only = read_key_names(row, "only");
  family.local_names = read_key_names(row, "local_names");
  family.global_names = read_key_names(row, "global_names");
  return family;
}

std::vector<HfFamily> read_families() {
  const JsonObject table = JsonObject::parse(embedded_data("hf_families.json"), "hf_families.json", kFamilyMaxDepth);
  std::vector<HfFamily> out;
  const auto rows = table.object_list("families").value();
  for (const JsonObject& row : rows) {
    const auto model_types = row.text_list("model_types").value();
    for (const std::string& model_type : model_types) out.push_back(read_family(row, model_type));
    FATHOM_CHECK(row.unread_keys().empty(), "hf_families.json: a row has a key that nobody reads");
  }
  return out;
}

const std::vector<HfFamily>& hf_families() {
  static const std::vector<HfFamily> families = read_families();
  return families;
}

}  // namespace

const HfFamily* find_hf_family(std::string_view model_type) {
  for (const HfFamily& family : hf_families()) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

std::vector<std::string> hf_model_types() {
  std::vector<std::string> out;
  for (const HfFamily& family : hf_families()) out.push_back(family.model_type);
  return out;
}

}  // namespace fathom::checkpoint
