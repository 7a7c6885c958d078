#include "harness/store/config_diff.h"

#include "tests/support/catch.h"

namespace fathom::store {

TEST_CASE("config_diff: changed, removed and added keys, with their section", "[store]") {
  const auto lines =
      config_differences("seed = 1\n\n[model]\nposition = rope\nscaling = none\n[sweep]\nsamples = 10\n",
                         "seed = 2\n[model]\nposition = rope\n# a comment\n[sweep]\nsamples = 10\ndepths =\n");
  CHECK(lines == std::vector<std::string>{"seed: 1 before, 2 now", "model.scaling: none before, absent now",
                                          "sweep.depths: absent before, (empty) now"});
  CHECK(config_differences("a = 1\n", "a=1").empty());
  CHECK(config_differences("", "").empty());
}

}  // namespace fathom::store
