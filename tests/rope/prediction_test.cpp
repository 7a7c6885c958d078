// The summary of one rotation, against the functions and figures it is made of.

#include "harness/rope/prediction.h"

#include <cmath>

#include "harness/rope/angle.h"
#include "tests/rope/theory_presets.h"

namespace fathom::rope {
namespace {

RotationPrediction llama2_at(std::int64_t tested, const std::vector<double>& inv_freq) {
  return predict_rotation({inv_freq, 0, 1e4, 4096, tested}, 1e4);
}

TEST_CASE("prediction: plain extrapolation shows unseen angles in every channel that never came round",
          "[rope][theory]") {
  const RotationPrediction got = llama2_at(8192, default_inv_freq(128, 1e4));
  CHECK(got.wrapped_trained == 46);
  CHECK(got.wrapped_tested == 50);
  CHECK(got.unseen_channels == 18);
  CHECK(got.critical_dimension == 92);
  CHECK(got.first_negative == 1707);
  CHECK_THAT(got.longest_period, Catch::Matchers::WithinRel(54410.14313077674, 1e-12));
}

TEST_CASE("prediction: interpolation by the whole factor shows none, and by less some", "[rope][theory]") {
  const auto interpolated = frequencies_of("linear", 2, {128, 1e4, 4096}).inv_freq;
  CHECK(llama2_at(8192, interpolated).unseen_channels == 0);
  CHECK(llama2_at(8193, interpolated).unseen_channels == 18);
  CHECK(llama2_at(8192, frequencies_of("yarn", 2, {128, 1e4, 4096}).inv_freq).unseen_channels == 0);
}

TEST_CASE("prediction: channels that stand still are counted, not predicted", "[rope][theory]") {
  const auto half = frequencies_of("proportional", 1, {128, 1e4, 4096}, {{"share", "0.5"}}).inv_freq;
  const RotationPrediction got = llama2_at(4096, half);
  CHECK(got.n_channels == 32);
  CHECK(got.n_still == 32);
  CHECK(got.first_negative.has_value());
  CHECK_FALSE(got.first_negative_head.has_value());
  CHECK(std::isfinite(got.longest_period));
  const RotationPrediction none = llama2_at(4096, std::vector<double>(64, 0.0));
  CHECK(none.n_channels == 0);
  CHECK(none.distinct_bf16 == 769);
}

}  // namespace
}  // namespace fathom::rope
