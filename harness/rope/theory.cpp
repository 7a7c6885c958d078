#include "harness/rope/theory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/rope/angle.h"

namespace fathom::rope {
namespace {

double turns_of_fastest(std::int64_t length) {
  return static_cast<double>(length) / kTwoPi;
}

}  // namespace

std::vector<double> periods(const std::vector<double>& inv_freq) {
  std::vector<double> out;
  out.reserve(inv_freq.size());
  for (const double theta : inv_freq) out.push_back(kTwoPi / theta);
  return out;
}

std::int64_t wrapped_channels(const std::vector<double>& inv_freq, std::int64_t length) {
  return std::count_if(inv_freq.begin(), inv_freq.end(),
                       [length](double theta) { return kTwoPi / theta < static_cast<double>(length); });
}

std::optional<std::int64_t> first_unwrapped_channel(const std::vector<double>& inv_freq, std::int64_t length) {
  const auto found = std::find_if(inv_freq.begin(), inv_freq.end(),
                                  [length](double theta) { return kTwoPi / theta >= static_cast<double>(length); });
  if (found == inv_freq.end()) return std::nullopt;
  return found - inv_freq.begin();
}

std::int64_t critical_dimension(std::int64_t rotary_dim, double base, std::int64_t trained_length) {
  const double channels =
      static_cast<double>(rotary_dim) / 2 * std::log(turns_of_fastest(trained_length)) / std::log(base);
  if (!(channels > 0)) return 0;
  return std::min(2 * static_cast<std::int64_t>(std::ceil(channels)), rotary_dim);
}

double extrapolation_limit(double tuning_base, std::int64_t critical_dimension, std::int64_t rotary_dim) {
  return kTwoPi * std::pow(tuning_base, static_cast<double>(critical_dimension) / static_cast<double>(rotary_dim));
}

double critical_base(double base, std::int64_t trained_length, std::int64_t tuning_length) {
  for (const std::int64_t length : {trained_length, tuning_length}) {
    if (length < 7) {
      throw ConfigError(
          fmt::format("theory: a length of {} tokens is no whole turn of the fastest channel; it must be "
                      "at least 7",
                      length));
    }
  }
  return std::pow(base, std::log(turns_of_fastest(tuning_length)) / std::log(turns_of_fastest(trained_length)));
}

SmallBases small_bases(std::int64_t tuning_length) {
  const double whole = turns_of_fastest(tuning_length);
  return {4 * whole, 2 * whole, whole};
}

double interpolation_error_bound(std::int64_t rotary_dim, double base, double largest_h) {
  return static_cast<double>(rotary_dim) * largest_h / (32 * std::log(base));
}

double alibi_horizon(double slope, double epsilon) {
  if (!(slope > 0) || !(epsilon > 0) || !(epsilon < 1)) {
    throw ConfigError(
        fmt::format("theory: an ALiBi horizon needs a slope above 0 and epsilon between 0 and 1, not {} "
                    "and {}",
                    format_double(slope), format_double(epsilon)));
  }
  return -std::log(epsilon) / slope;
}

}  // namespace fathom::rope
