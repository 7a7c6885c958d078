#include "tasks/fact_world.h"

#include <algorithm>
#include <array>

#include "harness/core/error.h"

namespace fathom::tasks {
namespace {

constexpr int kNobody = -1;
constexpr int kNowhere = -1;
constexpr std::size_t kBaseEvents = 6;
constexpr std::size_t kEventsPerSupport = 2;
// A world of twelve events fits the hardest question about once in twenty draws.
constexpr int kMostWorldDraws = 100000;

/// Where everybody and everything is, and where the objects have been while they were held.
struct FactState {
  std::array<int, kFactPersons> place_of_person;
  std::array<int, kFactObjects> holder;
  std::array<int, kFactObjects> place_of_object;
  std::array<std::vector<int>, kFactObjects> history;

  FactState() {
    place_of_person.fill(kNowhere);
    holder.fill(kNobody);
    place_of_object.fill(kNowhere);
  }

  int& person_place(int person) { return place_of_person[static_cast<std::size_t>(person)]; }
  int& object_holder(int object) { return holder[static_cast<std::size_t>(object)]; }
  int& object_place(int object) { return place_of_object[static_cast<std::size_t>(object)]; }

  void move_object(int object, int place) {
    object_place(object) = place;
    std::vector<int>& seen = history[static_cast<std::size_t>(object)];
    if (place != kNowhere && (seen.empty() || seen.back() != place)) seen.push_back(place);
  }

  void apply(const FactEvent& event) {
    switch (event.kind) {
      case FactEvent::Kind::kGo:
        person_place(event.person) = event.target;
        for (int object = 0; object < kFactObjects; ++object) {
          if (object_holder(object) == event.person) move_object(object, event.target);
        }
        break;
      case FactEvent::Kind::kTake:
        object_holder(event.target) = event.person;
        move_object(event.target, person_place(event.person));
        break;
      case FactEvent::Kind::kDrop:
        object_holder(event.target) = kNobody;
        break;
    }
  }

  /// What may happen next: persons go elsewhere, take what lies where they are, or put down what they hold.
  bool allows(const FactEvent& event) {
    const int here = person_place(event.person);
    switch (event.kind) {
      case FactEvent::Kind::kGo:
        return here != event.target;
      case FactEvent::Kind::kTake: {
        const int lies = object_place(event.target);
        return here != kNowhere && object_holder(event.target) == kNobody && (lies == kNowhere || lies == here);
      }
      case FactEvent::Kind::kDrop:
        return object_holder(event.target) == event.person;
    }
    return false;
  }
};

int draw_number(std::int64_t bound, RngStream& rng) {
  return static_cast<int>(rng.uniform_index(static_cast<std::uint64_t>(bound)));
}

FactEvent draw_event(RngStream& rng) {
  // Going is what happens most.
  constexpr int kOutOf = 6;
  const int what = draw_number(kOutOf, rng);
  FactEvent event;
  event.kind = what == 0 ? FactEvent::Kind::kDrop : what <= 2 ? FactEvent::Kind::kTake : FactEvent::Kind::kGo;
  event.person = draw_number(kFactPersons, rng);
  event.target = draw_number(event.kind == FactEvent::Kind::kGo ? kFactPlaces : kFactObjects, rng);
  return event;
}

std::vector<FactEvent> draw_events(std::size_t n_events, RngStream& rng) {
  FactState state;
  std::vector<FactEvent> events;
  while (events.size() < n_events) {
    const FactEvent event = draw_event(rng);
    if (!state.allows(event)) continue;
    state.apply(event);
    events.push_back(event);
  }
  return events;
}

FactQuestion draw_question(int kind, RngStream& rng) {
  return {kind, draw_number(kind == 1 ? kFactPersons : kFactObjects, rng), draw_number(kFactPlaces, rng)};
}

std::vector<std::size_t> find_support(const std::vector<FactEvent>& events, const FactQuestion& question, int answer) {
  std::vector<std::size_t> support;
  for (std::size_t i = 0; i < events.size(); ++i) {
    std::vector<FactEvent> without = events;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    if (answer_fact_question(without, question) != answer) support.push_back(i);
  }
  return support;
}

std::ptrdiff_t count_moves(const std::vector<FactEvent>& events, const FactQuestion& question) {
  int person = question.subject;
  if (question.kind != 1) {
    FactState state;
    for (const FactEvent& event : events) state.apply(event);
    person = state.object_holder(question.subject);
  }
  return std::count_if(events.begin(), events.end(), [person](const FactEvent& event) {
    return event.kind == FactEvent::Kind::kGo && event.person == person;
  });
}

}  // namespace

std::optional<int> answer_fact_question(const std::vector<FactEvent>& events, const FactQuestion& question) {
  FactState state;
  for (const FactEvent& event : events) state.apply(event);
  if (question.kind == 1) {
    const int place = state.person_place(question.subject);
    return place == kNowhere ? std::nullopt : std::optional<int>(place);
  }
  if (state.object_holder(question.subject) == kNobody) return std::nullopt;
  if (question.kind == 2) {
    const int place = state.object_place(question.subject);
    return place == kNowhere ? std::nullopt : std::optional<int>(place);
  }
  const std::vector<int>& seen = state.history[static_cast<std::size_t>(question.subject)];
  const auto found = std::find(seen.begin(), seen.end(), question.place);
  const bool once = std::count(seen.begin(), seen.end(), question.place) == 1;
  if (!once || found == seen.begin()) return std::nullopt;
  return *(found - 1);
}

FactWorld draw_fact_world(int question_kind, RngStream& rng) {
  const auto n_support = static_cast<std::size_t>(question_kind);
  for (int attempt = 0; attempt < kMostWorldDraws; ++attempt) {
    FactWorld world;
    world.events = draw_events(kBaseEvents + kEventsPerSupport * n_support, rng);
    world.question = draw_question(question_kind, rng);
    const std::optional<int> answer = answer_fact_question(world.events, world.question);
    if (!answer || count_moves(world.events, world.question) < 2) continue;
    world.answer = *answer;
    world.support = find_support(world.events, world.question, world.answer);
    if (world.support.size() == n_support) return world;
  }
  FATHOM_CHECK(false, "no world fits the question");
}

}  // namespace fathom::tasks
