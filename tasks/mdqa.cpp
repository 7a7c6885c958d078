// Multi-document question answering (tasks specification 2.2; Liu et al. 2024, "Lost in the Middle", section 2): one
// document of many holds the answer, and its place is what is varied.

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
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

constexpr std::int32_t kMdqaVersion = 2;
constexpr std::int64_t kMdqaTaskBudget = 100;
constexpr std::int64_t kMdqaLeastDocuments = 4;
constexpr std::int64_t kMdqaFixedSizes[] = {10, 20, 30};
constexpr std::int64_t kMdqaPlaceStep = 5;

struct MdqaOptions {
  std::int64_t fit = 1;
  std::optional<std::int64_t> documents;
  std::string query = "after";
  std::string data;
  std::int64_t shuffle = 0;

  void visit(OptionVisitor& v) {
    v.integer("fit", fit, {0, 1},
              "1: as many documents as the length holds; 0: fixed sizes, whose length is measured.");
    v.optional_integer("documents", documents, {2, 10000}, "Documents with fit=0; auto: 10, 20 and 30 in turn.");
    v.choice("query", query, {"after", "both"}, "Where the question stands: after the documents, or in front as well.");
    v.text("data", data, "Lines of Natural Questions or of question, answers, gold, other; empty: invented towns.");
    v.integer("shuffle", shuffle, {0, 1}, "1: the other documents in random order; 0: in the order of their rank.");
  }
};

/// Number of documents and index (from 0) of the gold one.
struct MdqaSize {
  std::int64_t n_documents = 0;
  std::int64_t gold = 0;
};

/// The published places: the first, then every fifth from the fifth on (0 4 9 14 …).
std::vector<std::int64_t> mdqa_places(std::int64_t n_documents) {
  std::vector<std::int64_t> places = {0};
  for (std::int64_t place = kMdqaPlaceStep - 1; place < n_documents; place += kMdqaPlaceStep) places.push_back(place);
  return places;
}

class MdqaTask : public task::FittedTask {
 public:
  /// \param bank  null: invented documents.
  MdqaTask(task::TaskFrame task_frame, MdqaOptions options, std::shared_ptr<const DocumentBank> bank)
      : FittedTask(std::move(task_frame)), options_(std::move(options)), bank_(std::move(bank)) {}

  task::Sample make_sample(const task::TaskCell& cell, std::int64_t index, std::uint64_t seed) const override;
  std::int64_t smallest_length_tokens(std::uint64_t seed) const override;

  bool sweeps_depth() const override { return fitted(); }
  bool sweeps_length() const override { return fitted(); }
  std::vector<task::Control> controls() const override { return {task::Control::kClosedBook, task::Control::kOracle}; }
  task::TaskMetric metric() const override { return task::TaskMetric::kSubspan; }
  double in_text_guess(std::int64_t length_tokens) const override;
  double blind_guess() const override {
    return bank_ ? 0.0 : blind_document_guess(frame().context, QuestionKind::kOneFact);
  }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;
  // Every place the gold document can have among the fewest.
  std::vector<std::int32_t> probe_depths() const override { return {0, 3334, 6667, kDepthScale}; }

 private:
  bool fitted() const { return options_.fit == 1; }
  std::string pack_text(std::string_view name) const { return frame().context.pack->text("mdqa", name, frame().name); }
  MdqaSize fixed_size(std::int64_t index) const;

  DocumentItem make_item(const task::SampleKeyParts& key) const;

  MdqaOptions options_;
  std::shared_ptr<const DocumentBank> bank_;
  mutable task::HaystackCache cache_;
};

// Sizes in turn, and for each its places in turn.
MdqaSize MdqaTask::fixed_size(std::int64_t index) const {
  constexpr auto kSizes = static_cast<std::int64_t>(std::size(kMdqaFixedSizes));
  const std::int64_t n = options_.documents.value_or(kMdqaFixedSizes[static_cast<std::size_t>(index % kSizes)]);
  const std::vector<std::int64_t> places = mdqa_places(n);
  const std::int64_t round = options_.documents ? index : index / kSizes;
  return {n, places[static_cast<std::size_t>(round) % places.size()]};
}

// A user's item has one place that is varied: of several gold documents the first is taken.
DocumentItem MdqaTask::make_item(const task::SampleKeyParts& key) const {
  if (!bank_) {
    const std::string fixed = pack_text("intro") + pack_text("intro_closed") + pack_text("question");
    return make_invented_item(frame().context, QuestionKind::kOneFact, key, fixed);
  }
  DocumentItem item = bank_->item(bank_->question_of(key.index, key.seed, QuestionOrder::kDrawn),
                                  task::stream_key(key, task::SampleStream::kHay), DocumentRepeat::kOnce);
  item.gold.resize(1);
  return item;
}

std::unique_ptr<task::SampleDraft> MdqaTask::draft(const task::SampleKeyParts& key) const {
  DocumentPlan plan;
  plan.item = make_item(key);
  text::SlotValues values = {{"query", plan.item.question}};
  for (const std::string_view name : {"intro", "intro_closed", "question"}) {
    values.emplace_back(name, text::PromptPack::render(pack_text(name), values));
  }
  const std::string prefix = text::PromptPack::render(pack_text("answer_prefix"), values);
  plan.frame =
      task::render_layout(pack_text(options_.query == "both" ? "layout_query_first" : "layout"), values, prefix);
  plan.closed_frame = task::PromptFrame{text::PromptPack::render(pack_text("layout_closed"), values), {}, prefix, {}};
  plan.style = {pack_text("document"), pack_text("doc_sep")};
  plan.min_documents = kMdqaLeastDocuments;
  plan.task_budget = kMdqaTaskBudget;
  plan.metric = metric();
  plan.first_line = true;
  if (options_.shuffle == 1) plan.shuffle = task::stream_key(key, task::SampleStream::kHay).child("order");
  const std::int64_t stratum = key.index % task::kDepthStrata;
  const auto balanced = static_cast<std::int32_t>(stratum * kDepthScale / (task::kDepthStrata - 1));
  const std::int32_t depth_bp = key.depth_bp.value_or(balanced);
  plan.place = [depth_bp, fixed_gold = fitted() ? -1 : fixed_size(key.index).gold](const task::MeasuredHaystack&,
                                                                                   std::int64_t n_units) {
    const std::int64_t gold = fixed_gold >= 0 ? std::min(fixed_gold, n_units) : n_units * depth_bp / kDepthScale;
    return std::vector<task::Placement>{{gold, fixed_gold >= 0 ? std::nullopt : std::optional<std::int32_t>(depth_bp)}};
  };
  return make_document_draft(frame().context, key, std::move(plan), cache_);
}

task::Sample MdqaTask::make_sample(const task::TaskCell& cell, std::int64_t index, std::uint64_t seed) const {
  if (fitted() || cell.control != task::Control::kNone) return FittedTask::make_sample(cell, index, seed);
  task::SampleKeyParts key = key_parts(cell, index, seed);
  key.length_tokens.reset();
  key.depth_bp.reset();
  const std::unique_ptr<task::SampleDraft> sample_draft = draft(key);
  task::Sample sample = sample_draft->build(fixed_size(index).n_documents - 1);
  sample_draft->finish(sample);
  stamp(sample, key);
  return sample;
}

std::int64_t MdqaTask::smallest_length_tokens(std::uint64_t seed) const {
  if (fitted()) return FittedTask::smallest_length_tokens(seed);
  std::int64_t smallest = 0;
  for (std::int64_t index = 0; index < std::max<std::int64_t>(1, frame().context.n_samples); ++index) {
    smallest = std::max(smallest, make_sample({}, index, seed).length_tokens);
  }
  return smallest;
}

double MdqaTask::in_text_guess(std::int64_t length_tokens) const {
  if (fitted()) return 1.0 / static_cast<double>(typical_units(length_tokens) + 1);
  double sum = 0;
  for (std::size_t i = 0; i < std::size(kMdqaFixedSizes); ++i) {
    sum += 1.0 / static_cast<double>(fixed_size(static_cast<std::int64_t>(i)).n_documents);
  }
  return sum / static_cast<double>(std::size(kMdqaFixedSizes));
}

std::unique_ptr<task::Task> make_mdqa(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                      const task::TaskContext& context) {
  MdqaOptions options;
  bind_options(options, source);
  std::shared_ptr<const DocumentBank> bank;
  if (!options.data.empty()) {
    bank = DocumentBank::load(options.data);
    options.data = bank->fingerprint();  // what is asked depends on the content, not on where it lies
  }
  const std::string from = bank ? "bank/" + bank->fingerprint() : "invented/1";
  task::TaskFrame frame{std::string(entry.name), entry.version, variant, canonical_options(options), from, context};
  return std::make_unique<MdqaTask>(std::move(frame), std::move(options), std::move(bank));
}

std::vector<OptionDescription> describe_mdqa() {
  return describe_options(MdqaOptions{});
}

}  // namespace

task::TaskEntry entries::mdqa_entry() {
  return {"mdqa",
          kMdqaVersion,
          "lost_in_the_middle",
          "Numbered documents; one of them holds the answer, at a place that is swept.",
          "Lost in the Middle (Liu et al. 2024), section 2",
          false,
          &describe_mdqa,
          &make_mdqa};
}

}  // namespace fathom::tasks
