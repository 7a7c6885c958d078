// What users bring to kv, mdqa and ppl: objects of pairs, ranked documents, running text.

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/core/text_util.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/task_fixture.h"
#include "tests/support/temp_folder.h"

namespace {

using namespace fathom;
using Catch::Matchers::ContainsSubstring;
using task::Sample;

std::unique_ptr<task::Task> make_task(std::string_view name, const task::TaskContext& context,
                                      const std::map<std::string, std::string>& options) {
  const task::TaskEntry& entry = tasks::registry().at(name);
  return entry.make(entry, task::TaskVariant::kBalanced, OptionSource("[task.x]", options), context);
}

std::string write_file(const test::TempFolder& folder, const std::string& name, const std::string& text) {
  std::ofstream(folder.file(name), std::ios::binary) << text;
  return folder.file(name);
}

/// Objects of `n` pairs "key-L-i" → "value-L-i"; pair 3 is asked for.
std::string pair_lines(int n_lines, int n_pairs) {
  std::string text;
  for (int l = 0; l < n_lines; ++l) {
    nlohmann::json line{{"key", "key-" + std::to_string(l) + "-3"}, {"value", "value-" + std::to_string(l) + "-3"}};
    for (int i = 0; i < n_pairs; ++i) {
      const std::string number = std::to_string(l) + "-" + std::to_string(i);
      line["ordered_kv_records"].push_back({"key-" + number, "value-" + number});
    }
    line["ignored"] = 1;
    text += line.dump() + "\n";
  }
  return text;
}

std::vector<std::string> keys_of(const Sample& sample) {
  const std::size_t begin = sample.prompt_text.find('{');
  const std::size_t end = sample.prompt_text.find('}');
  std::vector<std::string> keys;
  const auto object = nlohmann::ordered_json::parse(sample.prompt_text.substr(begin, end - begin + 1));
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

}  // namespace

TEST_CASE("kv: a user's pair moves through the object, the others keep their order", "[tasks][kv]") {
  const test::TempFolder folder;
  const auto fixture = test::english_fixture();
  const auto task = make_task("kv", fixture->context(), {{"data", write_file(folder, "kv.jsonl", pair_lines(4, 40))}});
  const std::int64_t length = task->smallest_length_tokens(1) + 300;
  for (const std::int32_t depth : {0, 5000, 10000}) {
    const Sample sample = task->make_sample({length, depth}, 1, 1);
    std::vector<std::string> keys = keys_of(sample);
    const auto n = static_cast<std::int64_t>(keys.size());
    INFO(depth);
    REQUIRE(n > 5);
    CHECK(n == sample.haystack_units);
    CHECK(sample.references == std::vector<std::string>{"value-1-3"});
    CHECK_THAT(sample.prompt_text, ContainsSubstring("for the key \"key-1-3\""));
    CHECK(keys[static_cast<std::size_t>((n - 1) * depth / 10000)] == "key-1-3");
    keys.erase(std::find(keys.begin(), keys.end(), "key-1-3"));
    CHECK(keys[0] == "key-1-0");
    CHECK(keys[3] == "key-1-4");
    CHECK(sample.key.find(folder.path().string()) == std::string::npos);
    CHECK(std::set<std::string>(sample.candidates.begin(), sample.candidates.end()).size() == sample.candidates.size());
  }
  const Sample alone = task->make_sample({length, 5000, task::Control::kNeedleOnly}, 1, 1);
  CHECK(keys_of(alone) == std::vector<std::string>{"key-1-3"});
  const Sample without = task->make_sample({length, 5000, task::Control::kNoNeedle}, 1, 1);
  CHECK(without.prompt_text.find("\"value-1-3\"") == std::string::npos);
  CHECK_THROWS_AS(task->make_sample({100000, 0}, 1, 1), task::TooLongError);
}

TEST_CASE("kv: whole lines of a user's file without fitting", "[tasks][kv]") {
  const test::TempFolder folder;
  const auto fixture = test::english_fixture();
  const auto task =
      make_task("kv", fixture->context(), {{"data", write_file(folder, "kv.jsonl", pair_lines(5, 9))}, {"fit", "0"}});
  std::vector<std::int64_t> places;
  for (std::int64_t index = 0; index < 5; ++index) {
    const Sample sample = task->make_sample({}, index, 1);
    const std::vector<std::string> keys = keys_of(sample);
    CHECK(keys.size() == 9);
    places.push_back(std::find(keys.begin(), keys.end(), "key-" + std::to_string(index) + "-3") - keys.begin());
  }
  CHECK(places == std::vector<std::int64_t>{0, 2, 4, 6, 8});
}

TEST_CASE("kv: a file of pairs that cannot be used is refused with its line", "[tasks][kv][errors]") {
  const test::TempFolder folder;
  const auto fixture = test::english_fixture();
  const auto refused = [&](const std::string& text, const std::string& part) {
    INFO(text);
    const std::string path = write_file(folder, "kv.jsonl", text);
    CHECK_THROWS_WITH(make_task("kv", fixture->context(), {{"data", path}}), ContainsSubstring(part));
  };
  refused("", "is empty or cannot be read");
  refused(pair_lines(1, 5) + "{\n", "kv.jsonl:2: ");
  refused("{\"key\": \"a\", \"value\": \"b\"}\n", "kv.jsonl:1: ");
  refused(R"({"key":"a","value":"b","ordered_kv_records":[["a","c"],["d","e"]]})", "is none of ordered_kv_records");
  refused(R"({"key":"a","value":"b","ordered_kv_records":[["a","b"],["a","e"]]})", "the key 'a' twice");
  refused(R"({"key":"a","value":"b","ordered_kv_records":[["a","b"]]})", "fewer than two pairs");
  refused(pair_lines(3, 9), "has 3 lines, and 4 samples are asked for");
  const auto synthetic = test::synthetic_fixture();
  CHECK_THROWS_WITH(make_task("kv", synthetic->context(), {{"data", folder.file("kv.jsonl")}}),
                    ContainsSubstring("open vocabulary"));
}

TEST_CASE("mdqa: shuffle=1 changes the order of the other documents, not which they are, nor the gold place",
          "[tasks][mdqa]") {
  const auto fixture = test::english_fixture();
  const auto ranked = make_task("mdqa", fixture->context(), {});
  const auto shuffled = make_task("mdqa", fixture->context(), {{"shuffle", "1"}});
  CHECK(ranked->canonical_options() != shuffled->canonical_options());
  const auto titles = [](const Sample& sample) {
    std::vector<std::string> out;
    for (std::int64_t i = 1;; ++i) {
      const std::string head = "\n(" + std::to_string(i) + ") ";
      const std::size_t at = sample.prompt_text.find(head);
      if (at == std::string::npos) return out;
      const std::size_t begin = at + head.size();
      out.push_back(sample.prompt_text.substr(begin, sample.prompt_text.find('\n', begin) - begin));
    }
  };
  int n_moved = 0;
  for (std::int64_t index = 0; index < 4; ++index) {
    const Sample at_start = shuffled->make_sample({1500, 0}, index, 1);
    const Sample at_end = shuffled->make_sample({1500, 10000}, index, 1);
    std::vector<std::string> first = titles(at_start);
    std::vector<std::string> last = titles(at_end);
    REQUIRE(first.size() == static_cast<std::size_t>(at_start.haystack_units + 1));
    REQUIRE(first.size() == last.size());
    // The gold document stands first and last; between, both depths share the order.
    CHECK(first.front() == last.back());
    first.erase(first.begin());
    last.pop_back();
    CHECK(first == last);
    CHECK(at_start.needles.at(0).first_token < at_end.needles.at(0).first_token);
    CHECK(at_start.prompt_tokens() + at_start.generation_budget <= 1500);
    n_moved += std::is_sorted(first.begin(), first.end()) ? 0 : 1;
    const Sample again = shuffled->make_sample({1500, 0}, index, 1);
    CHECK(again.prompt_text == at_start.prompt_text);
  }
  CHECK(n_moved > 0);
}

TEST_CASE("mdqa: ranked documents of a user keep their rank, and shuffle=1 lets it go", "[tasks][mdqa]") {
  const test::TempFolder folder;
  std::string lines;
  for (int q = 0; q < 4; ++q) {
    nlohmann::json line{{"question", "who " + std::to_string(q)}, {"answers", {"person " + std::to_string(q) + "x"}}};
    line["gold"].push_back({{"title", "gold"}, {"text", "It is person " + std::to_string(q) + "x."}});
    for (int d = 0; d < 12; ++d) {
      const std::string number = std::to_string(q) + "." + std::to_string(100 + d);
      line["other"].push_back({{"title", "rank " + number}, {"text", "Nothing in " + number + "."}});
    }
    lines += line.dump() + "\n";
  }
  const std::string path = write_file(folder, "own.jsonl", lines);
  const auto fixture = test::english_fixture();
  const auto ranks = [](const Sample& sample) {
    std::vector<std::string> out;
    for (std::size_t at = sample.prompt_text.find("rank "); at != std::string::npos;
         at = sample.prompt_text.find("rank ", at + 1)) {
      out.push_back(sample.prompt_text.substr(at, 10));
    }
    return out;
  };
  const auto ranked = make_task("mdqa", fixture->context(), {{"data", path}});
  const auto shuffled = make_task("mdqa", fixture->context(), {{"data", path}, {"shuffle", "1"}});
  const std::int64_t length = ranked->smallest_length_tokens(1) + 80;
  int n_changed = 0;
  for (std::int64_t index = 0; index < 4; ++index) {
    const std::vector<std::string> kept = ranks(ranked->make_sample({length, 5000}, index, 1));
    REQUIRE(kept.size() >= 4);
    CHECK(std::is_sorted(kept.begin(), kept.end()));
    const std::vector<std::string> moved = ranks(shuffled->make_sample({length, 5000}, index, 1));
    n_changed += std::is_sorted(moved.begin(), moved.end()) ? 0 : 1;
  }
  CHECK(n_changed >= 2);
}

TEST_CASE("ppl: blocks stand side by side in one text and score all but the first sentence", "[tasks][ppl]") {
  const test::TempFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "Entry " + std::to_string(1000 + i) + " says that the tide was on time. ";
  const auto corpus = text::TextCorpus::load(write_file(folder, "log.txt", text));
  const auto fixture = test::english_fixture();
  fixture->context().haystack.kind = task::HaystackSpec::Kind::kCorpus;
  fixture->context().haystack.corpus = corpus;
  const auto task = make_task("ppl", fixture->context(), {{"mode", "blocks"}});
  constexpr std::int64_t kLength = 300;
  std::string joined;
  std::set<std::string> entries;
  std::size_t n_entries = 0;
  for (std::int64_t index = 0; index < 4; ++index) {
    const Sample sample = task->make_sample({kLength, std::nullopt}, index, 1);
    const std::string whole = sample.prompt_text + sample.answer_text;
    const auto n_tokens = static_cast<std::int64_t>(fixture->tokenizer().encode(whole).size()) + 1;  // BOS
    CHECK(n_tokens <= kLength);
    CHECK(n_tokens > kLength - 60);  // two sentences at most are left out
    CHECK(sample.candidates == std::vector<std::string>{sample.answer_text});
    // One sentence in front, the rest is scored.
    CHECK(sample.prompt_text.find("Entry ", 1) == std::string::npos);
    for (std::size_t at = whole.find("Entry "); at != std::string::npos; at = whole.find("Entry ", at + 1)) {
      entries.insert(whole.substr(at, 10));
      ++n_entries;
    }
  }
  CHECK(entries.size() == n_entries);  // no sentence in two windows
  CHECK(n_entries > 40);
  // 400 sentences of about 21 tokens among four windows.
  const auto largest = task->largest_length_tokens(1);
  REQUIRE(largest.has_value());
  CHECK(*largest > 1500);
  CHECK(*largest < 3000);
  CHECK_THROWS_AS(task->make_sample({*largest + 200, std::nullopt}, 3, 1), task::TooLongError);
  CHECK_NOTHROW(task->make_sample({*largest - 60, std::nullopt}, 3, 1));
}
