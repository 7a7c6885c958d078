#pragma once
// Configurations from short texts, and the errors they give.

#include <string>
#include <vector>

#include "harness/config/parse.h"
#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::test {

/// Parses `text` as the file "t.ini"; `settings` as after --set.
inline config::RunConfig config_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  std::vector<config::Setting> parsed;
  for (const std::string& setting : settings) parsed.push_back(config::parse_setting(setting));
  return config::parse_config(text, "t.ini", parsed);
}

/// The message of the ConfigError that `text` gives; empty if it gives none.
inline std::string config_error(const std::string& text, const std::vector<std::string>& settings = {}) {
  try {
    config_of(text, settings);
  } catch (const ConfigError& error) {
    CHECK(error.exit_code() == ExitCode::kUsage);
    return error.what();
  }
  return "";
}

}  // namespace fathom::test
