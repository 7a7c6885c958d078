#include "harness/analysis/paired_tests.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "harness/core/error.h"

namespace fathom::analysis {
namespace {

/// Sums that should be equal differ by rounding; sums this near, relative to the largest possible one, are ties.
constexpr double kTieShare = 1e-9;
/// Largest number of samples whose sign patterns are all tried.
constexpr std::size_t kMaxEnumerated = 13;
/// Steps finer than 1/2520 (divisible by 1 to 10) are not looked for.
constexpr std::int64_t kMaxStepsPerUnit = 2520;
/// Sums further out than this many standard deviations have a chance below 2 exp(-12^2 / 2) = 1e-31 (Hoeffding 1963).
constexpr double kCutDeviations = 12;

/// The magnitudes as whole numbers of a common step, or nothing.
std::optional<std::vector<std::int64_t>> whole_steps(const std::vector<double>& magnitudes) {
  for (std::int64_t per_unit = 1; per_unit <= kMaxStepsPerUnit; ++per_unit) {
    const auto scale = static_cast<double>(per_unit);
    const bool fits = std::all_of(magnitudes.begin(), magnitudes.end(),
                                  [&](double m) { return std::abs(m * scale - std::round(m * scale)) < 1e-7 * scale; });
    if (!fits) continue;
    std::vector<std::int64_t> steps;
    steps.reserve(magnitudes.size());
    for (const double m : magnitudes) steps.push_back(static_cast<std::int64_t>(std::llround(m * scale)));
    // A common divisor would only make the table longer.
    std::int64_t divisor = 0;
    for (const std::int64_t step : steps) divisor = std::gcd(divisor, step);
    for (std::int64_t& step : steps) step /= std::max<std::int64_t>(1, divisor);
    return steps;
  }
  return std::nullopt;
}

/// P(|sum of +-steps| >= observed) by adding one sign at a time. Nothing if that costs more than allowed.
std::optional<double> exact_tail(const std::vector<std::int64_t>& steps, std::int64_t observed, std::int64_t max_cost) {
  double variance = 0;
  std::int64_t total = 0;
  for (const std::int64_t step : steps) {
    variance += static_cast<double>(step) * static_cast<double>(step);
    total += step;
  }
  const double deviation = std::sqrt(variance);
  if (static_cast<double>(observed) > kCutDeviations * deviation) {
    return 2 * std::exp(-static_cast<double>(observed) * static_cast<double>(observed) / (2 * variance));
  }
  const std::int64_t reach = std::min(total, static_cast<std::int64_t>(kCutDeviations * deviation) + 1);
  const auto width = static_cast<std::size_t>(2 * reach + 1);
  if (static_cast<std::int64_t>(width) >
      max_cost / std::max<std::int64_t>(1, static_cast<std::int64_t>(steps.size()))) {
    return std::nullopt;
  }
  std::vector<double> chance(width, 0.0);  // [sum + reach]
  std::vector<double> next(width);
  chance[static_cast<std::size_t>(reach)] = 1;
  std::int64_t spread = 0;  // largest sum so far
  for (const std::int64_t step : steps) {
    const std::int64_t wider = std::min(reach, spread + step);
    std::fill(next.begin() + (reach - wider), next.begin() + (reach + wider + 1), 0.0);
    for (std::int64_t sum = -spread; sum <= spread; ++sum) {
      const double half = chance[static_cast<std::size_t>(sum + reach)] / 2;
      if (sum + step <= reach) next[static_cast<std::size_t>(sum + step + reach)] += half;
      if (sum - step >= -reach) next[static_cast<std::size_t>(sum - step + reach)] += half;
    }
    chance.swap(next);
    spread = wider;
  }
  double tail = 0;
  for (std::int64_t sum = -spread; sum <= spread; ++sum) {
    if (std::abs(sum) >= observed) tail += chance[static_cast<std::size_t>(sum + reach)];
  }
  return std::min(1.0, tail);
}

double enumerated_tail(const std::vector<double>& magnitudes, double limit) {
  const std::size_t n_patterns = std::size_t{1} << magnitudes.size();
  std::size_t n_far = 0;
  for (std::size_t pattern = 0; pattern < n_patterns; ++pattern) {
    double sum = 0;
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      sum += ((pattern >> i) & 1U) != 0 ? magnitudes[i] : -magnitudes[i];
    }
    if (std::abs(sum) >= limit) ++n_far;
  }
  return static_cast<double>(n_far) / static_cast<double>(n_patterns);
}

double drawn_tail(const std::vector<double>& magnitudes, double limit, const RngKey& key, std::int64_t permutations) {
  RngStream rng(key);
  std::int64_t n_far = 0;
  for (std::int64_t b = 0; b < permutations; ++b) {
    double sum = 0;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      if (i % 64 == 0) bits = rng.next_u64();
      sum += ((bits >> (i % 64)) & 1U) != 0 ? magnitudes[i] : -magnitudes[i];
    }
    if (std::abs(sum) >= limit) ++n_far;
  }
  return static_cast<double>(n_far + 1) / static_cast<double>(permutations + 1);
}

}  // namespace

double mcnemar_exact(std::int64_t n_only_baseline, std::int64_t n_only_candidate) {
  FATHOM_CHECK(n_only_baseline >= 0 && n_only_candidate >= 0, "mcnemar_exact counts pairs");
  const auto n = static_cast<double>(n_only_baseline + n_only_candidate);
  const std::int64_t fewer = std::min(n_only_baseline, n_only_candidate);
  // C(n, k) / 2^n in logarithms: 2^n overflows from n = 1024.
  double tail = 0;
  for (std::int64_t k = 0; k <= fewer; ++k) {
    const auto count = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(count + 1) - std::lgamma(n - count + 1) - n * std::log(2.0));
  }
  return std::min(1.0, 2 * tail);
}

double sign_flip_p(const std::vector<double>& differences, const RngKey& key, const SignFlipSettings& settings) {
  std::vector<double> magnitudes;  // zeros change nothing, whatever their sign
  double sum = 0;
  double total = 0;
  for (const double difference : differences) {
    sum += difference;
    total += std::abs(difference);
    if (difference != 0) magnitudes.push_back(std::abs(difference));
  }
  const double limit = std::abs(sum) - kTieShare * total;
  if (magnitudes.empty() || limit <= 0) return 1;
  if (magnitudes.size() <= kMaxEnumerated) return enumerated_tail(magnitudes, limit);
  if (const auto steps = whole_steps(magnitudes)) {
    const std::int64_t step_total = std::accumulate(steps->begin(), steps->end(), std::int64_t{0});
    const auto observed =
        static_cast<std::int64_t>(std::llround(std::abs(sum) * static_cast<double>(step_total) / total));
    if (const auto tail = exact_tail(*steps, observed, settings.max_exact_steps)) return *tail;
  }
  return drawn_tail(magnitudes, limit, key, settings.permutations);
}

std::vector<double> holm_adjust(const std::vector<double>& p_values) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double running = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto n_left = static_cast<double>(order.size() - k);
    running = std::max(running, std::min(1.0, n_left * p_values[order[k]]));
    adjusted[order[k]] = running;
  }
  return adjusted;
}

}  // namespace fathom::analysis
