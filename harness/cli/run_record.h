#pragma once
// How a run is recorded: what `run` and `generate` have in common.

#include <string>
#include <vector>

#include "harness/cli/command.h"
#include "harness/config/parse.h"
#include "harness/eval/records.h"

namespace fathom::cli {

/// The settings of --set and of the flags that stand for keys: settings like any other, so that they end in the stored
/// configuration. \throws ConfigError
std::vector<config::Setting> run_settings(const Arguments& arguments);

/// \param content_fingerprint  RunSession::content_fingerprint().
eval::RunRecord make_run_record(const config::RunConfig& config, const std::string& content_fingerprint);

}  // namespace fathom::cli
