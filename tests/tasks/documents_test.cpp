// Questions on invented documents: qa and mdqa (tasks specification 1.5, 2.2).

#include <algorithm>
#include <fstream>
#include <set>

#include "harness/core/text_util.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"
#include "tests/support/temp_folder.h"

namespace {

using namespace fathom;
using task::Sample;
using task::TaskVariant;

std::unique_ptr<task::Task> make_document_task(std::string_view name, const task::TaskContext& context,
                                               TaskVariant variant = TaskVariant::kBalanced,
                                               const std::map<std::string, std::string>& options = {}) {
  const task::TaskEntry& entry = tasks::registry().at(name);
  return entry.make(entry, variant, OptionSource("[task.x]", options), context);
}

std::string write_file(const test::TempFolder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder.file(name), std::ios::binary) << text;
  return folder.file(name);
}

/// The numbered documents of an English qa prompt.
std::vector<std::string> qa_documents(const Sample& sample) {
  std::vector<std::string> documents;
  for (std::int64_t i = 1;; ++i) {
    const std::string head = "Text no. " + std::to_string(i) + "\n";
    const std::size_t begin = sample.prompt_text.find(head);
    if (begin == std::string::npos) return documents;
    const std::size_t end = sample.prompt_text.find("\n\n", begin);
    documents.push_back(sample.prompt_text.substr(begin + head.size(), end - begin - head.size()));
  }
}

std::vector<std::size_t> documents_with(const std::vector<std::string>& documents, const std::string& text) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (documents[i].find(text) != std::string::npos) found.push_back(i);
  }
  return found;
}

/// Follows a two-fact question through a closed-vocabulary prompt: `doc NAME at YARD …` of the ship, then of its yard.
std::string follow_hop(const Sample& sample) {
  const auto words = test::words_of(sample.prompt_text);
  const auto said_at = [&words](const std::string& name) {
    for (std::size_t i = 0; i + 3 < words.size(); ++i) {
      if (words[i] != "doc") continue;
      // A titled document names itself twice.
      const std::size_t at = words[i + 2] == name ? i + 3 : i + 2;
      if (words[i + 1] == name && words[at] == "at") return words[at + 1];
    }
    return std::string();
  };
  return said_at(said_at(words[words.size() - 3]));
}

}  // namespace

TEST_CASE("qa_1: the answer stands in one document, which is numbered in its place", "[tasks][qa]") {
  const auto fixture = test::english_fixture();
  const auto task = make_document_task("qa_1", fixture->context());
  for (const std::int32_t depth : {0, 5000, 10000}) {
    for (std::int64_t index = 0; index < 14; ++index) {
      const Sample sample = task->make_sample({2000, depth}, index, 1);
      const auto documents = qa_documents(sample);
      CHECK(static_cast<std::int64_t>(documents.size()) == sample.haystack_units + 1);
      const auto found = documents_with(documents, sample.references.front());
      REQUIRE(found.size() == 1);
      if (depth == 0) CHECK(found.front() == 0);
      if (depth == 10000) CHECK(found.front() + 1 == documents.size());
      const std::set<std::string> different(documents.begin(), documents.end());
      CHECK(different.size() == documents.size());
    }
  }
}

TEST_CASE("qa_2: ship and yard together, and no other way, lead to the town", "[tasks][qa]") {
  const auto fixture = test::synthetic_fixture();
  for (const TaskVariant variant : {TaskVariant::kBalanced, TaskVariant::kRuler}) {
    const auto task = make_document_task("qa_2", fixture->context(), variant);
    for (std::int64_t index = 0; index < 22; ++index) {
      const Sample sample = task->make_sample({500, std::nullopt}, index, 1);
      CHECK(follow_hop(sample) == sample.references.front());
      CHECK(sample.needles.size() == 2);
    }
  }
}

TEST_CASE("qa: RULER puts the gold document at one index for every number of documents", "[tasks][qa]") {
  const auto fixture = test::english_fixture();
  const auto task = make_document_task("qa_1", fixture->context(), TaskVariant::kRuler);
  CHECK(!task->sweeps_depth());
  int checked = 0;
  for (std::int64_t length = 600; length < 3000; length += 7) {
    try {
      const Sample sample = task->make_sample({length, std::nullopt}, length, 1);
      const auto documents = qa_documents(sample);
      const auto found = documents_with(documents, sample.references.front());
      REQUIRE(found.size() == 1);
      const std::map<std::size_t, std::size_t> known = {{10, 8}, {20, 18}, {30, 27}, {40, 29}};
      const auto expected = known.find(documents.size());
      if (expected == known.end()) continue;
      CHECK(found.front() == expected->second);
      ++checked;
    } catch (const TooShortError&) {
      continue;
    }
  }
  CHECK(checked > 0);
}

TEST_CASE("qa: five documents are enough for one fact, ten for two facts and for RULER", "[tasks][qa]") {
  const auto fixture = test::english_fixture();
  const auto least = [&fixture](std::string_view name, TaskVariant variant) {
    const auto task = make_document_task(name, fixture->context(), variant);
    return qa_documents(task->make_sample({task->smallest_length_tokens(1), std::nullopt}, 0, 1)).size();
  };
  CHECK(least("qa_1", TaskVariant::kBalanced) <= 6);
  CHECK(least("qa_1", TaskVariant::kRuler) >= 10);
  CHECK(least("qa_2", TaskVariant::kBalanced) >= 10);
}

TEST_CASE("mdqa: the gold document stands at index (D - 1) d, and only the first line of a reply counts",
          "[tasks][mdqa]") {
  const auto fixture = test::english_fixture();
  const auto task = make_document_task("mdqa", fixture->context());
  for (const std::int32_t depth : {0, 2500, 10000}) {
    const Sample sample = task->make_sample({1500, depth}, 3, 1);
    const std::int64_t gold = sample.haystack_units * depth / 10000;
    const std::string head = "(" + std::to_string(gold + 1) + ") ";
    const std::size_t begin = sample.prompt_text.find(head);
    REQUIRE(begin != std::string::npos);
    const std::size_t title_end = sample.prompt_text.find('\n', begin);
    const std::size_t end = sample.prompt_text.find('\n', title_end + 1);
    CHECK(sample.prompt_text.substr(begin, end - begin).find(sample.references.front()) != std::string::npos);
    CHECK(test::score_reply("subspan", sample, sample.answer_text + "\nmore") == std::optional<double>(1.0));
    CHECK(test::score_reply("subspan", sample, "no idea\n" + sample.answer_text) == std::optional<double>(0.0));
  }
}

TEST_CASE("mdqa: the fixed sizes are 10, 20 and 30 documents at the published places", "[tasks][mdqa]") {
  const auto fixture = test::english_fixture();
  const auto task = make_document_task("mdqa", fixture->context(), TaskVariant::kBalanced, {{"fit", "0"}});
  CHECK(!task->sweeps_length());
  CHECK(!task->sweeps_depth());
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (std::int64_t index = 0; index < 21; ++index) {
    const Sample sample = task->make_sample({}, index, 1);
    CHECK(sample.length_tokens == sample.prompt_tokens() + sample.generation_budget);
    const std::size_t at = sample.prompt_text.find(sample.references.front());
    const std::size_t head = sample.prompt_text.rfind("\n(", at);
    seen.emplace(sample.haystack_units + 1, std::stoll(sample.prompt_text.substr(head + 2)) - 1);
  }
  const std::set<std::pair<std::int64_t, std::int64_t>> expected = {{10, 0}, {10, 4},  {10, 9},  {20, 0},  {20, 4},
                                                                    {20, 9}, {20, 14}, {20, 19}, {30, 0},  {30, 4},
                                                                    {30, 9}, {30, 14}, {30, 19}, {30, 24}, {30, 29}};
  CHECK(seen == expected);
}

TEST_CASE("qa: a user's questions are asked on the user's documents, and no other one holds the answer",
          "[tasks][qa]") {
  const test::TempFolder folder;
  std::string lines;
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    lines += R"({"id":")" + n + R"(","question":"What is in box )" + n + R"(?","answers":["thing )" + n +
             R"(x","Thing)" + n + R"("],"gold":[{"title":"Box )" + n + R"(","text":"Box )" + n + " holds thing " + n +
             R"(x."}],"other":[{"title":"Shed )" + n + R"(","text":"Shed )" + n + R"( is bare."}]})" + "\n";
  }
  const std::string path = write_file(folder, "own.jsonl", lines);
  const auto fixture = test::english_fixture();
  for (const TaskVariant variant : {TaskVariant::kBalanced, TaskVariant::kRuler}) {
    const auto task = make_document_task("qa_1", fixture->context(), variant, {{"data", path}});
    const std::int64_t length = task->smallest_length_tokens(1) + 100;
    std::set<std::string> asked;
    for (std::int64_t index = 0; index < 12; ++index) {
      const Sample sample = task->make_sample({length, std::nullopt}, index, 1);
      CHECK(documents_with(qa_documents(sample), sample.references.front()).size() == 1);
      CHECK(sample.references.size() == 2);
      CHECK(sample.answer_text == " " + sample.references.front());
      CHECK(sample.key.find(path) == std::string::npos);
      asked.insert(sample.references.front());
      if (variant == TaskVariant::kRuler) CHECK(sample.references.front() == "thing " + std::to_string(index) + "x");
    }
    CHECK(asked.size() == 12);
  }
  try {
    make_document_task("qa_1", fixture->context(), TaskVariant::kBalanced, {{"data", path}})
        ->make_sample({100000, std::nullopt}, 0, 1);
    FAIL("no error");
  } catch (const task::TooLongError& error) {
    CHECK(std::string(error.what()).find("has 23 documents without the answer") != std::string::npos);
  }
}

TEST_CASE("qa: SQuAD and HotpotQA files are read, what is none says where and why", "[tasks][qa][errors]") {
  const test::TempFolder folder;
  const auto fixture = test::english_fixture();
  std::string squad = R"({"version":"v2.0","data":[{"title":"Rivers","paragraphs":[)";
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    squad += std::string(i == 0 ? "" : ",") + R"({"context":"River )" + n + R"(q ends in lake )" + n +
             R"(q.","qas":[{"id":"a","question":"Where does river )" + n +
             R"(q end?","is_impossible":false,"answers":[{"text":"lake )" + n +
             R"(q","answer_start":0}]},{"id":"b","question":"Why?","is_impossible":true,"answers":[]}]})";
  }
  const std::string path = write_file(folder, "squad.json", squad + "]}]}");
  const auto task = make_document_task("qa_1", fixture->context(), TaskVariant::kRuler, {{"data", path}});
  const Sample sample = task->make_sample({4000, std::nullopt}, 3, 1);
  CHECK(sample.prompt_text.find("Where does river 3q end?") != std::string::npos);
  CHECK(sample.references == std::vector<std::string>{"lake 3q"});

  std::string hotpot =
      R"([{"_id":"1","question":"Which hall?","answer":"North Hall","supporting_facts":[["A",0],["B",0]],"context":[)";
  for (const char* title : {"A", "B", "C", "D", "E", "F", "G", "H", "I", "J"}) {
    hotpot += std::string(title[0] == 'A' ? "" : ",") + "[\"" + title + "\",[\"On " + title + ". \",\"" +
              (title[0] == 'B' ? "It is North Hall." : "No hall.") + "\"]]";
  }
  const std::string two = write_file(folder, "hotpot.json", hotpot + "]}]");
  const auto hops = make_document_task("qa_2", fixture->context(), TaskVariant::kBalanced, {{"data", two}});
  const Sample both = hops->make_sample({hops->smallest_length_tokens(1), std::nullopt}, 0, 1);
  CHECK(both.needles.size() == 2);
  CHECK(qa_documents(both).size() == 10);

  const auto message = [&](const std::string& text) -> std::string {
    try {
      make_document_task("qa_1", fixture->context(), TaskVariant::kRuler,
                         {{"data", write_file(folder, "bad.jsonl", text)}});
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(message("{\"question\":\"a\",\"answers\":[\"b\"],\"gold\":[],\"other\":[]}\n")
            .find("no question with an answer") != std::string::npos);
  CHECK(message("{\"question\":\"a\"}\n{\"question\":\"a\"}\n").find("bad.jsonl:1: ") != std::string::npos);
  CHECK(message("").find("is empty or missing") != std::string::npos);
}

TEST_CASE("mdqa: the question may stand in front as well", "[tasks][mdqa]") {
  const auto fixture = test::english_fixture();
  const auto count = [&fixture](const std::string& query) {
    const Sample sample = make_document_task("mdqa", fixture->context(), TaskVariant::kBalanced, {{"query", query}})
                              ->make_sample({1500, 5000}, 0, 1);
    std::size_t n = 0;
    for (std::size_t at = sample.prompt_text.find("Question: "); at != std::string::npos;
         at = sample.prompt_text.find("Question: ", at + 1))
      ++n;
    return n;
  };
  CHECK(count("after") == 1);
  CHECK(count("both") == 2);
}
