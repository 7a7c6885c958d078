#include "tasks/documents.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace fathom::tasks {
namespace {

class DocumentHaystack : public task::Haystack {
 public:
  DocumentHaystack(std::shared_ptr<const DocumentList> documents, DocumentStyle style, std::int64_t n_gold)
      : documents_(std::move(documents)), style_(std::move(style)), n_gold_(n_gold) {}

  std::vector<task::HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    std::vector<task::HaystackUnit> out;
    for (std::int64_t j = begin; j < end; ++j) {
      out.push_back({style_.separator, style_.render(documents_->at(j), n_gold_ + j + 1), true});
    }
    return out;
  }
  std::optional<std::int64_t> size() const override { return documents_->size(); }
  std::string limit_reason() const override { return documents_->limit_reason(); }

 private:
  std::shared_ptr<const DocumentList> documents_;
  DocumentStyle style_;
  std::int64_t n_gold_;
};

/// Gold documents and the first `n_units` others in one text. \param gold  the gold documents in it, with the unit in
/// front of which each stands; those in front of one unit keep their order.
task::ContextText join_documents(const DocumentItem& item, std::int64_t n_units,
                                 const std::vector<task::NeedleAt>& gold, const std::vector<std::size_t>& ranks,
                                 const DocumentPlan& plan) {
  const DocumentStyle& style = plan.style;
  std::vector<std::int64_t> order(static_cast<std::size_t>(n_units));
  std::iota(order.begin(), order.end(), 0);
  if (plan.shuffle) {
    RngStream rng(*plan.shuffle);
    rng.shuffle(order);
  }
  task::ContextText context;
  context.spans.resize(gold.size());
  std::int64_t number = 0;
  const auto append = [&](const Document& document) {
    if (number > 0) context.text += style.separator;
    const std::size_t begin = context.text.size();
    context.text += style.render(document, ++number);
    return task::ByteSpan{begin, context.text.size()};
  };
  for (std::int64_t unit = 0; unit <= n_units; ++unit) {
    for (std::size_t g = 0; g < gold.size(); ++g) {
      if (gold[g].unit == unit) context.spans[g] = append(item.gold[ranks[g]]);
    }
    if (unit < n_units) append(item.others->at(order[static_cast<std::size_t>(unit)]));
  }
  return context;
}

task::AnswerPlan document_answer(const DocumentPlan& plan) {
  task::AnswerPlan answer;
  answer.references = plan.item.references;
  answer.join = [](const std::vector<std::string>& wordings) { return wordings.front(); };
  answer.task_budget = plan.task_budget;
  answer.metric = plan.metric;
  answer.first_line = plan.first_line;
  return answer;
}

/// Answers that other documents of the prompt give, then fresh ones.
void add_document_candidates(task::Sample& sample, const task::SampleKeyParts& key, const DocumentPlan& plan) {
  DistinctDraws used;
  std::set<std::string> seen(plan.item.references.begin(), plan.item.references.end());
  std::vector<std::vector<std::string>> rivals;
  for (std::int64_t j = 0; j < sample.haystack_units; ++j) {
    const std::optional<std::string> rival = plan.item.others->at(j).rival;
    if (rival && seen.insert(*rival).second) rivals.push_back({*rival});
  }
  for (const std::string& each : seen) used.add(each);
  RngStream aux = task::sample_stream(key, task::SampleStream::kAux);
  sample.candidates = task::make_candidates(sample, document_answer(plan), std::move(rivals), aux, [&]() {
    std::optional<std::vector<std::string>> fresh;
    if (auto answer = used.try_draw(plan.item.answers, aux)) fresh = {*std::move(answer)};
    return fresh;
  });
}

}  // namespace

std::string DocumentStyle::render(const Document& document, std::int64_t number) const {
  return text::PromptPack::render(pattern,
                                  {{"i", std::to_string(number)}, {"title", document.title}, {"text", document.text}});
}

std::unique_ptr<task::SampleDraft> make_document_draft(const task::TaskContext& context,
                                                       const task::SampleKeyParts& key, DocumentPlan plan,
                                                       task::HaystackCache& cache) {
  const auto shared = std::make_shared<const DocumentPlan>(std::move(plan));
  const DocumentItem& item = shared->item;
  const auto n_gold = static_cast<std::int64_t>(item.gold.size());
  task::NeedlePlan needles;
  for (const Document& gold : item.gold) {
    needles.needles.push_back(shared->style.render(gold, 1));
    needles.groups.push_back({1, true});
  }
  needles.min_units = shared->min_documents - n_gold;
  needles.joiner = shared->style.separator;
  needles.frame = shared->frame;
  needles.answer = document_answer(*shared);
  needles.place = shared->place;
  needles.closed_frame = shared->closed_frame;
  needles.compose = [shared](const task::MeasuredHaystack&, std::int64_t n_units,
                             const std::vector<task::NeedleAt>& gold, const std::vector<std::size_t>& ranks) {
    return join_documents(shared->item, n_units, gold, ranks, *shared);
  };
  const std::string id = task::stream_key(key, task::SampleStream::kFacts).text();
  needles.haystack = [shared, id, &context, &cache, n_gold](std::int64_t units, std::int64_t tokens) {
    const auto make = [&] {
      return std::make_shared<const DocumentHaystack>(shared->item.others, shared->style, n_gold);
    };
    return cache.get(id, make, context.assembler->tokenizer(), units, tokens);
  };
  needles.finish = [shared, key](task::Sample& sample) { add_document_candidates(sample, key, *shared); };
  return std::make_unique<task::NeedleDraft>(context, key, std::move(needles));
}

}  // namespace fathom::tasks
