#pragma once
// `fathom bench MODEL --load`: what a model costs before it says anything.

#include "harness/cli/command.h"

namespace fathom::cli {

/// Time from the start of the program to the first token, and memory while the weights are read, by dtype and length.
/// The time is measured in one process and the memory in another: there the libraries are touched first, so that what
/// is added is the model's. Prints a table, or JSON.
/// \throws ConfigError, ModelError
int bench_load(const Arguments& arguments);

}  // namespace fathom::cli
