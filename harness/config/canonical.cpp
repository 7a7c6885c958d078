// The configuration written out again: canonical text, fingerprint, and the description that `list options` prints.

#include <fmt/format.h>

#include <functional>

#include "harness/config/parse.h"
#include "harness/core/hash.h"

namespace fathom::config {
namespace {

using KeepOption = std::function<bool(const std::string& section, const std::string& key)>;

/// `key = value` lines of one section; an option without a value (an empty list) is left out, as no text stands for it.
std::string canonical_lines(const std::string& section, const std::vector<OptionDescription>& options,
                            const KeepOption& keep) {
  std::string out;
  for (const OptionDescription& option : options) {
    if (option.default_value.empty() || !keep(section, option.name)) continue;
    out += fmt::format("{} = {}\n", option.name, option.default_value);
  }
  return out;
}

template <typename Section>
std::string canonical_section(const std::string& name, const Section& section, const KeepOption& keep) {
  const std::string lines = canonical_lines(name, describe_options(section), keep);
  return lines.empty() ? lines : fmt::format("\n[{}]\n{}", name, lines);
}

std::string canonical_model(const ModelSection& model, const KeepOption& keep) {
  std::string out = fmt::format("\n[{}]\n", model.name.empty() ? "model" : "model." + model.name);
  out += canonical_lines("model", describe_options(model), keep);
  for (const auto& [key, value] : model.plugin_options) out += fmt::format("{} = {}\n", key, value);
  return out;
}

std::string canonical_config(const RunConfig& config, const KeepOption& keep) {
  std::string out = canonical_lines("", describe_options(config), keep);
  for (const ModelSection& model : config.models) out += canonical_model(model, keep);
  out += canonical_section("train", config.train, keep);
  out += canonical_section("sweep", config.sweep, keep);
  for (const auto& [task, options] : config.task_options) {
    out += fmt::format("\n[task.{}]\n", task);
    for (const auto& [key, value] : options.values()) out += fmt::format("{} = {}\n", key, value);
  }
  out += canonical_section("prompt", config.prompt, keep);
  out += canonical_section("haystack", config.haystack, keep);
  out += canonical_section("engine", config.engine, keep);
  out += canonical_section("report", config.report, keep);
  return out;
}

}  // namespace

std::string canonical_text(const RunConfig& config) {
  return canonical_config(config, [](const std::string&, const std::string&) { return true; });
}

std::string fingerprint(const RunConfig& config) {
  return hash_hex(canonical_config(config, [](const std::string& section, const std::string& key) {
    if (section == "report") return false;
    if (section == "engine") return key != "threads";
    return !(section.empty() && key == "name");
  }));
}

std::vector<DescribedSection> describe_config() {
  return {{"", describe_options(RunConfig())},           {"model", describe_options(ModelSection())},
          {"train", describe_options(TrainSection())},   {"sweep", describe_options(SweepSection())},
          {"prompt", describe_options(PromptSection())}, {"haystack", describe_options(HaystackSection())},
          {"engine", describe_options(EngineSection())}, {"report", describe_options(ReportSection())}};
}

}  // namespace fathom::config
