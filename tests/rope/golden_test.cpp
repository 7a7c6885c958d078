// Runs the check of every golden file about positions, and sees to it that no file and no case is left out.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/rope/golden_checks.h"

namespace fathom::rope {
namespace {

using test::GoldenFile;

const std::map<std::string, GoldenCheck>& golden_checks() {
  static const std::map<std::string, GoldenCheck> checks = {
      {"alibi.json", check_alibi},
      {"attention_temperature.json", check_attention_temperature},
      {"inkling_relative_bias.json", check_inkling},
      {"other_position_schemes.json", check_other_schemes},
      {"position_remap.json", check_position_remap},
      {"precision.json", check_precision},
      {"rope_base_lower_bound.json", check_base_lower_bound},
      {"rope_cos_sin_long.json", check_cos_sin_long},
      {"rope_critical_dimension.json", check_critical_dimension},
      {"rope_default.json", check_default},
      {"rope_dynamic_ntk.json", check_dynamic},
      {"rope_linear.json", check_linear},
      {"rope_llama3.json", check_llama3},
      {"rope_longrope.json", check_longrope},
      {"rope_ntk_static.json", check_ntk},
      {"rope_periods.json", check_periods},
      {"rope_proportional.json", check_proportional},
      {"rope_yarn.json", check_yarn},
      {"seed_examples.json", check_seed_examples},
      {"sinusoidal.json", check_sinusoidal},
      {"t5_buckets.json", check_t5_buckets},
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

/// Sources of all tests, for finding out who reads a file.
std::string text_of_all_tests() {
  std::string text;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FATHOM_TEST_DIR)) {
    if (entry.path().extension() != ".cpp" || entry.path().filename() == "golden_test.cpp") continue;
    std::ifstream in(entry.path());
    text.append(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return text;
}

TEST_CASE("golden: every file about positions is checked, here or by the module that it is about", "[rope][golden]") {
  const std::string tests = text_of_all_tests();
  std::size_t n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(FATHOM_TEST_DIR) + "/golden")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".json" || !test::read_golden(name).contains("scheme")) continue;
    INFO(name);
    CHECK((golden_checks().count(name) == 1 || tests.find("\"" + name + "\"") != std::string::npos));
    ++n_files;
  }
  CHECK(n_files >= golden_checks().size());
}

TEST_CASE("golden: a case that no check takes is named", "[rope][golden]") {
  GoldenFile golden("alibi.json");
  golden.each("/cases", [](const nlohmann::json&) {});
  CHECK(golden.unchecked() == std::vector<std::string>{"/examples/0", "/examples/1", "/examples/2"});
}

}  // namespace
}  // namespace fathom::rope
