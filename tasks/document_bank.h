#pragma once
// Questions with their documents from a user's file: SQuAD, HotpotQA, Natural Questions or own lines (tasks
// specification 2.2).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/core/random.h"
#include "tasks/documents.h"

namespace fathom::tasks {

/// Whether the documents of a bank may be used again when a length needs more than there are.
enum class DocumentRepeat { kOnce, kRepeat };

/// Which question a sample takes: in file order, or drawn without replacement.
enum class QuestionOrder { kFile, kDrawn };

/// Immutable.
class DocumentBank {
 public:
  /// One JSON value (SQuAD: an object with `data`; HotpotQA: an array) or one object a line (Natural Questions: `ctxs`;
  /// own: `gold` and `other`). Unknown keys are ignored.
  /// \throws DataError  `FILE[:LINE]: …`  for what is no JSON, a missing key, or no question that can be answered.
  static std::shared_ptr<const DocumentBank> load(const std::string& path);

  std::int64_t n_questions() const { return static_cast<std::int64_t>(questions_.size()); }
  /// Hex hash of the file.
  const std::string& fingerprint() const { return fingerprint_; }

  /// Number of the question that sample `index` asks.
  std::int64_t question_of(std::int64_t index, std::uint64_t seed, QuestionOrder order) const;
  /// Question `i` in file order. Its other documents are its own ones, then the rest in an order that `key` decides;
  /// none holds an answer.
  DocumentItem item(std::int64_t i, const RngKey& key, DocumentRepeat repeat) const;

  struct Question {
    std::string text;
    std::vector<std::string> answers;
    std::vector<std::size_t> gold;    ///< into documents
    std::vector<std::size_t> beside;  ///< that belong to the question
  };

 private:
  friend class DocumentBankReader;

  std::string path_;
  std::string fingerprint_;
  std::vector<Document> documents_;
  std::vector<Question> questions_;
};

}  // namespace fathom::tasks
