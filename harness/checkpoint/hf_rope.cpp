#include "harness/checkpoint/hf_rope.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/checkpoint/hf_scaling.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

/// transformers' default where a file has no theta (Llama-2's has none).
constexpr double kHfDefaultTheta = 10000;

bool is_local(LayerKind kind) {
  return kind == LayerKind::kSliding;
}

/// Keys of a block that are read elsewhere or say nothing about text.
constexpr const char* kQuietKeys[] = {"llama_4_scaling_beta", "mrope_interleaved", "mrope_section"};

std::vector<std::string> nested_names(const JsonObject& block) {
  std::vector<std::string> out;
  for (const std::string& key : block.keys()) {
    if (block.is_object(key)) out.push_back(key);
  }
  return out;
}

/// The block of one layer type out of a nested one.
std::optional<JsonObject> nested_block(const JsonObject& block, const HfFamily& family, LayerKind kind,
                                       std::string& name) {
  for (const std::string& key : nested_names(block)) {
    const auto& known = {family.local_block, family.global_block, std::string("chunked_attention")};
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      block.fail(key, fmt::format("is an unknown layer type; known: {}, {}", family.local_block, family.global_block));
    }
  }
  const std::string wanted = is_local(kind) ? family.local_block : family.global_block;
  if (!block.is_object(wanted)) block.fail(wanted, "is missing, although other layer types have a block");
  name += "." + wanted;
  return block.object(wanted);
}

std::optional<std::int64_t> explicit_width(const JsonObject& config, std::int64_t d_head) {
  const auto width = config.integer("rotary_dim");
  if (!width) return std::nullopt;
  if (*width < 2 || *width > d_head || *width % 2 != 0) {
    config.fail("rotary_dim", fmt::format("= {} must be an even number in 2..{}", *width, d_head));
  }
  return width;
}

/// Python's int(d_head * partial), which truncates.
std::int64_t width_of_share(const JsonObject& owner, double partial, std::int64_t d_head) {
  if (!(partial > 0) || partial > 1) {
    owner.fail("partial_rotary_factor", fmt::format("= {} must be above 0 and at most 1", format_double(partial)));
  }
  const auto width = static_cast<std::int64_t>(static_cast<double>(d_head) * partial);
  if (width >= 2 && width % 2 == 0) return width;
  if (partial == 1) owner.fail("head_dim", fmt::format("= {} must be even and at least 2: all of it rotates", d_head));
  owner.fail("partial_rotary_factor", fmt::format("= {} of head_dim = {} rotates {} lanes; an even number is needed",
                                                  format_double(partial), d_head, width));
}

std::int64_t read_rotary_dim(const JsonObject& config, const JsonObject* block, const HfFamily& family,
                             std::int64_t d_head) {
  if (family.heads == "mla") {
    const std::int64_t width = config.required_integer("qk_rope_head_dim", 2, d_head);
    if (width % 2 != 0) config.fail("qk_rope_head_dim", fmt::format("= {} must be even", width));
    return width;
  }
  const JsonObject& owner = block != nullptr && block->has("partial_rotary_factor") ? *block : config;
  const auto partial = owner.real("partial_rotary_factor");
  std::optional<std::int64_t> width;
  if (family.reads_rotary_dim) width = explicit_width(config, d_head);
  if (!partial && width) return *width;
  const std::int64_t share = width_of_share(owner, partial.value_or(family.partial), d_head);
  if (width && !config.is_default("rotary_dim") && *width != share) {
    config.fail("rotary_dim", fmt::format("= {} contradicts partial_rotary_factor = {} of head_dim = {}, which is {}",
                                          *width, format_double(*partial), d_head, share));
  }
  return share;
}

double read_theta(const JsonObject& config, const JsonObject* block, const HfFamily& family, LayerKind kind) {
  const std::string& own = is_local(kind) ? family.local_theta : family.global_theta;
  const bool nested = block != nullptr && block->has("rope_theta");
  // A block for the whole model says nothing about the layers that have a key of their own.
  if (!own.empty() && !nested) return config.positive_or(own, kHfDefaultTheta);
  const double beside = config.positive_or("rope_theta", kHfDefaultTheta);
  return nested ? block->positive_or("rope_theta", beside) : beside;
}

/// True if the sliding layers turn apart from the rest: by a theta of the class, or by a block of their own that says
/// something else than the others'.
bool has_own_rotation(const JsonObject& config, const HfFamily& family, LayerKind kind) {
  if (!is_local(kind)) return false;
  if (!family.local_theta.empty()) return true;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto block = config.object(key);
    if (!block || !block->is_object(family.local_block) || !block->is_object(family.global_block)) continue;
    return block->object(family.local_block)->dump() != block->object(family.global_block)->dump();
  }
  return false;
}

void warn_unread(const JsonObject& config, const JsonObject& block, const std::string& name, const ScalingSpec& scaling,
                 std::vector<std::string>& warnings) {
  for (const char* key : kQuietKeys) block.has(key);
  for (const std::string& key : block.unread_keys()) {
    warnings.push_back(fmt::format("{}: {}.{} is not used by rope_type {}", config.where(), name, key, scaling.method));
  }
}

}  // namespace

std::optional<JsonObject> find_hf_rope_block(const JsonObject& config, const HfFamily& family, LayerKind kind,
                                             std::string& name) {
  const auto parameters = config.object("rope_parameters");
  const auto scaling = config.object("rope_scaling");
  if (parameters && !config.is_default("rope_parameters") && scaling && parameters->dump() != scaling->dump()) {
    config.fail("rope_parameters", "and rope_scaling differ; keep one of them");
  }
  name = scaling ? "rope_scaling" : "rope_parameters";
  // A null in place of the block is what the class fills in, too.
  const auto of_class =
      family.defaults && !scaling && !parameters ? family.defaults->object("rope_parameters") : std::nullopt;
  const auto& block = scaling ? scaling : parameters ? parameters : of_class;
  if (!block) return std::nullopt;
  if (!nested_names(*block).empty()) return nested_block(*block, family, kind, name);
  if (!scaling && family.local_theta == "rope_local_base_freq") {
    config.fail("rope_parameters", fmt::format("must hold a block for {} and one for {}; transformers ignores it as it "
                                               "is and takes what its class has",
                                               family.global_block, family.local_block));
  }
  // The older spelling of models with two thetas: the one block belongs to the layers that see everything.
  if (is_local(kind) && !family.local_theta.empty()) return std::nullopt;
  return block;
}

PositionSpec read_hf_rope(const JsonObject& config, const HfFamily& family, const HfRopeLayer& layer,
                          std::vector<std::string>& warnings) {
  std::string name;
  const std::optional<JsonObject> found = find_hf_rope_block(config, family, layer.kind, name);
  const JsonObject* block = found ? &*found : nullptr;
  PositionSpec position;
  position.layout = family.layout;
  position.side = family.side;
  if (family.heads == "mla" && config.flag("rope_interleave") == false && family.model_type != "deepseek_v2")
    position.layout = RopeLayout::kSplitHalf;  // the class of V2 knows no such switch
  position.rope_base = read_theta(config, block, family, layer.kind);
  position.own_rotation = has_own_rotation(config, family, layer.kind);
  position.scaling.original_context = layer.claimed_context;
  if (block != nullptr) {
    position.scaling = read_hf_scaling(config, *block, family, name, layer.claimed_context, warnings);
  }
  const bool whole_head = position.scaling.method == "proportional";
  position.rotary_dim = whole_head ? layer.d_head : read_rotary_dim(config, block, family, layer.d_head);
  if (block != nullptr) warn_unread(config, *block, name, position.scaling, warnings);
  return position;
}

}  // namespace fathom::checkpoint
