#pragma once
// Explicit registries: a table built from one `.inc` line per entry. Nothing registers itself, because a linker may
// drop the object file that would do it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom {

/// Entries with a member `name` (convertible to std::string_view), in the order of the table.
template <typename Entry>
class Registry {
 public:
  /// \param kind  what an entry is called in messages, for example "task".
  Registry(std::string kind, std::vector<Entry> entries) : kind_(std::move(kind)), entries_(std::move(entries)) {}

  const std::vector<Entry>& entries() const { return entries_; }

  const Entry* find(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (std::string_view(entry.name) == name) return &entry;
    }
    return nullptr;
  }

  /// \throws ConfigError  naming the nearest entry, if there is no such name.
  const Entry& at(std::string_view name) const {
    if (const Entry* entry = find(name)) return *entry;
    throw ConfigError(unknown_message(name));
  }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Entry& entry : entries_) out.emplace_back(std::string_view(entry.name));
    return out;
  }

  std::string unknown_message(std::string_view name) const {
    const auto near = nearest_name(name, names());
    std::string message = "unknown " + kind_ + " '" + std::string(name) + "'; ";
    if (near) message += "did you mean '" + *near + "'? ";
    return message + "known: " + join(names(), ", ");
  }

 private:
  std::string kind_;
  std::vector<Entry> entries_;
};

}  // namespace fathom
