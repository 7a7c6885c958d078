#pragma once
// Inputs and answers of the algorithmic tasks (tasks specification 2.5).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/random.h"
#include "harness/task/task.h"

namespace fathom::tasks {

/// One question: values for the slots of the pack's text, and the answer.
struct AlgorithmItem {
  text::SlotValues slots;
  std::string answer;
};

/// One line of the specification's table.
struct AlgorithmKind {
  std::string_view name;      ///< of the task
  std::string_view pack_key;  ///< of its text in [algo]
  std::string_view summary;
  std::int64_t trained_size;  ///< L: training shows sizes up to it, tests go to twice it
  AlgorithmItem (*make)(const task::TaskContext& context, std::int64_t size, RngStream& rng);
  bool needs_digits;       ///< a closed vocabulary needs the words 0 to 9
  std::int64_t n_answers;  ///< size of the closed set of answers; 0 = practically endless
};

const std::vector<AlgorithmKind>& algorithm_kinds();

/// Sizes that can be asked for, rising: 2…2L; for `cmd` only those that an order can have.
std::vector<std::int64_t> algorithm_sizes(const AlgorithmKind& kind);

/// Steps of an order of the `cmd` grammar, as its words say; what the answers are checked against.
/// \param words  the pack's eleven: four acts, two sides, circle, double, triple, then, after.
std::vector<std::string> run_order(const std::vector<std::string>& order, const std::vector<std::string>& words);

}  // namespace fathom::tasks
