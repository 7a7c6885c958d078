#pragma once
// Typed access to the JSON of a checkpoint; every failure names the file and the key.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::checkpoint {

/// One JSON object, read key by key. A null value counts as absent.
class JsonObject {
 public:
  /// Parses a whole text whose value is an object.
  /// \param where      names the file in messages.
  /// \param max_depth  nesting allowed; the object itself is depth 0.
  /// \throws ModelError  for malformed JSON, a key that stands twice in one object, deeper nesting, or another kind of
  /// value.
  static JsonObject parse(std::string_view text, const std::string& where, int max_depth);

  const std::string& where() const { return where_; }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// All keys, sorted.
  std::vector<std::string> keys() const;
  /// Keys that nobody asked for.
  std::vector<std::string> unread_keys() const;
  /// The object as JSON text.
  std::string dump() const;

  /// The same object, asked by other names: `names` maps a key to the one that stands in the file. A key that is there
  /// under its own name is found as well. Messages name what the file holds.
  JsonObject with_names(std::map<std::string, std::string, std::less<>> names) const;
  /// The same object with the keys of `defaults` that it lacks; a null in the file stays a null.
  JsonObject with_defaults(const JsonObject& defaults) const;
  /// True if the value comes from with_defaults().
  bool is_default(std::string_view key) const { return defaulted_.count(key) != 0; }

  // Nothing if absent. \throws ModelError for a value of another kind.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;  ///< finite; integers count
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> integer_list(std::string_view key) const;
  std::optional<std::vector<double>> real_list(std::string_view key) const;
  std::optional<std::vector<std::string>> text_list(std::string_view key) const;
  std::optional<JsonObject> object(std::string_view key) const;
  std::optional<std::vector<JsonObject>> object_list(std::string_view key) const;
  // What kind of value a key has; does not count as asking for it.
  bool is_object(std::string_view key) const;
  bool is_text(std::string_view key) const;
  bool is_integer(std::string_view key) const;
  /// Absent, null, false, zero, or empty.
  bool is_off(std::string_view key) const;

  /// \throws ModelError  if absent, or outside low..high.
  std::int64_t required_integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  /// `fallback` if absent. \throws ModelError  outside low..high.
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high) const;
  /// \throws ModelError  if absent, or not above 0.
  double required_positive(std::string_view key) const;
  /// `fallback` if absent. \throws ModelError  if not above 0.
  double positive_or(std::string_view key, double fallback) const;
  /// \throws ModelError  if absent.
  std::string required_text(std::string_view key) const;

  /// \throws ModelError  "model: FILE: KEY PROBLEM".
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  struct Document;
  JsonObject(std::shared_ptr<const Document> document, const void* object, std::string where, std::string prefix);
  const void* find(std::string_view key) const;
  const void* find_list(std::string_view key) const;
  /// Name under which the file holds a key.
  std::string stored_name(std::string_view key) const;

  std::shared_ptr<const Document> document_;
  const void* object_;  ///< inside the document
  std::string where_;
  std::string prefix_;  ///< of the keys in messages, for example "rope_scaling."
  std::map<std::string, std::string, std::less<>> names_;
  std::set<std::string, std::less<>> defaulted_;
  mutable std::set<std::string, std::less<>> read_;  ///< as stored
};

}  // namespace fathom::checkpoint
