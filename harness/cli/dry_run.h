#pragma once
// `fathom run --dry-run`: what a run would ask, and how long that takes here.

#include <cstdint>
#include <string>
#include <vector>

#include "harness/cli/run_session.h"

namespace fathom::cli {

/// Prints cells, samples, tokens and the estimated time of every variant. Measures the machine for about a second.
void dry_run(RunSession& session);

/// Why answers at these lengths (RunSession::recomputed_lengths) cost a prompt for every token, and what to set
/// instead.
std::string recomputation_note(const std::vector<std::int64_t>& lengths);

}  // namespace fathom::cli
