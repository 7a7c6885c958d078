// RULER's question answering on many documents (tasks specification 1.5; Hsieh et al. 2024, section 3): one-fact
// questions (after SQuAD) and two-fact questions (after HotpotQA).

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/task/fitting.h"
#include "tasks/document_bank.h"
#include "tasks/documents.h"
#include "tasks/tasks.h"

namespace fathom::tasks {
namespace {

using task::TaskVariant;

constexpr std::int32_t kQaVersion = 1;
constexpr std::int64_t kQaTaskBudget = 32;
constexpr std::int64_t kQaRulerDocuments = 10;

struct QaOptions {
  std::string data;
  std::int64_t least = 0;

  void visit(OptionVisitor& v) {
    v.text("data", data,
           "A SQuAD or HotpotQA file, or lines of question, answers, gold, other; empty: invented towns.");
    v.integer("least", least, {0, 1000},
              "Fewest documents; 0: 10, and 5 for one-fact questions in the balanced variant.");
  }
};

/// RULER shuffles with one seed, so the gold document has one place (from 0) for every number of documents.
std::int64_t ruler_gold_index(std::int64_t n_documents) {
  static const std::map<std::int64_t, std::int64_t> known = {{10, 8},  {20, 18},  {30, 27},   {40, 29},
                                                             {80, 50}, {160, 16}, {330, 172}, {660, 519}};
  const auto found = known.find(n_documents);
  if (found != known.end()) return found->second;
  RngStream rng(RngKey("fathom/1|ruler-gold-document").child(n_documents));
  return static_cast<std::int64_t>(rng.uniform_index(static_cast<std::uint64_t>(n_documents)));
}

/// Units in front of which `n_gold` documents stand: the first at RULER's index, the others at indices of their own.
std::vector<task::Placement> ruler_gold_places(std::int64_t n_units, std::int64_t n_gold) {
  const std::int64_t n_documents = n_units + n_gold;
  std::vector<std::int64_t> indices = {ruler_gold_index(n_documents)};
  RngStream rng(RngKey("fathom/1|ruler-gold-document").child(n_documents).child("more"));
  while (static_cast<std::int64_t>(indices.size()) < n_gold) {
    const auto index = static_cast<std::int64_t>(rng.uniform_index(static_cast<std::uint64_t>(n_documents)));
    if (std::find(indices.begin(), indices.end(), index) == indices.end()) indices.push_back(index);
  }
  std::vector<task::Placement> places;
  for (const std::int64_t index : indices) {
    const auto gold_before = std::count_if(indices.begin(), indices.end(), [index](auto i) { return i < index; });
    places.push_back({index - gold_before, std::nullopt});
  }
  return places;
}

class QaTask : public task::FittedTask {
 public:
  /// \param bank  null: invented documents.
  QaTask(task::TaskFrame task_frame, QuestionKind kind, std::int64_t least_documents,
         std::shared_ptr<const DocumentBank> bank)
      : FittedTask(std::move(task_frame)), kind_(kind), least_documents_(least_documents), bank_(std::move(bank)) {}

  bool sweeps_depth() const override {
    return frame().variant == TaskVariant::kBalanced && kind_ == QuestionKind::kOneFact;
  }
  task::TaskMetric metric() const override { return task::TaskMetric::kPart; }
  std::vector<task::Control> controls() const override { return {task::Control::kClosedBook, task::Control::kOracle}; }
  double in_text_guess(std::int64_t length_tokens) const override {
    const std::int64_t others = typical_units(length_tokens);
    // Every second document of a two-fact list is a yard, from the first on.
    const std::int64_t rivals = kind_ == QuestionKind::kOneFact ? others : (others + 1) / 2;
    return 1.0 / static_cast<double>(rivals + 1);
  }
  double blind_guess() const override { return bank_ ? 0.0 : blind_document_guess(frame().context, kind_); }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  std::string pack_text(std::string_view name) const { return frame().context.pack->text("qa", name, frame().name); }

  DocumentItem make_item(const task::SampleKeyParts& key) const;

  QuestionKind kind_;
  std::int64_t least_documents_;
  std::shared_ptr<const DocumentBank> bank_;
  mutable task::HaystackCache cache_;
};

// RULER takes the first questions of a file and repeats its documents; balanced draws without replacement.
DocumentItem QaTask::make_item(const task::SampleKeyParts& key) const {
  if (!bank_) {
    const std::string fixed = pack_text("intro") + pack_text("lead") + pack_text("question");
    return make_invented_item(frame().context, kind_, key, fixed);
  }
  const bool ruler = frame().variant == TaskVariant::kRuler;
  return bank_->item(bank_->question_of(key.index, key.seed, ruler ? QuestionOrder::kFile : QuestionOrder::kDrawn),
                     task::stream_key(key, task::SampleStream::kHay),
                     ruler ? DocumentRepeat::kRepeat : DocumentRepeat::kOnce);
}

std::unique_ptr<task::SampleDraft> QaTask::draft(const task::SampleKeyParts& key) const {
  DocumentPlan plan;
  plan.item = make_item(key);
  text::SlotValues values = {{"query", plan.item.question}};
  for (const std::string_view name : {"intro", "lead", "question"}) {
    values.emplace_back(name, text::PromptPack::render(pack_text(name), values));
  }
  plan.frame =
      task::render_layout(pack_text("layout"), values, text::PromptPack::render(pack_text("answer_prefix"), values));
  plan.style = {pack_text(kind_ == QuestionKind::kOneFact ? "document" : "document_titled"), pack_text("doc_sep")};
  plan.min_documents = least_documents_;
  plan.task_budget = kQaTaskBudget;
  plan.metric = metric();
  if (frame().variant == TaskVariant::kRuler) {
    plan.place = [n_gold = static_cast<std::int64_t>(plan.item.gold.size())](const task::MeasuredHaystack&,
                                                                             std::int64_t n_units) {
      return ruler_gold_places(n_units, n_gold);
    };
  }
  return make_document_draft(frame().context, key, std::move(plan), cache_);
}

template <QuestionKind kind>
std::unique_ptr<task::Task> make_qa(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& given,
                                    const task::TaskContext& context) {
  QaOptions options;
  bind_options(options, given);
  if (options.least == 0) {
    const bool few = variant == TaskVariant::kBalanced && kind == QuestionKind::kOneFact;
    options.least = few ? 5 : kQaRulerDocuments;
  }
  options.least = std::max<std::int64_t>(options.least, kind == QuestionKind::kOneFact ? 1 : 2);
  std::shared_ptr<const DocumentBank> bank;
  if (!options.data.empty()) {
    bank = DocumentBank::load(options.data);
    options.data = bank->fingerprint();  // what is asked depends on the content, not on where it lies
  }
  const std::string from = bank ? "bank/" + bank->fingerprint() : "invented/1";
  task::TaskFrame frame{std::string(entry.name), entry.version, variant, canonical_options(options), from, context};
  return std::make_unique<QaTask>(std::move(frame), kind, options.least, std::move(bank));
}

std::vector<OptionDescription> describe_qa() {
  return describe_options(QaOptions{});
}

}  // namespace

task::TaskEntry entries::qa_1_entry() {
  return {"qa_1",
          kQaVersion,
          "qa",
          "Many documents; one of them holds the answer.",
          "RULER (Hsieh et al. 2024), section 3, after SQuAD",
          true,
          &describe_qa,
          &make_qa<QuestionKind::kOneFact>};
}

task::TaskEntry entries::qa_2_entry() {
  return {"qa_2",
          kQaVersion,
          "qa",
          "Many documents; two of them together hold the answer.",
          "RULER (Hsieh et al. 2024), section 3, after HotpotQA",
          true,
          &describe_qa,
          &make_qa<QuestionKind::kTwoFacts>};
}

}  // namespace fathom::tasks
