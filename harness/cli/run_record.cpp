#include "harness/cli/run_record.h"

#include "harness/cli/console.h"
#include "harness/core/hash.h"
#include "harness/engine/torch_language_model.h"

namespace fathom::cli {

std::vector<config::Setting> run_settings(const Arguments& arguments) {
  std::vector<config::Setting> settings;
  if (const auto preset = arguments.get("preset")) {
    settings.push_back({"sweep.samples", *preset == "smoke" ? "10" : *preset == "nightly" ? "50" : "500"});
  }
  for (const std::string& text : arguments.all("set")) settings.push_back(config::parse_setting(text));
  if (const auto device = arguments.get("device")) settings.push_back({"engine.device", *device});
  if (const auto dtype = arguments.get("dtype")) settings.push_back({"dtype", *dtype});
  if (const auto threads = arguments.get("threads")) settings.push_back({"engine.threads", *threads});
  if (const auto prompts = arguments.get("prompts")) settings.push_back({"prompt.pack", *prompts});
  return settings;
}

eval::RunRecord make_run_record(const config::RunConfig& config, const std::string& content_fingerprint) {
  eval::RunRecord record;
  record.name = config.name;
  record.canonical_config = config::canonical_text(config);
  record.config_fingerprint = hash_hex(config::fingerprint(config) + content_fingerprint);
  record.tool_version = FATHOM_VERSION;
  record.source_revision = FATHOM_SOURCE_REVISION;
  record.library_versions = engine::engine_versions();
  record.hardware = hardware_line();
  record.seed = config.seed;
  record.started_at = utc_now();
  return record;
}

}  // namespace fathom::cli
