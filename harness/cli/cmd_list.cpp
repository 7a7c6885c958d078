#include <fmt/format.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/presets.h"
#include "harness/cli/command_entries.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/position/position_registry.h"
#include "harness/rope/position_remap.h"
#include "harness/rope/rope_scaling.h"
#include "harness/scoring/scorer.h"
#include "harness/text/word_tokenizer.h"
#include "reports/report.h"
#include "tasks/tasks.h"

namespace fathom::cli {
namespace {

using nlohmann::ordered_json;

ordered_json options_json(const std::vector<OptionDescription>& options) {
  ordered_json json = ordered_json::array();
  for (const OptionDescription& option : options) {
    json.push_back({{"name", option.name},
                    {"type", option.type},
                    {"default", option.default_value},
                    {"allowed", option.allowed},
                    {"help", option.help}});
  }
  return json;
}

template <typename Entry>
ordered_json named_json(const Entry& entry) {
  return {{"name", entry.name}, {"version", entry.version}, {"summary", entry.summary}};
}

/// A closed vocabulary in which every task can be written: what `list` measures tasks with.
struct ListedContext {
  ListedContext() : tokenizer(all_pools(), false), assembler(tokenizer, text::PromptStyle::kBase, std::nullopt) {
    context.assembler = &assembler;
    context.pack = text::PromptPack::builtin("synthetic");
    context.n_samples = 1;
  }
  static text::VocabularySpec all_pools() {
    text::VocabularySpec spec;
    spec.n_cues = 100;
    spec.n_targets = 100;
    spec.n_digits = 10;
    return spec;
  }

  text::WordTokenizer tokenizer;
  text::PromptAssembler assembler;
  task::TaskContext context;
};

/// Metric, chance (0…1, of a blind guess and of naming a value in sight at the smallest length) and smallest length,
/// all in the closed vocabulary: other tokenizers need more tokens.
void add_task_facts(ordered_json& item, const task::TaskEntry& entry, const ListedContext& listed) {
  ordered_json smallest = ordered_json::object();
  for (const task::TaskVariant variant : {task::TaskVariant::kBalanced, task::TaskVariant::kRuler}) {
    if (variant == task::TaskVariant::kRuler && !entry.has_ruler_variant) continue;
    const auto task = entry.make(entry, variant, {}, listed.context);
    const std::int64_t length = task->smallest_length_tokens(1);
    smallest[std::string(task::to_string(variant))] = length;
    if (variant != task::TaskVariant::kBalanced) continue;
    item["metric"] = task::to_string(task->metric());
    item["chance"] = {{"blind", task->blind_guess()}, {"in_text", task->in_text_guess(length)}};
    ordered_json controls = ordered_json::array();
    for (const task::Control control : task->controls()) controls.push_back(task::to_string(control));
    item["controls"] = controls;
  }
  item["smallest_length"] = smallest;
}

ordered_json list_tasks() {
  const ListedContext listed;
  ordered_json json = ordered_json::array();
  for (const task::TaskEntry& entry : tasks::registry().entries()) {
    ordered_json item = named_json(entry);
    item["group"] = entry.group;
    item["variants"] = entry.has_ruler_variant ? ordered_json{"balanced", "ruler"} : ordered_json{"balanced"};
    add_task_facts(item, entry, listed);
    item["source"] = entry.source;
    item["options"] = options_json(entry.describe());
    json.push_back(item);
  }
  return json;
}

ordered_json list_positions() {
  ordered_json json = ordered_json::array();
  for (const position::PositionInfo& entry : position::position_infos().entries()) {
    ordered_json item = named_json(entry);
    item["source"] = entry.source;
    item["rotates"] = entry.rotates;
    item["options"] = options_json(entry.describe());
    json.push_back(item);
  }
  return json;
}

ordered_json list_scalings() {
  ordered_json json = ordered_json::array();
  for (const rope::RopeScalingEntry& entry : rope::scalings().entries()) {
    ordered_json item = named_json(entry);
    item["source"] = entry.source;
    item["options"] = options_json(entry.describe());
    json.push_back(item);
  }
  return json;
}

ordered_json list_remaps() {
  ordered_json json = ordered_json::array();
  for (const rope::PositionRemapEntry& entry : rope::position_remaps().entries()) {
    ordered_json item = named_json(entry);
    item["source"] = entry.source;
    item["options"] = options_json(entry.describe());
    json.push_back(item);
  }
  return json;
}

ordered_json list_models() {
  ordered_json json = ordered_json::array();
  for (const checkpoint::ArchitectureEntry& entry : checkpoint::architectures().entries()) {
    ordered_json formats = ordered_json::array();
    if (entry.config_from_json != nullptr) formats.push_back("safetensors");
    if (entry.config_from_gguf != nullptr) formats.push_back("gguf");
    json.push_back({{"name", entry.name},
                    {"gguf_name", entry.gguf_name},
                    {"summary", entry.summary},
                    {"formats", formats},
                    {"checked", entry.unchecked ? "by hand" : "against the reference"}});
  }
  return json;
}

std::string scaling_summary(const checkpoint::PositionSpec& position) {
  const checkpoint::ScalingSpec& scaling = position.scaling;
  if (position.rotary_dim == 0 || scaling.method == "none") return "none";
  std::string out = scaling.method;
  if (scaling.factor != 1) out += " x" + format_double(scaling.factor);
  return scaling.original_context > 0 ? fmt::format("{} from {}", out, scaling.original_context) : out;
}

ordered_json preset_json(const checkpoint::ModelPreset& preset) {
  const checkpoint::LayerSpec& layer = checkpoint::telling_layer(preset.config);
  const checkpoint::PositionSpec& position = layer.position;
  const bool rotates = position.rotary_dim > 0;
  const std::string claimed = preset.claimed > 0 ? std::to_string(preset.claimed) : "-";
  ordered_json out = {{"name", preset.name}};
  out["summary"] =
      fmt::format("{:<8} {:>3} layers, heads {}/{} x {}, rotary {}, theta {}, scaling {}, claimed {}", position.kind,
                  preset.config.n_layers(), layer.n_heads, layer.n_kv_heads, layer.d_head, position.rotary_dim,
                  rotates ? format_double(position.rope_base) : "-", scaling_summary(position), claimed);
  out["architecture"] = preset.config.architecture;
  out["position"] = position.kind;
  out["layers"] = preset.config.n_layers();
  out["n_heads"] = layer.n_heads;
  out["n_kv_heads"] = layer.n_kv_heads;
  out["d_head"] = layer.d_head;
  out["rotary_dim"] = position.rotary_dim;
  out["theta"] = rotates ? ordered_json(position.rope_base) : ordered_json(nullptr);
  out["scaling"] = scaling_summary(position);
  out["claimed_context"] = preset.claimed > 0 ? ordered_json(preset.claimed) : ordered_json(nullptr);
  out["source"] = preset.source;
  if (!preset.note.empty()) out["note"] = preset.note;
  return out;
}

ordered_json list_presets() {
  ordered_json json = ordered_json::array();
  for (const checkpoint::ModelPreset& preset : checkpoint::model_presets()) json.push_back(preset_json(preset));
  return json;
}

ordered_json list_scorers() {
  ordered_json json = ordered_json::array();
  for (const scoring::ScorerEntry& entry : scoring::scorers().entries()) json.push_back(named_json(entry));
  return json;
}

ordered_json list_reports() {
  ordered_json json = ordered_json::array();
  for (const reports::ReportEntry& entry : reports::registry().entries()) {
    json.push_back({{"name", entry.name}, {"summary", entry.summary}});
  }
  return json;
}

ordered_json list_options() {
  ordered_json json = ordered_json::array();
  for (const config::DescribedSection& section : config::describe_config()) {
    json.push_back({{"name", section.section.empty() ? "top level" : "[" + section.section + "]"},
                    {"options", options_json(section.options)}});
  }
  return json;
}

const std::map<std::string, ordered_json (*)()>& listings() {
  static const std::map<std::string, ordered_json (*)()> table = {
      {"tasks", list_tasks},     {"positions", list_positions}, {"scalings", list_scalings},
      {"remaps", list_remaps},   {"models", list_models},       {"presets", list_presets},
      {"scorers", list_scorers}, {"reports", list_reports},     {"options", list_options}};
  return table;
}

/// Texts without quotes, lists as "a, b", objects as "key value, key value".
std::string plain(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.3g}", value.get<double>());
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, item] : value.items()) {
    parts.push_back(value.is_object() ? replace_all(key, "_", " ") + " " + plain(item) : plain(item));
  }
  return parts.empty() ? "none" : join(parts, ", ");
}

void print_listing(const ordered_json& items) {
  for (const ordered_json& item : items) {
    std::string head = fmt::format("{:<20}", item.at("name").get<std::string>());
    if (item.contains("version")) head += fmt::format(" v{}", plain(item["version"]));
    if (item.contains("summary")) head += "  " + plain(item["summary"]);
    fmt::print("{}\n", head);
    for (const char* key : {"group", "variants", "metric", "chance", "smallest_length", "controls", "formats",
                            "checked", "source", "note"}) {
      if (item.contains(key)) fmt::print("{:<22}{}: {}\n", "", replace_all(key, "_", " "), plain(item[key]));
    }
    if (!item.contains("options")) continue;
    for (const ordered_json& option : item["options"]) {
      const std::string allowed = plain(option["allowed"]);
      fmt::print("  {:<24} {:<16} default {}{}\n{:<27}{}\n", plain(option["name"]), plain(option["type"]),
                 plain(option["default"]).empty() ? "(empty)" : plain(option["default"]),
                 allowed.empty() ? "" : fmt::format("; {}", allowed), "", plain(option["help"]));
    }
  }
}

/// The key table of configs/KEYS.md.
void print_markdown(const ordered_json& sections) {
  fmt::print("# Configuration keys\n\nWritten by `fathom list options --format markdown`.\n");
  for (const ordered_json& section : sections) {
    fmt::print("\n## {}\n\n| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n",
               plain(section["name"]));
    for (const ordered_json& option : section["options"]) {
      fmt::print("| `{}` | {} | {} | {} | {} |\n", plain(option["name"]), plain(option["type"]),
                 plain(option["default"]), plain(option["allowed"]), plain(option["help"]));
    }
  }
}

int run_list(const Arguments& arguments) {
  const std::string what = *arguments.get("WHAT");
  const auto found = listings().find(what);
  if (found == listings().end()) {
    std::vector<std::string> known;
    for (const auto& [name, function] : listings()) known.push_back(name);
    throw ConfigError(fmt::format("list: unknown '{}'; known: {}", what, join(known, ", ")));
  }
  const std::string format = arguments.get_or("format", arguments.has("json") ? "json" : "text");
  const ordered_json items = found->second();
  if (format == "json") {
    fmt::print("{}\n", items.dump(1));
  } else if (format == "markdown") {
    if (what != "options") throw ConfigError("list: --format markdown is for options only");
    print_markdown(items);
  } else {
    print_listing(items);
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::list_entry() {
  return {"list",
          "tasks, positions, scalings, remaps, models, presets, scorers, reports, options: what this build knows",
          "Printed from the registries themselves, so it can't be stale.",
          {"fathom list tasks", "fathom list scalings --json", "fathom list options --format markdown"},
          {{"WHAT", "tasks, positions, scalings, remaps, models, presets, scorers, reports or options"}},
          {{"format", "NAME", "text (default), json, or markdown (options only)", {"text", "json", "markdown"}},
           {"json", "", "same as --format json", {}}},
          run_list};
}

}  // namespace fathom::cli
