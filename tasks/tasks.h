#pragma once
// The table of all tasks, built from tasks.inc.

#include <string_view>
#include <vector>

#include "harness/core/registry.h"
#include "harness/task/task.h"

namespace fathom::tasks {

/// One function a line of tasks.inc; each is defined in the task's own file.
namespace entries {
#define FATHOM_TASK(name) task::TaskEntry name##_entry();
#include "tasks/tasks.inc"
#undef FATHOM_TASK
}  // namespace entries

const Registry<task::TaskEntry>& registry();

/// Expands a name or group from a config: a bare name means @balanced, "ruler" means every task of RULER @ruler unless
/// a variant is given. \throws ConfigError for an unknown name or a variant the task does not have.
std::vector<task::TaskName> expand_task_name(std::string_view name);

}  // namespace fathom::tasks
