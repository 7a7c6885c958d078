#pragma once
// The built-in associations: what a needle mentions and what a question names (tasks/data/associations.csv).

#include <cstdint>
#include <string>
#include <vector>

#include "harness/task/task.h"

namespace fathom::tasks {

/// One pair in the pack's language.
struct Association {
  std::string id;
  std::string topic;  ///< "landmark", "profession", "dish", "book", "music"; "pair" in a closed vocabulary
  std::string cue;
  std::string target;
  std::string hop2;                  ///< empty: one step only
  std::vector<std::string> exclude;  ///< ids that must not stand beside it
};

/// The pairs that the pack's language has; in a closed vocabulary cue word i belongs to target word i.
/// \throws ConfigError  for a language without pairs, or a closed vocabulary without cue and target words.
std::vector<Association> associations(const task::TaskContext& context);

}  // namespace fathom::tasks
