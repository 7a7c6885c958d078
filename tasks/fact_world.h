#pragma once
// A small simulated world of persons, places and objects (tasks specification 2.7).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "harness/core/random.h"

namespace fathom::tasks {

inline constexpr std::int64_t kFactPersons = 4;
inline constexpr std::int64_t kFactPlaces = 8;
inline constexpr std::int64_t kFactObjects = 3;

/// Persons, places and objects are numbers from 0.
struct FactEvent {
  enum class Kind { kGo, kTake, kDrop };
  Kind kind = Kind::kGo;
  int person = 0;
  int target = 0;  ///< a place (go) or an object
};

/// 1: where is person `subject`; 2: where is object `subject`, which is held; 3: where was it right before it came to
/// `place`.
struct FactQuestion {
  int kind = 1;
  int subject = 0;
  int place = 0;
};

/// The place asked for; nothing if the events do not say.
std::optional<int> answer_fact_question(const std::vector<FactEvent>& events, const FactQuestion& question);

struct FactWorld {
  std::vector<FactEvent> events;
  FactQuestion question;
  int answer = 0;
  std::vector<std::size_t> support;  ///< events without which the answer changes; all others may go
};

/// 6 events and 2 for every supporting note; the person asked for, or the holder, goes at least twice.
FactWorld draw_fact_world(int question_kind, RngStream& rng);

}  // namespace fathom::tasks
