#pragma once
// Prompt packs: the wording of every task, as INI text with slots (tasks specification 0.8).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fathom::text {

/// Values for the slots of one text, for example {{"key", "calm-river"}, {"value", "1234567"}}.
using SlotValues = std::vector<std::pair<std::string_view, std::string>>;

/// Immutable after parsing.
class PromptPack {
 public:
  /// Names of the packs that are compiled in: "en", "zh", "synthetic".
  static std::vector<std::string> builtin_names();
  /// \throws ConfigError  for an unknown name.
  static std::shared_ptr<const PromptPack> builtin(std::string_view name);
  /// \param source  file name for messages (`FILE:LINE:COLUMN`).
  /// A key that a pack with `base` leaves out comes from that pack, suffixed keys one by one. `+=` appends to a key
  /// given above it in the same section, not to the base. \throws ConfigError  naming the first problem: unknown
  /// section, key, suffix, slot or escape, missing required slot, key
  ///   given twice, `+=` without a key, missing key without a base, bad UTF-8, NUL, prefix ending in a blank.
  static std::shared_ptr<const PromptPack> parse(std::string_view text, const std::string& source);
  static std::shared_ptr<const PromptPack> load(const std::string& path);

  const std::string& name() const { return name_; }
  std::int64_t version() const { return version_; }
  /// Picks word lists, haystack templates and sentence splitter: "en", "zh" or "none".
  const std::string& language() const { return language_; }
  bool closed_vocabulary() const { return closed_vocabulary_; }
  /// Hex hash of the parsed content, base included; part of every sample's address.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Tasks that have a section of their own, `[section.task]`, sorted. This module knows no task names: whoever does
  /// checks these.
  const std::vector<std::string>& task_names() const { return task_names_; }

  /// The text of `section.key` after escapes, with `[section.task]` overriding `[section]` when `task` is not empty.
  /// Absent optional texts are empty. A suffix such as ".one" falls back to the plain key; the task's plain key goes
  /// before the section's suffixed one. Slots stay in place; every literal brace that could read as one was refused by
  /// the parser. \throws InvariantError  for a key that no pack can have.
  const std::string& text(std::string_view section, std::string_view key, std::string_view task = {}) const;
  /// True if the pack gives exactly this key, suffix included, for the task or for its section; the text may be empty.
  bool has(std::string_view section, std::string_view key, std::string_view task = {}) const;

  /// Replaces `{slot}` by its value. Values are not scanned for slots again.
  /// \throws InvariantError  for a slot without a value.
  static std::string render(std::string_view text, const SlotValues& values);
  /// Joins items by the pack's list rule (list_sep, list_two, list_last).
  std::string join_list(const std::vector<std::string>& items) const;

 private:
  friend class PromptPackBuilder;
  PromptPack() = default;

  std::string name_;
  std::int64_t version_ = 0;
  std::string language_;
  bool closed_vocabulary_ = false;
  std::string fingerprint_;
  std::vector<std::string> task_names_;
  std::map<std::string, std::string, std::less<>> texts_;  // "section.key" or "section.task/key"
};

}  // namespace fathom::text
