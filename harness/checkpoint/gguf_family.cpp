#include "harness/checkpoint/gguf_family.h"

#include <algorithm>

#include "harness/checkpoint/embedded_data.h"
#include "harness/checkpoint/json_reader.h"
#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

constexpr const char* kGgufTable = "gguf_families.json";

GgufFamily read_gguf_family(const JsonObject& row, const std::string& architecture) {
  GgufFamily out;
  const auto count = [&row](const char* key) { return row.integer(key).value_or(0); };
  out.architecture = architecture;
  out.scheme = row.text("scheme").value_or("rope");
  out.latent = row.flag("latent").value_or(false);
  out.layout = row.text("layout") == "interleaved" ? RopeLayout::kInterleaved : RopeLayout::kSplitHalf;
  out.side = out.latent || row.text("side") == "suffix" ? RotarySide::kSuffix : RotarySide::kPrefix;
  out.window_pattern = count("window_pattern");
  out.default_window = count("default_window");
  out.windows_everywhere = row.text("windows") == "all";
  out.makers_window = count("makers_window");
  out.windows_unscaled = row.flag("windows_unscaled").value_or(false);
  out.rope_step = count("rope_step");
  out.softmax_interval = count("softmax_interval");
  out.chunk = count("chunk");
  out.windows_rotate_only = row.text("rotates") == "windows";
  out.swa_base = row.real("swa_base");
  out.softmax_scale = row.text("softmax_scale").value_or("default");
  out.published_layers = row.integer_list("published_layers").value_or(std::vector<std::int64_t>{});
  out.published_widths = row.integer_list("published_widths").value_or(std::vector<std::int64_t>{});
  out.temperature_scale = row.real("temperature_scale");
  out.temperature_length = count("temperature_length");
  out.max_alibi_bias = row.real("max_alibi_bias");
  out.expects_divisors = row.flag("expects_divisors").value_or(false);
  out.untruncated = row.flag("untruncated").value_or(false);
  return out;
}

std::vector<GgufFamily> read_gguf_families() {
  const JsonObject table = JsonObject::parse(embedded_data(kGgufTable), kGgufTable, 4);
  std::vector<GgufFamily> out;
  const auto rows = table.object_list("families").value();
  for (const JsonObject& row : rows) {
    const auto names = row.text_list("architectures").value();
    for (const std::string& name : names) out.push_back(read_gguf_family(row, name));
    FATHOM_CHECK(row.unread_keys().empty(), "gguf_families.json: a row has a key that nobody reads");
  }
  return out;
}

const std::vector<GgufFamily>& gguf_families() {
  static const std::vector<GgufFamily> families = read_gguf_families();
  return families;
}

}  // namespace

GemmaScale gemma_scale(const GgufFamily& family, std::int64_t n_layers, std::int64_t d_model) {
  if (family.softmax_scale != "gemma") return GemmaScale::kByHead;
  const auto look_up = [](const std::vector<std::int64_t>& published, std::int64_t value) {
    if (value == published.back()) return GemmaScale::kByWidth;
    const bool known = std::find(published.begin(), published.end(), value) != published.end();
    return known ? GemmaScale::kByHead : GemmaScale::kUnknown;
  };
  const GemmaScale by_layers = look_up(family.published_layers, n_layers);
  return by_layers != GemmaScale::kUnknown ? by_layers : look_up(family.published_widths, d_model);
}

const GgufFamily* find_gguf_family(std::string_view architecture) {
  for (const GgufFamily& family : gguf_families()) {
    if (family.architecture == architecture) return &family;
  }
  return nullptr;
}

std::vector<std::string> gguf_architectures() {
  std::vector<std::string> out;
  for (const GgufFamily& family : gguf_families()) out.push_back(family.architecture);
  return out;
}

}  // namespace fathom::checkpoint
