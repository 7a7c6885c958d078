#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "harness/kernels/log_softmax.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/kernels/log_softmax.h"
#include "harness/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::HWY_NAMESPACE {

// sum(exp(logits - largest)), in double across stretches of 1024.
double sum_of_exponentials_impl(const float* logits, std::int64_t count, float largest) {
  constexpr std::int64_t kStretch = 1024;
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, largest);
  const auto log2e = hn::Set(d, 1.44269504F);
  double total = 0;
  std::int64_t j = 0;
  while (j + n <= count) {
    auto sum = hn::Zero(d);
    for (const std::int64_t end = std::min(count, j + kStretch); j + n <= end; j += n) {
      sum = hn::Add(sum, exp2_vector(d, hn::Mul(hn::Sub(hn::LoadU(d, logits + j), shift), log2e)));
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  for (; j < count; ++j) total += std::exp(static_cast<double>(logits[j]) - static_cast<double>(largest));
  return total;
}

}  // namespace fathom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fathom::kernels {

HWY_EXPORT(sum_of_exponentials_impl);

double log_sum_exp(const float* logits, std::int64_t n) {
  float largest = -std::numeric_limits<float>::infinity();
  bool all_numbers = true;
  for (std::int64_t j = 0; j < n; ++j) {
    largest = std::max(largest, logits[j]);
    all_numbers = all_numbers && !std::isnan(logits[j]);
  }
  if (!all_numbers) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(largest)) return static_cast<double>(largest);
  return static_cast<double>(largest) + std::log(HWY_DYNAMIC_DISPATCH(sum_of_exponentials_impl)(logits, n, largest));
}

std::int64_t argmax(const float* logits, std::int64_t n) {
  return std::max_element(logits, logits + n) - logits;
}

std::int64_t rank_of(const float* logits, std::int64_t n, std::int64_t id) {
  const float own = logits[id];
  return 1 + std::count_if(logits, logits + n, [own](float logit) { return logit > own; });
}

}  // namespace fathom::kernels
#endif  // HWY_ONCE
