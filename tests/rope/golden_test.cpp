// Runs the check of every golden file about positions, and sees to it that no file and no case is left out.

#include <filesystem>
#include <map>

#include "tests/rope/golden_checks.h"

namespace fathom::rope {
namespace {

using test::GoldenFile;

const std::map<std::string, GoldenCheck>& golden_checks() {
  static const std::map<std::string, GoldenCheck> checks = {
      {"position_remap.json", check_position_remap},
      {"rope_cos_sin_long.json", check_cos_sin_long},
      {"rope_default.json", check_default},
      {"rope_dynamic_ntk.json", check_dynamic},
      {"rope_linear.json", check_linear},
      {"rope_llama3.json", check_llama3},
      {"rope_longrope.json", check_longrope},
      {"rope_ntk_static.json", check_ntk},
      {"rope_proportional.json", check_proportional},
      {"rope_yarn.json", check_yarn},
  };
  return checks;
}

TEST_CASE("golden: every case of every file about positions is checked", "[rope][golden]") {
  for (const auto& [name, check] : golden_checks()) {
    DYNAMIC_SECTION(name) {
      GoldenFile golden(name);
      check(golden);
      CHECK(golden.n_cases() > 0);
      CHECK(golden.unchecked() == std::vector<std::string>());
    }
  }
}

}  // namespace
}  // namespace fathom::rope
