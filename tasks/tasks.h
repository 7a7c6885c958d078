#pragma once
// The table of all tasks, built from tasks.inc.

#include <string_view>
#include <vector>

#include "harness/core/registry.h"
#include "harness/task/task.h"

namespace fathom::tasks {

const Registry<task::TaskEntry>& registry();

/// Expands a name or group from a config: a bare name means @balanced, "ruler" means every task of RULER @ruler unless a variant is given.
/// \throws ConfigError for an unknown name or a variant the task does not have.
std::vector<task::TaskName> expand_task_name(std::string_view name);

}  // namespace fathom::tasks
