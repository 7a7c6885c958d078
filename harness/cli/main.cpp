#include <cstdlib>
#include <string>
#include <vector>

#include "harness/cli/command.h"
#include "harness/cli/console.h"

int main(int argc, char** argv) {
  // Spinning OpenMP threads starve everything else on a busy machine; must be set before the first parallel region.
  setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
  fathom::cli::install_stop_handler();
  return fathom::cli::run_program({argv + 1, argv + argc});
}
