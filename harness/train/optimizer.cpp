#include "harness/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fathom::train {
namespace {

constexpr std::int64_t kNormBlock = 8192;

/// Sum of squares with a fixed order of additions, whatever the number of threads.
double sum_of_squares(const float* values, std::int64_t n) {
  const std::int64_t n_blocks = (n + kNormBlock - 1) / kNormBlock;
  std::vector<double> sums(static_cast<std::size_t>(n_blocks), 0.0);
#pragma omp parallel for schedule(static)
  for (std::int64_t block = 0; block < n_blocks; ++block) {
    const std::int64_t begin = block * kNormBlock, end = std::min(n, begin + kNormBlock);
    float lanes[16] = {};
    std::int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
      for (std::int64_t j = 0; j < 16; ++j) lanes[j] += values[i + j] * values[i + j];
    }
    double sum = 0;
    for (; i < end; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    for (const float lane : lanes) sum += static_cast<double>(lane);
    sums[static_cast<std::size_t>(block)] = sum;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

FlatAdamW::FlatAdamW(const AdamWSettings& settings, std::vector<std::uint8_t> decays)
    : settings_(settings), decays_(std::move(decays)), first_(decays_.size(), 0.0F), second_(decays_.size(), 0.0F) {}

void FlatAdamW::step(std::int64_t step, double learning_rate, const float* gradients, float* values) {
  const auto n = static_cast<std::int64_t>(first_.size());
  const double norm = std::sqrt(sum_of_squares(gradients, n));
  const auto clip = static_cast<float>(std::min(1.0, settings_.clip_norm / (norm + 1e-6)));
  const auto beta1 = static_cast<float>(settings_.beta1), beta2 = static_cast<float>(settings_.beta2);
  const double correction1 = 1 - std::pow(settings_.beta1, static_cast<double>(step + 1));
  const double correction2 = 1 - std::pow(settings_.beta2, static_cast<double>(step + 1));
  const auto rate = static_cast<float>(learning_rate / correction1);
  const auto root = static_cast<float>(1 / std::sqrt(correction2));
  const auto epsilon = static_cast<float>(settings_.epsilon);
  const auto shrink = static_cast<float>(learning_rate * settings_.weight_decay);
  float* first = first_.data();
  float* second = second_.data();
  const std::uint8_t* decays = decays_.data();
#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradients[i] * clip;
    first[i] = beta1 * first[i] + (1 - beta1) * g;
    second[i] = beta2 * second[i] + (1 - beta2) * g * g;
    const float kept = values[i] * (1 - shrink * static_cast<float>(decays[i]));
    values[i] = kept - rate * first[i] / (std::sqrt(second[i]) * root + epsilon);
  }
}

}  // namespace fathom::train
