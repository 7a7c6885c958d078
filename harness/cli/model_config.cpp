#include "harness/cli/model_config.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/presets.h"
#include "harness/cli/console.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {

checkpoint::DecoderConfig read_model_or_preset(const std::string& name) {
  if (!std::filesystem::exists(name)) {
    if (const checkpoint::ModelPreset* preset = checkpoint::find_model_preset(name)) return preset->config;
  }
  try {
    return checkpoint::read_config(find_model_path(name));
  } catch (const ConfigError& error) {
    std::vector<std::string> names;
    for (const checkpoint::ModelPreset& preset : checkpoint::model_presets()) names.push_back(preset.name);
    const auto near = nearest_name(name, names);
    throw ConfigError(fmt::format("{}; no preset has that name{} (`fathom list presets`)", error.what(),
                                  near ? fmt::format(", did you mean '{}'?", *near) : " either"));
  }
}

}  // namespace fathom::cli
