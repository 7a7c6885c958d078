#pragma once
// Checks of whole golden files, one function a file; golden_test.cpp runs them and sees to it that no case is left out.

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/rope/rope_scaling.h"
#include "tests/support/golden_file.h"

namespace fathom::rope {

using GoldenCheck = void (*)(test::GoldenFile&);

void check_alibi(test::GoldenFile& golden);
void check_attention_temperature(test::GoldenFile& golden);
void check_inkling(test::GoldenFile& golden);
void check_other_schemes(test::GoldenFile& golden);
void check_position_remap(test::GoldenFile& golden);
void check_precision(test::GoldenFile& golden);
void check_base_lower_bound(test::GoldenFile& golden);
void check_cos_sin_long(test::GoldenFile& golden);
void check_critical_dimension(test::GoldenFile& golden);
void check_default(test::GoldenFile& golden);
void check_dynamic(test::GoldenFile& golden);
void check_linear(test::GoldenFile& golden);
void check_llama3(test::GoldenFile& golden);
void check_longrope(test::GoldenFile& golden);
void check_ntk(test::GoldenFile& golden);
void check_periods(test::GoldenFile& golden);
void check_proportional(test::GoldenFile& golden);
void check_seed_examples(test::GoldenFile& golden);
void check_sinusoidal(test::GoldenFile& golden);
void check_t5_buckets(test::GoldenFile& golden);
void check_yarn(test::GoldenFile& golden);

/// Fails for a parameter of the case that the check would silently ignore.
inline void require_known_keys(const nlohmann::json& c, const std::set<std::string>& known) {
  for (const auto& [key, value] : c.items()) {
    (void)value;
    INFO("key " << key);
    REQUIRE(known.count(key) == 1);
  }
}

/// Largest |a - b| / |b|; where b is 0, a has to be 0 as well.
inline double worst_relative(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (expected[i] == 0) {
      REQUIRE(values[i] == 0);
      continue;
    }
    worst = std::max(worst, std::abs(values[i] - expected[i]) / std::abs(expected[i]));
  }
  return worst;
}

/// Largest |a - b|.
inline double worst_absolute(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(values[i] - expected[i]));
  return worst;
}

/// The list of a method by name, at one length.
inline RopeFrequencies frequencies_of(const std::string& method, double factor, const RopeGeometry& geometry,
                                      const std::map<std::string, std::string>& options = {},
                                      std::int64_t seq_len = 1) {
  return scalings().at(method).make(factor, OptionSource("[test]", options))->frequencies(geometry, seq_len);
}

}  // namespace fathom::rope
