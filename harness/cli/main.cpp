#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/command.h"
#include "harness/cli/console.h"

namespace {

/// Commands that compute on several threads. The others spare themselves a second start, LibTorch's loading included.
constexpr std::string_view kThreadedCommands[] = {"bench", "doctor", "logits", "run", "train"};

bool is_threaded(std::string_view command) {
  return std::find(std::begin(kThreadedCommands), std::end(kThreadedCommands), command) != std::end(kThreadedCommands);
}

/// OpenMP threads that spin at barriers starve everything else on a busy machine, themselves included: a training was
/// measured at a fifth of its speed. The OpenMP library reads this setting when it is loaded, before main(), so the
/// program starts itself again.
void restart_with_passive_waiting(char** argv) {
  if (argv[1] == nullptr || !is_threaded(argv[1])) return;
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  execv("/proc/self/exe", argv);
  // Where that is not possible (no /proc), the program works all the same.
}

}  // namespace

int main(int argc, char** argv) {
  restart_with_passive_waiting(argv);
  fathom::cli::install_stop_handler();
  return fathom::cli::run_program({argv + 1, argv + argc});
}
