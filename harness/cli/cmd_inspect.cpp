#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/inspect.h"
#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/position_settings.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

using nlohmann::ordered_json;

/// Layers that read alike are shown as one line.
std::string layer_line(const ordered_json& layer) {
  const auto text = [&layer](const char* key) {
    const ordered_json& value = layer.at(key);
    return value.is_null() ? std::string("-") : value.is_string() ? value.get<std::string>() : value.dump();
  };
  std::string line =
      fmt::format("{:<9} {:<12} rotary {:<4} heads {}/{} x {}  attention factor {}  softmax scale {}  window {}",
                  text("position"), text("layout"), text("rotary_dim"), text("n_heads"), text("n_kv_heads"),
                  text("d_head"), text("attention_factor"), text("softmax_scale"), text("window"));
  const ordered_json& inv_freq = layer.at("inv_freq");
  if (!inv_freq.empty()) {
    line += fmt::format("  inv_freq {:.6g} … {:.6g}", inv_freq.front().get<double>(), inv_freq.back().get<double>());
  }
  return line;
}

void print_inspection(const ordered_json& model) {
  fmt::print("{}  ({})\nclaimed context {}, trained context {}, {} layers\n", model.at("name").get<std::string>(),
             model.at("architecture").get<std::string>(), model.at("claimed_context").dump(),
             model.at("trained_context").is_null() ? "unknown" : model.at("trained_context").dump(),
             model.at("n_layers").dump());
  const auto& layers = model.at("layers");
  for (std::size_t begin = 0; begin < layers.size();) {
    std::size_t end = begin + 1;
    while (end < layers.size() && layer_line(layers[end]) == layer_line(layers[begin])) ++end;
    const std::string range =
        end - begin == 1 ? fmt::format("layer {}", begin) : fmt::format("layers {}-{}", begin, end - 1);
    fmt::print("{:<13} {}\n", range, layer_line(layers[begin]));
    begin = end;
  }
  for (const auto& warning : model.at("warnings")) fmt::print("warning: {}\n", warning.get<std::string>());
}

int run_inspect(const Arguments& arguments) {
  checkpoint::DecoderConfig config = checkpoint::read_config(find_model_path(*arguments.get("MODEL")));
  const std::int64_t seq_len =
      arguments.integer("seq-len", 1, INT64_C(1) << 40).value_or(std::max<std::int64_t>(1, config.claimed_context));
  config = apply_position_settings(config, arguments.all("set"), seq_len);
  const std::string json = checkpoint::inspect_json(config, seq_len);
  if (arguments.has("json")) {
    fmt::print("{}\n", json);
  } else {
    print_inspection(ordered_json::parse(json));
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::inspect_entry() {
  return {"inspect",
          "what was resolved from a checkpoint's configuration, layer by layer",
          "Reads a .gguf file, a checkpoint folder or a bare config.json (no weights needed) and shows position "
          "scheme, layout,\n"
          "rotary width, frequencies, attention factor and softmax scale in force at a sequence length.",
          {"fathom inspect SmolLM2-135M-Instruct.Q4_1.gguf", "fathom inspect config.json --seq-len 16384 --json",
           "fathom inspect config.json --set scaling=yarn --set scaling.factor=4"},
          {{"MODEL", ".gguf file, folder with config.json, or a config.json"}},
          {{"seq-len", "N", "sequence length that decides length-dependent methods (default: the claimed context)", {}},
           {"set", "KEY=VALUE", "rope.base, scaling or scaling.*; may be repeated", {}, OptionSpec::Count::kRepeated},
           {"json", "", "machine-readable", {}}},
          run_inspect};
}

}  // namespace fathom::cli
