// Prefill and decode speed of a checkpoint by phase; not a test. engine_bench MODEL DTYPE LENGTH...

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "harness/checkpoint/checkpoint.h"
#include "harness/engine/torch_language_model.h"

namespace {

double peak_gigabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  using namespace fathom;  // NOLINT
  engine::EngineOptions options;
  options.dtype = argv[2];
  const auto checkpoint = checkpoint::open_checkpoint(argv[1]);
  const auto weights = engine::load_weights(*checkpoint, options);
  const auto model = engine::make_language_model(weights, checkpoint->config(), options);
  fmt::print("{} {}, {}; peak after loading {:.2f} GB\n", model->identity().dtype, model->identity().kernel,
             engine::engine_versions(), peak_gigabytes());
  for (int i = 3; i < argc; ++i) {
    const int length = std::atoi(argv[i]);
    lm::Request request;
    for (int t = 0; t < length; ++t) request.prompt.push_back(static_cast<TokenId>(1000 + t * 7919 % 40000));
    const auto seconds = [&](std::int64_t n_new) {
      request.max_new_tokens = n_new;
      double best = 1e30;
      for (int round = 0; round < (length <= 2048 ? 3 : 1); ++round) {
        const auto begin = std::chrono::steady_clock::now();
        model->complete({request});
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      return best;
    };
    seconds(1);
    const double prefill = seconds(1);
    const double with_decode = seconds(17);
    fmt::print("length {:>6}: prefill {:8.1f} tokens/s ({:.3f} s), decode {:6.1f} tokens/s, peak {:.2f} GB\n", length,
               length / prefill, prefill, 16 / (with_decode - prefill), peak_gigabytes());
  }
  return 0;
}
