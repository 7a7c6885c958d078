#pragma once
// Questions on documents: what qa and mdqa have in common (tasks specification 1.5, 2.2).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/random.h"
#include "harness/task/haystack.h"
#include "harness/task/needle_draft.h"
#include "harness/task/prompt_build.h"
#include "harness/task/sample_key.h"
#include "harness/task/task.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {

struct Document {
  std::string title;
  std::string text;
  /// What it says where the gold document has the answer; nothing if it says nothing of the kind.
  std::optional<std::string> rival;
};

/// Documents that do not hold the answer. Document j never depends on how many are used. Thread-safe.
class DocumentList {
 public:
  virtual ~DocumentList() = default;
  virtual Document at(std::int64_t j) const = 0;
  virtual std::optional<std::int64_t> size() const = 0;
  virtual std::string limit_reason() const = 0;
};

/// One question with everything that belongs to it.
struct DocumentItem {
  std::string question;
  std::vector<std::string> references;  ///< wordings of the one answer
  std::vector<Document> gold;
  std::shared_ptr<const DocumentList> others;
  ValuePool answers;  ///< what the right one is drawn from
};

/// One-fact questions ask for an attribute that every document states; two-fact questions for the town of the yard that
/// a ship left.
enum class QuestionKind { kOneFact, kTwoFacts };

/// Invented towns, ships and yards ([docs] of the pack). The key's stream `facts` decides question and answer.
/// \param fixed_text  other text of the prompt, in which the answer must not stand.
DocumentItem make_invented_item(const task::TaskContext& context, QuestionKind kind, const task::SampleKeyParts& key,
                                const std::string& fixed_text);

/// Expected score of an answer of the right form drawn blindly, over the questions there are.
double blind_document_guess(const task::TaskContext& context, QuestionKind kind);

/// How a numbered document is written in one task's pack section.
struct DocumentStyle {
  std::string pattern;  ///< slots {i} {title} {text}
  std::string separator;

  std::string render(const Document& document, std::int64_t number) const;
};

/// What a task adds to an item to make a sample of it.
struct DocumentPlan {
  DocumentItem item;
  DocumentStyle style;
  task::PromptFrame frame;
  std::optional<task::PromptFrame> closed_frame;
  std::int64_t min_documents = 0;  ///< the gold ones included
  std::int64_t task_budget = 0;
  task::TaskMetric metric = task::TaskMetric::kPart;
  bool first_line = false;  ///< only the reply's first line counts
  /// Puts the other documents in an order drawn from this key; unset: as the list has them. Depths are measured in the
  /// list's order then, which they match but for the documents' different sizes.
  std::optional<RngKey> shuffle;
  /// A place for every gold document; unset: balanced.
  std::function<std::vector<task::Placement>(const task::MeasuredHaystack& haystack, std::int64_t n_units)> place;
};

/// The gold documents are the needles, the others the haystack; all are numbered from 1.
std::unique_ptr<task::SampleDraft> make_document_draft(const task::TaskContext& context,
                                                       const task::SampleKeyParts& key, DocumentPlan plan,
                                                       task::HaystackCache& cache);

}  // namespace fathom::tasks
