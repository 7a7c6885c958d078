// Worst error of the cosine and sine tables over all positions below 2^20, base by base, and the time of the search for
// a negative advantage. Figures for a person; the test asserts the same bound at a stride.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/rope/angle.h"
#include "harness/rope/base_bound.h"
#include "harness/rope/rope_scaling.h"

namespace {

using namespace fathom::rope;  // NOLINT

constexpr std::int64_t kPositions = INT64_C(1) << 20;

struct TableError {
  double entry = 0;    ///< of the tables in use: double angle, float32 entry
  double float32 = 0;  ///< of a table made of float32 frequencies and angles
};

TableError worst_error(double base) {
  TableError worst;
  for (const double theta : default_inv_freq(128, base)) {
    for (std::int64_t position = 0; position < kPositions; ++position) {
      const auto m = static_cast<double>(position);
      const double cosine = std::cos(m * theta);
      const double sine = std::sin(m * theta);
      const CosSin entry = table_entry(m, theta, 1);
      const float angle = static_cast<float>(m) * static_cast<float>(theta);
      worst.entry = std::max({worst.entry, std::abs(static_cast<double>(entry.cos) - cosine),
                              std::abs(static_cast<double>(entry.sin) - sine)});
      worst.float32 = std::max({worst.float32, std::abs(static_cast<double>(std::cos(angle)) - cosine),
                                std::abs(static_cast<double>(std::sin(angle)) - sine)});
    }
  }
  return worst;
}

}  // namespace

int main() {
  fmt::print("positions 0..{}, 64 channels; worst |error| of cos and sin\n", kPositions - 1);
  fmt::print("{:>10}  {:>12}  {:>16}\n", "base", "our tables", "float32 angles");
  for (const double base : {1e4, 5e4, 1e5, 1.5e5, 5e5, 1e6, 5e6, 1e7, 1e8}) {
    const TableError worst = worst_error(base);
    fmt::print("{:>10}  {:>12.3g}  {:>16.3g}\n", base, worst.entry, worst.float32);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto found = first_negative_advantage(default_inv_freq(128, 1e12));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("search for B(m) < 0 over 64 channels to {}: {:.3f} s, found: {}\n", found.value_or(kAdvantageSearchEnd),
             seconds, found.has_value());
  return 0;
}
