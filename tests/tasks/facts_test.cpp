#include <algorithm>

#include "tasks/fact_world.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;
using task::Sample;
using tasks::FactEvent;

std::unique_ptr<task::Task> make_facts(const task::TaskContext& context, const std::string& question) {
  const task::TaskEntry& entry = tasks::registry().at("facts");
  return entry.make(entry, task::TaskVariant::kBalanced, OptionSource("[task.facts]", {{"question", question}}),
                    context);
}

/// Reads the notes of a closed-vocabulary prompt in text order and answers `ask SUBJECT [before PLACE]`.
std::string answer_from_text(const std::string& prompt) {
  const auto words = test::words_of(prompt);
  std::map<std::string, std::string> place_of;
  std::map<std::string, std::string> holder;
  std::map<std::string, std::vector<std::string>> seen;
  const auto move = [&](const std::string& object, const std::string& place) {
    place_of[object] = place;
    seen[object].push_back(place);
  };
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i] == "to") {
      place_of[words[i - 1]] = words[i + 1];
      for (const auto& [object, person] : holder) {
        if (person == words[i - 1]) move(object, words[i + 1]);
      }
    } else if (words[i] == "get") {
      holder[words[i + 1]] = words[i - 1];
      move(words[i + 1], place_of[words[i - 1]]);
    } else if (words[i] == "put") {
      holder.erase(words[i + 1]);
    }
  }
  if (words[words.size() - 2] != "before") return place_of[words.back()];
  const auto& places = seen[words[words.size() - 3]];
  const auto at = std::find(places.begin(), places.end(), words.back());
  return at == places.begin() || at == places.end() ? "" : *(at - 1);
}

}  // namespace

TEST_CASE("facts: reading the notes in text order gives the answer", "[tasks][facts]") {
  const auto fixture = test::synthetic_fixture();
  for (const char* question : {"1", "2", "3"}) {
    const auto task = make_facts(fixture->context(), question);
    for (std::int64_t index = 0; index < 30; ++index) {
      INFO(question << " " << index);
      const Sample sample = task->make_sample({400, std::nullopt}, index, 1);
      CHECK(answer_from_text(sample.prompt_text) == sample.references.front());
      CHECK(sample.labels.size() == (question[0] == '3' ? 7 : 8));
    }
  }
}

TEST_CASE("facts: without a supporting note the answer changes, without any other it does not", "[tasks][facts]") {
  for (const int kind : {1, 2, 3}) {
    for (std::int64_t i = 0; i < 50; ++i) {
      RngStream rng(RngKey("worlds").child(kind).child(i));
      const tasks::FactWorld world = tasks::draw_fact_world(kind, rng);
      CHECK(world.events.size() == static_cast<std::size_t>(6 + 2 * kind));
      CHECK(world.support.size() == static_cast<std::size_t>(kind));
      for (std::size_t e = 0; e < world.events.size(); ++e) {
        std::vector<FactEvent> without = world.events;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(e));
        const bool supports = std::find(world.support.begin(), world.support.end(), e) != world.support.end();
        CHECK((tasks::answer_fact_question(without, world.question) == world.answer) == !supports);
      }
    }
  }
}

TEST_CASE("facts: the story holds no word of the notes", "[tasks][facts]") {
  const auto fixture = test::english_fixture();
  const auto task = make_facts(fixture->context(), "1");
  const Sample sample = task->make_sample({4000, std::nullopt}, 1, 1);
  std::size_t mentions = 0;
  for (const std::string& place : sample.labels) {
    for (std::size_t at = sample.prompt_text.find(place); at != std::string::npos;
         at = sample.prompt_text.find(place, at + 1)) {
      ++mentions;
    }
  }
  std::size_t notes = 0;
  for (std::size_t at = sample.prompt_text.find(" is now at the "); at != std::string::npos;
       at = sample.prompt_text.find(" is now at the ", at + 1)) {
    ++notes;
  }
  CHECK(mentions == notes);
  CHECK(notes >= 2);
}
