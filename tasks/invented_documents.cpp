// The built-in documents: invented towns, ships and yards, each with three or four attributes (tasks specification
// 2.2).

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "tasks/documents.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

constexpr std::int64_t kFirstYear = 1400;
constexpr std::int64_t kLastYear = 1999;
constexpr int kMostDocumentDraws = 1000;

enum class DocumentTopic { kTown, kShip, kYard };

struct OneFactQuestion {
  std::string_view key;  // in [docs]
  DocumentTopic topic;
  std::string_view attribute;
};

constexpr OneFactQuestion kOneFactQuestions[] = {
    {"q_town_river", DocumentTopic::kTown, "river"},   {"q_town_person", DocumentTopic::kTown, "person"},
    {"q_town_trade", DocumentTopic::kTown, "trade"},   {"q_ship_person", DocumentTopic::kShip, "person"},
    {"q_ship_goods", DocumentTopic::kShip, "goods"},   {"q_ship_yard", DocumentTopic::kShip, "yard"},
    {"q_yard_person", DocumentTopic::kYard, "person"},
};

/// Everything a document of each topic is filled from.
struct InventedPools {
  explicit InventedPools(const task::TaskContext& context)
      : names(invented_names(context)),
        persons(person_names(context)),
        years(integers(context, kFirstYear, kLastYear)),
        trades(list_entries(context, "trades")),
        goods(list_entries(context, "goods")) {}

  ValuePool names, persons, years, trades, goods;
};

/// A document as the values of its template's slots.
struct InventedDocument {
  DocumentTopic topic = DocumentTopic::kTown;
  text::SlotValues values;

  const std::string& value(std::string_view slot) const {
    const auto found = std::find_if(values.begin(), values.end(), [slot](const auto& v) { return v.first == slot; });
    FATHOM_CHECK(found != values.end(), "a document without the attribute asked for");
    return found->second;
  }
};

std::string_view topic_key(DocumentTopic topic) {
  switch (topic) {
    case DocumentTopic::kTown:
      return "town";
    case DocumentTopic::kShip:
      return "ship";
    case DocumentTopic::kYard:
      return "yard";
  }
  FATHOM_CHECK(false, "unknown topic");
}

InventedDocument draw_document(const InventedPools& pools, DocumentTopic topic, std::string name, RngStream& rng) {
  InventedDocument document;
  document.topic = topic;
  document.values = {{"name", std::move(name)}};
  document.values.emplace_back("person", pools.persons.draw(rng));
  document.values.emplace_back("year", pools.years.draw(rng));
  switch (topic) {
    case DocumentTopic::kTown:
      document.values.emplace_back("river", pools.names.draw(rng));
      document.values.emplace_back("trade", pools.trades.draw(rng));
      break;
    case DocumentTopic::kShip:
      document.values.emplace_back("yard", pools.names.draw(rng));
      document.values.emplace_back("goods", pools.goods.draw(rng));
      break;
    case DocumentTopic::kYard:
      document.values.emplace_back("town", pools.names.draw(rng));
      break;
  }
  return document;
}

void set_value(InventedDocument& document, std::string_view slot, const std::string& value) {
  for (auto& each : document.values) {
    if (each.first == slot) each.second = value;
  }
}

Document render_document(const text::PromptPack& pack, const InventedDocument& document,
                         std::optional<std::string_view> asked) {
  Document out;
  out.title = document.value("name");
  out.text = text::PromptPack::render(pack.text("docs", topic_key(document.topic)), document.values);
  if (asked) out.rival = document.value(*asked);
  return out;
}

bool holds(const text::PromptPack& pack, const std::string& text, const std::string& value) {
  if (pack.closed_vocabulary()) return (" " + text + " ").find(" " + value + " ") != std::string::npos;
  return ascii_lower(text).find(ascii_lower(value)) != std::string::npos;
}

/// Other towns, ships or yards. In two-fact lists every second document is a ship, and left the yard before it.
class InventedList : public DocumentList {
 public:
  InventedList(const task::TaskContext& context, QuestionKind kind, DocumentTopic topic, std::string_view asked,
               std::vector<std::string> taken_names, std::string answer, RngKey key)
      : pack_(context.pack),
        pools_(context),
        kind_(kind),
        topic_(topic),
        asked_(asked),
        n_taken_(static_cast<std::int64_t>(taken_names.size()) + 1),
        forbidden_{std::move(answer)},
        key_(std::move(key)) {
    for (const std::string& each : taken_names) names_.add(each);
    names_.add(forbidden_.front());
    // Only in a closed vocabulary can a name not happen to stand inside a word of the templates.
    if (pack_->closed_vocabulary()) forbidden_.insert(forbidden_.end(), taken_names.begin(), taken_names.end());
  }

  Document at(std::int64_t j) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    while (static_cast<std::int64_t>(documents_.size()) <= j) append();
    const InventedDocument& document = documents_[static_cast<std::size_t>(j)];
    const bool says = kind_ == QuestionKind::kOneFact || document.topic == DocumentTopic::kYard;
    return render_document(*pack_, document, says ? std::optional<std::string_view>(asked_) : std::nullopt);
  }

  std::optional<std::int64_t> size() const override {
    constexpr double kPracticallyEndless = 1e7;
    if (pools_.names.size > kPracticallyEndless) return std::nullopt;
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(pools_.names.size) - n_taken_);
  }
  std::string limit_reason() const override {
    return fmt::format("the vocabulary has {:.0f} invented names, and no two documents share one", pools_.names.size);
  }

 private:
  void append() const {
    const auto j = static_cast<std::int64_t>(documents_.size());
    const bool ship = kind_ == QuestionKind::kTwoFacts && j % 2 == 1;
    const DocumentTopic topic =
        kind_ == QuestionKind::kOneFact ? topic_ : (ship ? DocumentTopic::kShip : DocumentTopic::kYard);
    RngStream rng(key_.child(j));
    const std::string name = names_.draw(pools_.names, rng);
    for (int attempt = 0; attempt < kMostDocumentDraws; ++attempt) {
      InventedDocument document = draw_document(pools_, topic, name, rng);
      if (ship) set_value(document, "yard", documents_.back().value("name"));
      const std::string text = render_document(*pack_, document, std::nullopt).text;
      const bool clash = std::any_of(forbidden_.begin(), forbidden_.end(),
                                     [&](const std::string& value) { return holds(*pack_, text, value); });
      if (clash) continue;
      documents_.push_back(std::move(document));
      return;
    }
    FATHOM_CHECK(false, "every document says what only one may");
  }

  std::shared_ptr<const text::PromptPack> pack_;
  InventedPools pools_;
  QuestionKind kind_;
  DocumentTopic topic_;
  std::string_view asked_;
  std::int64_t n_taken_;
  std::vector<std::string> forbidden_;  // what no document may say
  RngKey key_;
  mutable std::mutex mutex_;
  mutable DistinctDraws names_;
  mutable std::vector<InventedDocument> documents_;
};

/// What the gold documents of one sample are drawn with.
struct GoldDraw {
  const text::PromptPack& pack;
  const InventedPools& pools;
  const std::string& fixed_text;
  std::string_view question_key;
};

/// Draws until the value asked for stands once in the document, and neither in the question nor in the fixed text.
InventedDocument draw_gold(const GoldDraw& from, DocumentTopic topic, std::string_view asked, RngStream& rng) {
  const text::PromptPack& pack = from.pack;
  for (int attempt = 0; attempt < kMostDocumentDraws; ++attempt) {
    InventedDocument document = draw_document(from.pools, topic, from.pools.names.draw(rng), rng);
    std::string others = from.fixed_text + " ";
    others += text::PromptPack::render(pack.text("docs", from.question_key), {{"name", document.value("name")}});
    InventedDocument without = document;
    set_value(without, asked, pack.closed_vocabulary() ? "." : "");
    others += " " + render_document(pack, without, std::nullopt).text;
    if (!holds(pack, others, document.value(asked))) return document;
  }
  FATHOM_CHECK(false, "no document states its answer once");
}

const ValuePool& pool_of(const InventedPools& pools, std::string_view attribute) {
  if (attribute == "person") return pools.persons;
  if (attribute == "trade") return pools.trades;
  if (attribute == "goods") return pools.goods;
  return pools.names;
}

DocumentItem make_one_fact_item(const task::TaskContext& context, const RngKey& key, const std::string& fixed_text) {
  const text::PromptPack& pack = *context.pack;
  const InventedPools pools(context);
  RngStream rng(key);
  const OneFactQuestion& asked = kOneFactQuestions[rng.uniform_index(std::size(kOneFactQuestions))];
  const InventedDocument gold = draw_gold({pack, pools, fixed_text, asked.key}, asked.topic, asked.attribute, rng);
  DocumentItem item;
  item.question = text::PromptPack::render(pack.text("docs", asked.key), {{"name", gold.value("name")}});
  item.references = {gold.value(asked.attribute)};
  item.gold = {render_document(pack, gold, asked.attribute)};
  item.others = std::make_shared<const InventedList>(context, QuestionKind::kOneFact, asked.topic, asked.attribute,
                                                     std::vector<std::string>{gold.value("name")},
                                                     gold.value(asked.attribute), key.child("others"));
  item.answers = pool_of(pools, asked.attribute);
  return item;
}

DocumentItem make_two_fact_item(const task::TaskContext& context, const RngKey& key, const std::string& fixed_text) {
  const text::PromptPack& pack = *context.pack;
  const InventedPools pools(context);
  RngStream rng(key);
  const GoldDraw from{pack, pools, fixed_text, "q_hop"};
  const InventedDocument yard = draw_gold(from, DocumentTopic::kYard, "town", rng);
  const auto draw_ship = [&] {
    InventedDocument ship = draw_gold(from, DocumentTopic::kShip, "yard", rng);
    set_value(ship, "yard", yard.value("name"));
    return ship;
  };
  const auto tells = [&](const InventedDocument& ship) {
    const std::string texts = render_document(pack, ship, std::nullopt).text + " " + ship.value("name");
    return holds(pack, texts, yard.value("town")) || ship.value("name") == yard.value("name");
  };
  InventedDocument ship = draw_ship();
  while (tells(ship)) ship = draw_ship();
  DocumentItem item;
  item.question = text::PromptPack::render(pack.text("docs", "q_hop"), {{"name", ship.value("name")}});
  item.references = {yard.value("town")};
  item.gold = {render_document(pack, ship, std::nullopt), render_document(pack, yard, "town")};
  item.others = std::make_shared<const InventedList>(context, QuestionKind::kTwoFacts, DocumentTopic::kYard, "town",
                                                     std::vector<std::string>{yard.value("name"), ship.value("name")},
                                                     yard.value("town"), key.child("others"));
  item.answers = pools.names;
  return item;
}

}  // namespace

double blind_document_guess(const task::TaskContext& context, QuestionKind kind) {
  const InventedPools pools(context);
  if (kind == QuestionKind::kTwoFacts) return 1.0 / pools.names.size;
  double sum = 0;
  for (const OneFactQuestion& question : kOneFactQuestions) sum += 1.0 / pool_of(pools, question.attribute).size;
  return sum / static_cast<double>(std::size(kOneFactQuestions));
}

DocumentItem make_invented_item(const task::TaskContext& context, QuestionKind kind, const task::SampleKeyParts& key,
                                const std::string& fixed_text) {
  const RngKey facts = task::stream_key(key, task::SampleStream::kFacts);
  return kind == QuestionKind::kOneFact ? make_one_fact_item(context, facts, fixed_text)
                                        : make_two_fact_item(context, facts, fixed_text);
}

}  // namespace fathom::tasks
