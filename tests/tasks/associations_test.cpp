#include <algorithm>
#include <set>

#include "harness/core/text_util.h"
#include "tasks/association_table.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using task::Sample;

std::unique_ptr<task::Task> make_assoc(const task::TaskContext& context,
                                       const std::map<std::string, std::string>& options = {}) {
  const task::TaskEntry& entry = tasks::registry().at("assoc");
  return entry.make(entry, task::TaskVariant::kBalanced, OptionSource("[task.assoc]", options), context);
}

/// The first four letters of the words that mean something, or all three of a short one.
std::set<std::string> stems(const std::string& text) {
  static const std::set<std::string> kStopWords = {"the",   "has",  "was",  "for",  "and",  "name",
                                                   "only",  "give", "who",  "from", "ever", "since",
                                                   "every", "with", "went", "down", "that"};
  std::set<std::string> out;
  std::string word;
  for (const char c : ascii_lower(text) + " ") {
    if (c >= 'a' && c <= 'z') {
      word += c;
      continue;
    }
    if (word.size() >= 3 && kStopWords.count(word) == 0) out.insert(word.substr(0, 4));
    word.clear();
  }
  return out;
}

std::string last_line(const std::string& text) {
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

TEST_CASE("assoc: 72 pairs in English, 61 in Chinese, targets unique in their kind", "[tasks][assoc]") {
  const auto english = test::english_fixture();
  const auto rows = tasks::associations(english->context());
  CHECK(rows.size() == 72);
  std::set<std::pair<std::string, std::string>> targets;
  for (const tasks::Association& row : rows) CHECK(targets.emplace(row.topic, row.target).second);
  const test::TaskFixture chinese("zh", std::make_unique<test::TripletTokenizer>());
  CHECK(tasks::associations(const_cast<test::TaskFixture&>(chinese).context()).size() == 61);
}

TEST_CASE("assoc: needle and question share no stem; with literal = 1 they do", "[tasks][assoc]") {
  const auto fixture = test::english_fixture();
  const text::PromptPack& pack = *fixture->context().pack;
  for (const tasks::Association& row : tasks::associations(fixture->context())) {
    for (const char* form : {"", ".inv"}) {
      const std::string needle =
          text::PromptPack::render(pack.text("assoc", "needle_" + row.topic + form), {{"name", "X"}, {"cue", row.cue}});
      for (const std::string& asked : {row.target, row.hop2}) {
        const std::string question =
            text::PromptPack::render(pack.text("assoc", "question_" + row.topic), {{"target", asked}});
        INFO(needle << " / " << question);
        std::vector<std::string> shared;
        const auto a = stems(needle);
        const auto b = stems(question);
        std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(shared));
        CHECK(shared.empty());
      }
    }
  }
  const Sample literal = make_assoc(fixture->context(), {{"literal", "1"}})->make_sample({1500, 5000}, 0, 1);
  const Sample plain = make_assoc(fixture->context())->make_sample({1500, 5000}, 0, 1);
  CHECK(literal.references == plain.references);
  CHECK(last_line(literal.prompt_text) != last_line(plain.prompt_text));
}

TEST_CASE("assoc: distractors are other persons, at least a fifth of the text away", "[tasks][assoc]") {
  const auto fixture = test::english_fixture();
  const auto task = make_assoc(fixture->context());
  for (const std::int32_t depth : {0, 4000, 10000}) {
    for (std::int64_t index = 0; index < 5; ++index) {
      const Sample sample = task->make_sample({4000, depth}, index, 1);
      CHECK(sample.needles.size() == 4);
      CHECK(std::set<std::string>(sample.labels.begin(), sample.labels.end()).size() == 4);
      const auto gold =
          std::find_if(sample.needles.begin(), sample.needles.end(), [](const auto& n) { return n.gold; });
      for (const task::NeedlePlace& needle : sample.needles) {
        if (needle.gold) continue;
        CHECK(std::abs(*needle.requested_depth_bp - *gold->requested_depth_bp) >= 2000);
      }
    }
  }
}

TEST_CASE("assoc: two steps ask for the country, and no two needles stand in one", "[tasks][assoc]") {
  const auto fixture = test::english_fixture();
  const auto task = make_assoc(fixture->context(), {{"hop", "2"}, {"distractors", "6"}});
  const auto rows = tasks::associations(fixture->context());
  for (std::int64_t index = 0; index < 20; ++index) {
    const Sample sample = task->make_sample({3000, 5000}, index, 1);
    std::multiset<std::string> countries;
    for (const tasks::Association& row : rows) {
      if (!row.hop2.empty() && sample.prompt_text.find(row.cue) != std::string::npos) countries.insert(row.hop2);
    }
    CHECK(countries.size() == 7);
    CHECK(std::set<std::string>(countries.begin(), countries.end()).size() == 7);
  }
}

TEST_CASE("assoc: a vocabulary without cue words is refused", "[tasks][assoc][errors]") {
  test::TaskFixture fixture("synthetic", std::make_unique<text::WordTokenizer>(text::VocabularySpec{}, false));
  try {
    make_assoc(fixture.context());
    FAIL("no error");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()) ==
          "assoc needs a vocabulary with at least 16 cue and target words, but this model's has 0 and 0");
  }
}
