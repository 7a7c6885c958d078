#pragma once
// Objects of key-value pairs from a user's file, after the files of lost in the middle (tasks specification 2.2): one
// JSON object a line with ordered_kv_records ([[key, value], …]), key and value.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tasks/pair_list.h"

namespace fathom::tasks {

using KeyValue = std::pair<std::string, std::string>;

/// Immutable.
class PairFile {
 public:
  /// The pairs of one line: the one that is asked for first, the others in the file's order.
  struct Object {
    std::vector<KeyValue> pairs;
  };

  /// Unknown keys are ignored. \throws DataError  `FILE:LINE: …`  for what is no JSON, a missing key, fewer than two
  /// pairs, a key given twice, or a pair asked for that is not among them.
  static std::shared_ptr<const PairFile> load(const std::string& path);

  std::int64_t size() const { return static_cast<std::int64_t>(objects_.size()); }
  /// Lines are used in turn.
  const Object& object(std::int64_t index) const { return objects_[static_cast<std::size_t>(index % size())]; }
  const std::string& path() const { return path_; }
  /// Hex hash of the file.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::string path_;
  std::string fingerprint_;
  std::vector<Object> objects_;
};

/// The pairs of one line.
std::shared_ptr<const PairHaystack> make_pair_file_haystack(
    std::shared_ptr<const PairFile> file, std::int64_t index, std::string separator,
    std::function<std::string(const std::string& key, const std::string& value)> render);

}  // namespace fathom::tasks
