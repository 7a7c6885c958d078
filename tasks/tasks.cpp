#include "tasks/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "harness/core/error.h"

namespace fathom::tasks {
namespace {

constexpr std::string_view kRulerGroup = "ruler";

std::optional<task::TaskVariant> parse_task_variant(std::string_view text) {
  for (const task::TaskVariant variant : {task::TaskVariant::kBalanced, task::TaskVariant::kRuler}) {
    if (text == task::to_string(variant)) return variant;
  }
  return std::nullopt;
}

std::string unknown_task_message(std::string_view name) {
  std::vector<std::string> known = registry().names();
  for (const task::TaskEntry& entry : registry().entries()) {
    if (std::string group(entry.group); std::find(known.begin(), known.end(), group) == known.end())
      known.push_back(group);
  }
  known.emplace_back(kRulerGroup);
  std::string message = fmt::format("unknown task or group '{}'; ", name);
  if (const auto near = nearest_name(name, known)) message += fmt::format("did you mean '{}'? ", *near);
  return message + "known: " + join(known, ", ");
}

}  // namespace

const Registry<task::TaskEntry>& registry() {
  static const Registry<task::TaskEntry> table("task", {
#define FATHOM_TASK(name) entries::name##_entry(),
#include "tasks/tasks.inc"
#undef FATHOM_TASK
                                                       });
  return table;
}

std::vector<task::TaskName> expand_task_name(std::string_view name) {
  const std::size_t at = name.find('@');
  const std::string_view base = name.substr(0, at);
  std::optional<task::TaskVariant> variant;
  if (at != std::string_view::npos) {
    variant = parse_task_variant(name.substr(at + 1));
    if (!variant)
      throw ConfigError(
          fmt::format("unknown variant '{}' of task '{}'; known: balanced, ruler", name.substr(at + 1), base));
  }
  if (!variant) variant = base == kRulerGroup ? task::TaskVariant::kRuler : task::TaskVariant::kBalanced;

  std::vector<const task::TaskEntry*> chosen;
  if (const task::TaskEntry* entry = registry().find(base)) {
    chosen.push_back(entry);
  } else {
    for (const task::TaskEntry& each : registry().entries()) {
      if (each.group == base || (base == kRulerGroup && each.has_ruler_variant)) chosen.push_back(&each);
    }
  }
  if (chosen.empty()) throw ConfigError(unknown_task_message(base));
  std::vector<task::TaskName> names;
  for (const task::TaskEntry* entry : chosen) {
    if (*variant == task::TaskVariant::kRuler && !entry->has_ruler_variant) {
      throw ConfigError(fmt::format("task '{}' has no variant 'ruler'; it has balanced", entry->name));
    }
    names.push_back({std::string(entry->name), *variant});
  }
  return names;
}

}  // namespace fathom::tasks
