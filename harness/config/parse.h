#pragma once
// INI text and `--set` pairs to a RunConfig. Strict: unknown, repeated and unreadable keys are errors that name the
// nearest key.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/config/run_config.h"

namespace fathom::config {

/// `key=value` of the command line; a leading "model." may be left out; `model.NAME.key` reaches one model, `key` all.
struct Setting {
  std::string key;
  std::string value;
};
/// \throws ConfigError if there is no '='.
Setting parse_setting(std::string_view text);

/// \param file_name  for messages and the default run name.
/// \throws ConfigError  listing every problem found.
RunConfig parse_config(std::string_view ini_text, const std::string& file_name, const std::vector<Setting>& settings);
/// Reads the file. \throws ConfigError if it cannot be read.
RunConfig load_config(const std::string& path, const std::vector<Setting>& settings);

/// Cross-field rules that need no registry (empty sweep, base_lengths count, adaptive and its width, …); every problem
/// at once.
std::vector<std::string> validate(const RunConfig& config);

/// The whole configuration in one canonical INI text: every key, defaults included, fixed order. Parsing it gives the
/// same config.
std::string canonical_text(const RunConfig& config);
/// Hex hash of what shapes results: canonical text without name, [report] and [engine] threads.
std::string fingerprint(const RunConfig& config);

/// Every key with type, default, allowed values and meaning, section by section.
struct DescribedSection {
  std::string section;  ///< "model", "train", …; empty for the top level
  std::vector<OptionDescription> options;
};
std::vector<DescribedSection> describe_config();

}  // namespace fathom::config
