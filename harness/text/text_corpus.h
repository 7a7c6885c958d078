#pragma once
// A user's haystack: a file or a folder of text files, read once.

#include <memory>
#include <string>
#include <vector>

namespace fathom::text {

struct CorpusSentence {
  std::string separator;  ///< between this sentence and the one before: a blank, a newline, or nothing (first; Chinese)
  std::string text;
};

class TextCorpus {
 public:
  /// Reads a file, or a folder's text files (`.txt`, no extension, or a numeric one as in `GPL-3.0`) in sorted order;
  /// links to a file of the same folder are skipped; CRLF becomes LF. \throws DataError  for a missing path, an empty
  /// folder, a file that is not UTF-8 text (names it), or no sentence at all.
  static std::shared_ptr<const TextCorpus> load(const std::string& path);

  const std::vector<CorpusSentence>& sentences() const { return sentences_; }
  /// Hex hash of the whole content.
  const std::string& fingerprint() const { return fingerprint_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<CorpusSentence> sentences_;
  std::string fingerprint_;
};

}  // namespace fathom::text
