#include "harness/rope/sinusoidal.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::rope {
namespace {

constexpr SinusoidalVariant kSinusoidalVariants[] = {SinusoidalVariant::kInterleaved, SinusoidalVariant::kConcatenated,
                                                     SinusoidalVariant::kTensor2Tensor};

void check_sinusoidal(SinusoidalVariant variant, std::int64_t d_model, double base) {
  const std::int64_t least = variant == SinusoidalVariant::kTensor2Tensor ? 4 : 1;
  if (d_model < least) {
    throw ConfigError(
        fmt::format("sinusoidal: d_model = {} must be at least {} for {}", d_model, least, to_string(variant)));
  }
  if (!(base > 0) || !std::isfinite(base)) {
    throw ConfigError(fmt::format("sinusoidal: base = {} must be a finite number above 0", format_double(base)));
  }
}

/// Where column `column` of the interleaved order goes.
std::size_t concatenated_column(std::int64_t column, std::int64_t d_model) {
  const std::int64_t n_sines = (d_model + 1) / 2;
  return static_cast<std::size_t>(column % 2 == 0 ? column / 2 : n_sines + column / 2);
}

void fill_paper_row(SinusoidalVariant variant, std::int64_t d_model, double position, double base, double* row) {
  for (std::int64_t column = 0; column < d_model; ++column) {
    const std::int64_t even_column = column - column % 2;
    const double angle = position * std::pow(base, -static_cast<double>(even_column) / static_cast<double>(d_model));
    const std::size_t place = variant == SinusoidalVariant::kInterleaved ? static_cast<std::size_t>(column)
                                                                         : concatenated_column(column, d_model);
    row[place] = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
  }
}

void fill_tensor2tensor_row(std::int64_t d_model, double position, double base, double* row) {
  const std::int64_t half = d_model / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double angle = position * std::pow(base, -static_cast<double>(i) / static_cast<double>(half - 1));
    row[i] = std::sin(angle);
    row[half + i] = std::cos(angle);
  }
}

void fill_sinusoidal_row(SinusoidalVariant variant, std::int64_t d_model, std::int64_t position, double base,
                         double* row) {
  const auto m = static_cast<double>(position);
  if (variant == SinusoidalVariant::kTensor2Tensor) {
    fill_tensor2tensor_row(d_model, m, base, row);
  } else {
    fill_paper_row(variant, d_model, m, base, row);
  }
}

}  // namespace

std::string_view to_string(SinusoidalVariant variant) {
  switch (variant) {
    case SinusoidalVariant::kInterleaved:
      return "interleaved";
    case SinusoidalVariant::kConcatenated:
      return "concatenated";
    case SinusoidalVariant::kTensor2Tensor:
      return "tensor2tensor";
  }
  return "";
}

SinusoidalVariant parse_sinusoidal_variant(std::string_view name) {
  for (const SinusoidalVariant variant : kSinusoidalVariants) {
    if (to_string(variant) == name) return variant;
  }
  throw ConfigError(fmt::format("sinusoidal: variant = '{}' must be interleaved, concatenated or tensor2tensor", name));
}

std::vector<double> sinusoidal_row(SinusoidalVariant variant, std::int64_t d_model, std::int64_t position,
                                   double base) {
  check_sinusoidal(variant, d_model, base);
  std::vector<double> row(static_cast<std::size_t>(d_model), 0.0);
  fill_sinusoidal_row(variant, d_model, position, base, row.data());
  return row;
}

std::vector<double> sinusoidal_table(SinusoidalVariant variant, std::int64_t d_model, std::int64_t n_positions,
                                     std::optional<std::int64_t> padding_row, double base) {
  check_sinusoidal(variant, d_model, base);
  std::vector<double> table(static_cast<std::size_t>(n_positions * d_model), 0.0);
  for (std::int64_t position = 0; position < n_positions; ++position) {
    if (position == padding_row) continue;
    fill_sinusoidal_row(variant, d_model, position, base, table.data() + position * d_model);
  }
  return table;
}

}  // namespace fathom::rope
