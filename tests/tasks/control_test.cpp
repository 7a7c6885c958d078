// Controls: what each takes out of a sample, and what it leaves (tasks specification 3.1).

#include <algorithm>
#include <functional>

#include "harness/core/text_util.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using task::Control;
using task::Sample;

constexpr std::int64_t kControlLength = 2500;

bool holds_any(const Sample& sample) {
  return std::any_of(sample.references.begin(), sample.references.end(), [&sample](const std::string& reference) {
    return sample.prompt_text.find(reference) != std::string::npos;
  });
}

void for_each_control(const std::function<void(Control, const Sample&, const Sample&)>& visit) {
  const auto fixture = test::english_fixture();
  for (const task::TaskEntry& entry : tasks::registry().entries()) {
    const auto task = entry.make(entry, task::TaskVariant::kBalanced, {}, fixture->context());
    if (!task->sweeps_length()) continue;
    const std::int64_t length = std::max(kControlLength, task->smallest_length_tokens(1) + 50);
    const Sample plain = task->make_sample({length, std::nullopt}, 1, 1);
    for (const Control control : task->controls()) {
      INFO(entry.name << " " << task::to_string(control));
      visit(control, plain, task->make_sample({length, std::nullopt, control}, 1, 1));
    }
  }
}

}  // namespace

TEST_CASE("controls: each has facts, length and a key of its own", "[tasks][controls]") {
  for_each_control([](Control control, const Sample& plain, const Sample& sample) {
    CHECK(sample.control == control);
    CHECK(sample.key == plain.key + "|c=" + std::string(task::to_string(control)));
    CHECK(sample.address != plain.address);
    if (control != Control::kWrongKey) CHECK(sample.references == plain.references);
    CHECK(sample.answer_text == plain.answer_text);
    CHECK(sample.candidates.front() == sample.answer_text);
    CHECK(sample.slack_tokens() >= 0);
  });
}

TEST_CASE("controls: without needle the answer stands nowhere, and filler takes its place", "[tasks][controls]") {
  for_each_control([](Control control, const Sample& plain, const Sample& sample) {
    if (control != Control::kNoNeedle) return;
    // Notes that no answer needs name places too.
    if (sample.task != "facts") CHECK(!holds_any(sample));
    CHECK(sample.haystack_units >= plain.haystack_units);
    CHECK(std::none_of(sample.needles.begin(), sample.needles.end(), [](const auto& each) { return each.gold; }));
  });
}

TEST_CASE("controls: needle only and oracle keep the answer and drop the filler", "[tasks][controls]") {
  for_each_control([](Control control, const Sample& plain, const Sample& sample) {
    if (control != Control::kNeedleOnly && control != Control::kOracle) return;
    CHECK(holds_any(sample));
    CHECK(sample.prompt_tokens() < plain.prompt_tokens() / 2);
  });
}

TEST_CASE("controls: a wrong key changes the question only, and any value present is a false hit",
          "[tasks][controls]") {
  for_each_control([](Control control, const Sample& plain, const Sample& sample) {
    if (control != Control::kWrongKey) return;
    CHECK(sample.prompt_text != plain.prompt_text);
    CHECK(holds_any(sample));
    CHECK(sample.haystack_units <= plain.haystack_units + 2);
    CHECK(test::score_reply(test::main_scorer(sample), sample, sample.references.back()).value() > 0);
  });
}

TEST_CASE("controls: a closed book holds the question but no answer", "[tasks][controls]") {
  for_each_control([](Control control, const Sample& plain, const Sample& sample) {
    if (control != Control::kClosedBook) return;
    CHECK(!holds_any(sample));
    CHECK(sample.prompt_tokens() < plain.prompt_tokens());
    CHECK(sample.needles.empty());
  });
}

TEST_CASE("controls: the tasks have those of the specification", "[tasks][controls]") {
  const auto fixture = test::english_fixture();
  const auto names = [&fixture](std::string_view task) {
    const task::TaskEntry& entry = tasks::registry().at(task);
    std::string text;
    for (const Control each : entry.make(entry, task::TaskVariant::kBalanced, {}, fixture->context())->controls()) {
      text += std::string(task::to_string(each)) + " ";
    }
    return text;
  };
  for (const char* task : {"niah_single_2", "niah_multikey_2", "grid", "kv", "vt", "assoc", "facts"}) {
    CHECK(names(task) == "no_needle needle_only wrong_key ");
  }
  CHECK(names("passkey") == "no_needle needle_only ");
  CHECK(names("qa_1") == "closed_book oracle ");
  CHECK(names("mdqa") == "closed_book oracle ");
  CHECK(names("cwe") == "closed_book ");
  CHECK(names("fwe") == "closed_book ");
}
