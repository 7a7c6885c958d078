#include <map>
#include <set>

#include "harness/core/text_util.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using task::Sample;
using task::TaskVariant;

std::unique_ptr<task::Task> make_vt(const task::TaskContext& context,
                                    const std::map<std::string, std::string>& options = {},
                                    TaskVariant variant = TaskVariant::kBalanced) {
  const task::TaskEntry& entry = tasks::registry().at("vt");
  return entry.make(entry, variant, OptionSource("[task.vt]", options), context);
}

/// Follows the assignments of a closed-vocabulary prompt, in order of the text.
std::vector<std::string> variables_equal_to(const std::string& prompt, const std::string& value) {
  const auto words = test::words_of(prompt);
  std::map<std::string, std::string> held;
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] != "set") continue;
    const auto from = held.find(words[i + 2]);
    held[words[i + 1]] = from == held.end() ? words[i + 2] : from->second;
    names.push_back(words[i + 1]);
  }
  std::vector<std::string> equal;
  for (const std::string& name : names) {
    if (held[name] == value) equal.push_back(name);
  }
  return equal;
}

}  // namespace

TEST_CASE("vt: executing the assignments in text order gives the references", "[tasks][vt]") {
  const auto fixture = test::synthetic_fixture();
  for (const TaskVariant variant : {TaskVariant::kBalanced, TaskVariant::kRuler}) {
    for (const char* chains : {"1", "4"}) {
      const auto task = make_vt(fixture->context(), {{"chains", chains}}, variant);
      const std::int64_t length = std::max<std::int64_t>(600, task->smallest_length_tokens(1));
      for (std::int64_t i = 0; i < 11; ++i) {
        const Sample sample = task->make_sample({length, std::nullopt}, i, 1);
        const std::string value = test::words_of(sample.prompt_text).back();
        CHECK(variables_equal_to(sample.prompt_text, value) == sample.references);
        CHECK(sample.references.size() == 5);
        CHECK(sample.needles.size() == static_cast<std::size_t>(5 * std::stoi(chains)));
      }
    }
  }
}

TEST_CASE("vt: the worked example shares no name or value with the question", "[tasks][vt]") {
  const auto fixture = test::english_fixture();
  const auto task = make_vt(fixture->context());
  const Sample sample = task->make_sample({4096, std::nullopt}, 2, 1);
  const std::string intro = "The text below contains variable assignments.";
  const std::size_t second = sample.prompt_text.find(intro, 1);
  REQUIRE(second != std::string::npos);
  const std::string example = sample.prompt_text.substr(0, second);
  const std::string real = sample.prompt_text.substr(second);
  CHECK(ends_with(example, "\n\n"));
  for (const std::string& name : sample.references) CHECK(example.find(name) == std::string::npos);
  const std::string marker = "Answer: the 5 variables that end up equal to ";
  const std::size_t at = example.find(marker);
  REQUIRE(at != std::string::npos);
  const auto answer = test::words_of(example.substr(at + marker.size()));
  REQUIRE(answer.size() == 7);  // value, "are", five names
  const std::set<std::string> names(answer.begin() + 2, answer.end());
  CHECK(names.size() == 5);
  for (const std::string& name : names) {
    CHECK(name.size() == 3);
    CHECK(real.find(name + " =") == std::string::npos);
  }
  CHECK(real.find(answer[0]) == std::string::npos);
  // Within 500 tokens, and close to it.
  const auto tokens = fixture->tokenizer().encode(example).size();
  CHECK(tokens <= 500);
  CHECK(tokens > 440);
}

TEST_CASE("vt: examples = 0 drops the worked example and is recorded", "[tasks][vt]") {
  const auto fixture = test::english_fixture();
  const Sample with = make_vt(fixture->context())->make_sample({1000, std::nullopt}, 0, 1);
  const Sample without = make_vt(fixture->context(), {{"examples", "0"}})->make_sample({1000, std::nullopt}, 0, 1);
  CHECK(with.key.find("|chains=1;examples=1;hops=4|") != std::string::npos);
  CHECK(without.key.find("|chains=1;examples=0;hops=4|") != std::string::npos);
  CHECK(without.prompt_text.find("variable assignments", 60) == std::string::npos);
  CHECK(without.haystack_units > with.haystack_units);

  const auto closed = test::synthetic_fixture();
  CHECK(make_vt(closed->context())->canonical_options() == "chains=1;hops=4;examples=0");
  const Sample shown = make_vt(closed->context(), {{"examples", "1"}})->make_sample({400, std::nullopt}, 0, 1);
  CHECK(shown.prompt_text.find(" next ") != std::string::npos);
}

TEST_CASE("vt: hops sets the length of the chain", "[tasks][vt]") {
  const auto fixture = test::synthetic_fixture();
  const Sample sample = make_vt(fixture->context(), {{"hops", "1"}})->make_sample({100, std::nullopt}, 0, 1);
  CHECK(sample.references.size() == 2);
  CHECK(sample.generation_budget == 2);
  CHECK(sample.answer_text == " " + sample.references[0] + " " + sample.references[1]);
}

TEST_CASE("vt: more names than the vocabulary has are refused", "[tasks][vt][errors]") {
  const auto fixture = test::synthetic_fixture();
  try {
    make_vt(fixture->context(), {{"chains", "32"}, {"hops", "8"}});
    FAIL("no error");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()) == "vt: chains = 32 with hops = 8 needs 288 names, but there are 200");
  }
  try {
    make_vt(fixture->context(), {{"chains", "10"}}, TaskVariant::kRuler);
    FAIL("no error");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()) ==
          "vt@ruler: chains = 10 with hops = 4 makes 50 lines, but RULER's prose has 40 depths; use fewer, noise, or "
          "@balanced");
  }
}

TEST_CASE("vt: values are five digits, names five capitals that stand nowhere else", "[tasks][vt]") {
  const auto fixture = test::english_fixture();
  fixture->context().haystack.kind = task::HaystackSpec::Kind::kProse;
  const auto task = make_vt(fixture->context());
  for (std::int64_t i = 0; i < 5; ++i) {
    const Sample sample = task->make_sample({3000, std::nullopt}, i, 1);
    for (const std::string& name : sample.references) {
      CHECK(name.size() == 5);
      std::size_t found = 0;
      const std::string lower = ascii_lower(sample.prompt_text);
      for (std::size_t at = lower.find(ascii_lower(name)); at != std::string::npos;
           at = lower.find(ascii_lower(name), at + 1))
        ++found;
      CHECK(found == (name == sample.references.back() ? 1U : 2U));
    }
  }
}
