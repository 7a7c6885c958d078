#pragma once
// Cross-field rules that need no registry, with the key each complaint belongs to, so that parsing can add the line.

#include <string>
#include <vector>

#include "harness/config/run_config.h"

namespace fathom::config {

struct ConfigProblem {
  std::string key;   ///< full key, "model.smol.rope.base"
  std::string text;  ///< "[model.smol] rope.base = x is not a number"
};

/// Everything that is wrong whatever the command; an empty sweep is not, as training needs none.
std::vector<ConfigProblem> find_problems(const RunConfig& config);

}  // namespace fathom::config
