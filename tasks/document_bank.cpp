#include "tasks/document_bank.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"

namespace fathom::tasks {
namespace {

using nlohmann::json;

std::string read_bank_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.good() && !file.eof()) throw DataError(fmt::format("question file '{}' cannot be read", path));
  if (text.empty()) throw DataError(fmt::format("question file '{}' is empty or missing", path));
  return text;
}

bool says_any(const Document& document, const std::vector<std::string>& lowered) {
  const std::string text = ascii_lower(document.title + "\n" + document.text);
  return std::any_of(lowered.begin(), lowered.end(),
                     [&text](const std::string& answer) { return text.find(answer) != std::string::npos; });
}

/// Documents by number, in a fixed order; endless if they may be repeated.
class BankList : public DocumentList {
 public:
  BankList(std::vector<Document> documents, DocumentRepeat repeat, std::string path)
      : documents_(std::move(documents)), repeat_(repeat), path_(std::move(path)) {}

  Document at(std::int64_t j) const override { return documents_[static_cast<std::size_t>(j) % documents_.size()]; }
  std::optional<std::int64_t> size() const override {
    if (repeat_ == DocumentRepeat::kRepeat && !documents_.empty()) return std::nullopt;
    return static_cast<std::int64_t>(documents_.size());
  }
  std::string limit_reason() const override {
    return fmt::format("'{}' has {} documents without the answer", path_, documents_.size());
  }

 private:
  std::vector<Document> documents_;
  DocumentRepeat repeat_;
  std::string path_;
};

}  // namespace

/// Fills a bank from the four kinds of file.
class DocumentBankReader {
 public:
  explicit DocumentBankReader(const std::string& path) : bank_(new DocumentBank()), path_(path) { bank_->path_ = path; }

  std::shared_ptr<const DocumentBank> read() {
    const std::string text = read_bank_file(path_);
    bank_->fingerprint_ = hash_hex(text);
    const json whole = json::parse(text, nullptr, false);
    place_ = path_;
    try {
      if (whole.is_discarded()) {
        read_lines(text);
      } else if (whole.is_array()) {
        for (const json& item : whole) add_hotpot(item);
      } else if (whole.contains("data")) {
        for (const json& article : whole.at("data")) add_article(article);
      } else {
        add_line(whole);
      }
    } catch (const json::exception& error) {
      throw DataError(
          fmt::format("{}: {}; known are SQuAD, HotpotQA, Natural Questions lines and own lines "
                      "(question, answers, gold, other)",
                      place_, error.what()));
    }
    if (bank_->questions_.empty()) throw DataError(fmt::format("{}: no question with an answer", path_));
    return bank_;
  }

 private:
  void read_lines(const std::string& text) {
    std::size_t number = 0;
    for (const std::string& line : split(text, '\n')) {
      place_ = fmt::format("{}:{}", path_, ++number);
      if (!trim(line).empty()) add_line(json::parse(line));
    }
  }

  /// The number of a document; equal ones are one.
  std::size_t add_document(std::string title, std::string text) {
    const auto [found, added] = numbers_.emplace(title + '\n' + text, bank_->documents_.size());
    if (added) bank_->documents_.push_back({std::move(title), std::move(text), std::nullopt});
    return found->second;
  }

  void add_question(DocumentBank::Question question) {
    std::vector<std::string> different;
    for (std::string& answer : question.answers) {
      const bool known = std::find(different.begin(), different.end(), answer) != different.end();
      if (!answer.empty() && !known) different.push_back(std::move(answer));
    }
    question.answers = std::move(different);
    if (!question.answers.empty() && !question.gold.empty()) bank_->questions_.push_back(std::move(question));
  }

  void add_article(const json& article) {
    std::vector<std::size_t> paragraphs;
    const std::string title = article.value("title", "");
    for (const json& paragraph : article.at("paragraphs")) {
      paragraphs.push_back(add_document(title, paragraph.at("context").get<std::string>()));
    }
    std::size_t at = 0;
    for (const json& paragraph : article.at("paragraphs")) {
      const std::size_t gold = paragraphs[at++];
      for (const json& qa : paragraph.at("qas")) {
        if (qa.value("is_impossible", false)) continue;
        DocumentBank::Question question;
        question.text = qa.at("question").get<std::string>();
        for (const json& answer : qa.at("answers")) question.answers.push_back(answer.at("text").get<std::string>());
        question.gold = {gold};
        question.beside = paragraphs;
        add_question(std::move(question));
      }
    }
  }

  void add_hotpot(const json& item) {
    DocumentBank::Question question;
    question.text = item.at("question").get<std::string>();
    question.answers = {item.at("answer").get<std::string>()};
    std::unordered_set<std::string> supporting;
    for (const json& fact : item.at("supporting_facts")) supporting.insert(fact.at(0).get<std::string>());
    for (const json& paragraph : item.at("context")) {
      const auto title = paragraph.at(0).get<std::string>();
      std::string text;
      for (const json& sentence : paragraph.at(1)) text += sentence.get<std::string>();
      const std::size_t number = add_document(title, text);
      (supporting.count(title) != 0 ? question.gold : question.beside).push_back(number);
    }
    add_question(std::move(question));
  }

  void add_line(const json& line) {
    DocumentBank::Question question;
    question.text = line.at("question").get<std::string>();
    question.answers = line.at("answers").get<std::vector<std::string>>();
    const auto document = [this](const json& each, const char* text_key) {
      return add_document(each.at("title").get<std::string>(), each.at(text_key).get<std::string>());
    };
    if (line.contains("ctxs")) {
      for (const json& each : line.at("ctxs")) {
        const bool gold = each.value("isgold", false);
        if (gold || !each.value("hasanswer", false)) {
          (gold ? question.gold : question.beside).push_back(document(each, "text"));
        }
      }
      if (question.gold.empty()) {
        question.gold.push_back(document(line.at("nq_annotated_gold"), "chunked_long_answer"));
      }
    } else {
      for (const json& each : line.at("gold")) question.gold.push_back(document(each, "text"));
      for (const json& each : line.at("other")) question.beside.push_back(document(each, "text"));
    }
    add_question(std::move(question));
  }

  std::shared_ptr<DocumentBank> bank_;
  std::string path_;
  std::string place_;
  std::map<std::string, std::size_t> numbers_;
};

std::shared_ptr<const DocumentBank> DocumentBank::load(const std::string& path) {
  return DocumentBankReader(path).read();
}

std::int64_t DocumentBank::question_of(std::int64_t index, std::uint64_t seed, QuestionOrder order) const {
  const std::int64_t n = n_questions();
  if (order == QuestionOrder::kFile) return index % n;
  std::vector<std::int64_t> shuffled(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) shuffled[static_cast<std::size_t>(i)] = i;
  RngStream(RngKey("fathom/1|questions").child(fingerprint_).child(std::to_string(seed))).shuffle(shuffled);
  return shuffled[static_cast<std::size_t>(index % n)];
}

DocumentItem DocumentBank::item(std::int64_t i, const RngKey& key, DocumentRepeat repeat) const {
  const Question& question = questions_[static_cast<std::size_t>(i)];
  DocumentItem item;
  item.question = question.text;
  item.references = question.answers;
  std::vector<bool> used(documents_.size(), false);
  for (const std::size_t gold : question.gold) {
    item.gold.push_back(documents_[gold]);
    used[gold] = true;
  }
  std::vector<std::string> lowered;
  for (const std::string& answer : question.answers) lowered.push_back(ascii_lower(answer));
  std::vector<Document> others;
  const auto add = [&](std::size_t number) {
    if (used[number] || says_any(documents_[number], lowered)) return;
    used[number] = true;
    others.push_back(documents_[number]);
  };
  for (const std::size_t number : question.beside) add(number);
  std::vector<std::size_t> rest(documents_.size());
  for (std::size_t d = 0; d < rest.size(); ++d) rest[d] = d;
  RngStream(key).shuffle(rest);
  for (const std::size_t number : rest) add(number);
  item.others = std::make_shared<const BankList>(std::move(others), repeat, path_);
  item.answers.size = static_cast<double>(questions_.size());
  item.answers.draw = [this](RngStream& rng) {
    return questions_[rng.uniform_index(questions_.size())].answers.front();
  };
  return item;
}

}  // namespace fathom::tasks
