#pragma once
// `fathom run --dry-run`: what a run would ask, and how long that takes here.

#include <string>

#include "harness/cli/run_session.h"

namespace fathom::cli {

/// Prints cells, samples, tokens and the estimated time of every variant. Measures the machine for about a second.
void dry_run(RunSession& session);

/// Why answers of this variant cost a prompt for every token, and what to set instead; empty if they do not.
std::string recomputation_note(const RunSession& session, const SessionVariant& variant);

}  // namespace fathom::cli
