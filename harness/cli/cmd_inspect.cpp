#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/checkpoint/inspect.h"
#include "harness/cli/command_entries.h"
#include "harness/cli/model_config.h"
#include "harness/cli/position_settings.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kFullTurn = 6.283185307179586476925286766559;

std::string shown(const ordered_json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.6g}", value.get<double>()) : value.dump();
}

/// Lists would bury the rest: their ends and their length.
std::string shown_briefly(const ordered_json& value) {
  if (!value.is_array() || value.size() <= 4) return shown(value);
  return fmt::format("[{}, {}, …, {}: {} values]", shown(value[0]), shown(value[1]), shown(value.back()), value.size());
}

std::string shown_object(const ordered_json& object) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : object.items()) parts.push_back(fmt::format("{} {}", key, shown_briefly(value)));
  return join(parts, ", ");
}

std::string rotation_line(const ordered_json& layer) {
  const ordered_json& inv_freq = layer.at("inv_freq");
  double slowest = inv_freq.front().get<double>();
  for (const auto& theta : inv_freq) {
    if (theta.get<double>() > 0) slowest = std::min(slowest, theta.get<double>());
  }
  return fmt::format(
      "\n    resolved: inv_freq {:.6g} … {:.6g} ({} channels, longest period {:.4g} tokens), attention "
      "factor {}",
      inv_freq.front().get<double>(), inv_freq.back().get<double>(), inv_freq.size(), kFullTurn / slowest,
      shown(layer.at("attention_factor")));
}

/// Declared and resolved values of one layer; layers with the same text are shown together.
std::string layer_text(const ordered_json& layer) {
  const auto text = [&layer](const char* key) { return shown(layer.at(key)); };
  std::string out = fmt::format("  {}", text("position"));
  const bool rotates = !layer.at("inv_freq").empty();
  if (rotates) out += fmt::format(", {} of {} lanes, {}", text("rotary_dim"), text("d_head"), text("layout"));
  out += fmt::format("; heads {}/{} x {}; window {}; softmax scale {}", text("n_heads"), text("n_kv_heads"),
                     text("d_head"), text("window"), text("softmax_scale"));
  if (!layer.at("parameters").empty()) out += "\n    declared: " + shown_object(layer.at("parameters"));
  return rotates ? out + rotation_line(layer) : out;
}

/// "0-4, 6-10" for the layers of a group.
std::string shown_ranges(const std::vector<std::size_t>& layers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[end - 1] + 1) ++end;
    parts.push_back(end == i + 1 ? std::to_string(layers[i]) : fmt::format("{}-{}", layers[i], layers[end - 1]));
    i = end;
  }
  return join(parts, ", ");
}

void print_layers(const ordered_json& layers) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;  // in the order of their first layers
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string text = layer_text(layers[i]);
    const auto same = [&text](const auto& group) { return group.first == text; };
    auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) found = groups.insert(groups.end(), {text, {}});
    found->second.push_back(i);
  }
  for (const auto& [text, members] : groups) {
    fmt::print("{} {} ({} of {})\n{}\n", members.size() == 1 ? "layer" : "layers", shown_ranges(members),
               members.size(), layers.size(), text);
  }
}

void print_inspection(const ordered_json& model, std::int64_t seq_len) {
  fmt::print("{}  ({})\nclaimed context {}, trained context {}, {} layers; at {} tokens:\n",
             model.at("name").get<std::string>(), model.at("architecture").get<std::string>(),
             shown(model.at("claimed_context")),
             model.at("trained_context").is_null() ? "unknown" : model.at("trained_context").dump(),
             model.at("n_layers").dump(), seq_len);
  print_layers(model.at("layers"));
  for (const auto& warning : model.at("warnings")) fmt::print("warning: {}\n", warning.get<std::string>());
}

int run_inspect(const Arguments& arguments) {
  checkpoint::DecoderConfig config = read_model_or_preset(*arguments.get("MODEL"));
  const std::int64_t seq_len =
      arguments.integer("seq-len", 1, INT64_C(1) << 40).value_or(std::max<std::int64_t>(1, config.claimed_context));
  config = apply_position_settings(config, arguments.all("set"), seq_len);
  const std::string json = checkpoint::inspect_json(config, seq_len);
  if (arguments.has("json")) {
    fmt::print("{}\n", json);
  } else {
    print_inspection(ordered_json::parse(json), seq_len);
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::inspect_entry() {
  return {"inspect",
          "what was resolved from a checkpoint's configuration, layer by layer",
          "Reads a .gguf file, a checkpoint folder, a bare config.json (no weights needed) or a preset, and shows "
          "position scheme,\n"
          "layout, rotary width, frequencies, attention factor, windows and softmax scale in force at a sequence "
          "length,\n"
          "also of architectures whose decoder this build cannot run.",
          {"fathom inspect SmolLM2-135M-Instruct.Q4_1.gguf", "fathom inspect config.json --seq-len 16384 --json",
           "fathom inspect config.json --set scaling=yarn --set scaling.factor=4", "fathom inspect Llama-3.1-8B"},
          {{"MODEL", ".gguf file, folder with config.json, a config.json, or a preset (`fathom list presets`)"}},
          {{"seq-len", "N", "sequence length that decides length-dependent methods (default: the claimed context)", {}},
           {"set",
            "KEY=VALUE",
            "rope.base, scaling, remap or temperature, their options, rope.gguf, rope.layers or rope.table_dtype; may "
            "be repeated",
            {},
            OptionSpec::Count::kRepeated},
           {"json", "", "machine-readable", {}}},
          run_inspect};
}

}  // namespace fathom::cli
