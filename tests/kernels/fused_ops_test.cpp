#include "harness/kernels/fused_ops.h"

#include <cmath>
#include <limits>
#include <vector>

#include "harness/kernels/log_softmax.h"
#include "tests/kernels/kernel_test_data.h"
#include "tests/support/catch.h"

using namespace fathom;           // NOLINT
using namespace fathom::kernels;  // NOLINT

namespace {

std::vector<float> spread(std::int64_t n, std::uint64_t seed, float width) {
  std::vector<float> out = test::random_matrix(ElementType::kFloat32, n, seed).values;
  for (float& x : out) x *= width;
  return out;
}

/// Runs `call` with the output type asked for and gives the result back as float32.
template <typename Work>
std::vector<float> run_rows(RowsCall rows, ElementType type, const Work& work) {
  const auto n = static_cast<std::size_t>(rows.n_rows * rows.width);
  std::vector<float> wide(n);
  std::vector<BFloat16Bits> narrow(n);
  rows.out_stride = rows.width;
  rows.out_type = type;
  rows.out = type == ElementType::kFloat32 ? static_cast<void*>(wide.data()) : narrow.data();
  work(rows);
  if (type == ElementType::kBFloat16) {
    for (std::size_t i = 0; i < n; ++i) wide[i] = from_bfloat16(narrow[i]);
  }
  return wide;
}

double half_step(ElementType type, double value) {
  return type == ElementType::kFloat32 ? 0 : std::fabs(value) / 256;
}

double reference_activation(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationKind::kGelu:
      return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case ActivationKind::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case ActivationKind::kRelu:
      return x > 0 ? x : 0;
    case ActivationKind::kReluSquared:
      return x > 0 ? x * x : 0;
  }
  return 0;
}

}  // namespace

TEST_CASE("fused_ops: rms norm and layer norm equal their formulas in double", "[kernels][fused_ops]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const std::int64_t width = GENERATE(1, 16, 33, 576);
  const std::int64_t n_rows = GENERATE(1, 50);
  const auto x = spread(n_rows * width, 1, 3), weight = spread(width, 2, 2), bias = spread(width, 3, 1);
  const bool centred = GENERATE(false, true);
  RowsCall rows;
  rows.x = x.data();
  rows.n_rows = n_rows;
  rows.width = rows.stride = width;
  const auto got = run_rows(rows, type, [&](const RowsCall& call) {
    centred ? layer_norm_rows(call, weight.data(), bias.data(), 1e-5)
            : rms_norm_rows(call, weight.data(), nullptr, 1e-5);
  });
  for (std::int64_t r = 0; r < n_rows; ++r) {
    double mean = 0, square = 0;
    for (std::int64_t j = 0; j < width; ++j)
      mean += static_cast<double>(x[static_cast<std::size_t>(r * width + j)]) / static_cast<double>(width);
    if (!centred) mean = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      square += std::pow(static_cast<double>(x[static_cast<std::size_t>(r * width + j)]) - mean, 2) /
                static_cast<double>(width);
    }
    for (std::int64_t j = 0; j < width; ++j) {
      const auto i = static_cast<std::size_t>(r * width + j), c = static_cast<std::size_t>(j);
      const double expected =
          (static_cast<double>(x[i]) - mean) / std::sqrt(square + 1e-5) * static_cast<double>(weight[c]) +
          (centred ? static_cast<double>(bias[c]) : 0);
      REQUIRE(std::fabs(expected - static_cast<double>(got[i])) <= 4e-6 + half_step(type, expected));
    }
  }
}

TEST_CASE("fused_ops: activations equal their formulas in double, alone and gated", "[kernels][fused_ops]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const auto kind =
      GENERATE(ActivationKind::kSilu, ActivationKind::kGelu, ActivationKind::kGeluTanh, ActivationKind::kRelu);
  const std::int64_t width = 37;
  auto x = spread(40 * width, 4, 12);
  x[0] = -200;
  x[1] = 200;
  x[2] = -30000;
  x[3] = 0;
  const auto up = spread(40 * width, 5, 1);
  const bool with_up = GENERATE(false, true);
  RowsCall rows;
  rows.x = x.data();
  rows.n_rows = 40;
  rows.width = rows.stride = width;
  const auto got =
      run_rows(rows, type, [&](const RowsCall& call) { activate_rows(call, kind, with_up ? up.data() : nullptr); });
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected =
        reference_activation(kind, static_cast<double>(x[i])) * (with_up ? static_cast<double>(up[i]) : 1);
    INFO("x " << x[i]);
    REQUIRE(std::fabs(expected - static_cast<double>(got[i])) <=
            1.5e-6 + 4e-7 * std::fabs(expected) + half_step(type, expected));
  }
}

TEST_CASE("fused_ops: bf16 rounds to nearest, ties to even", "[kernels][fused_ops]") {
  CHECK(to_bfloat16(1.0F) == 0x3f80);
  CHECK(to_bfloat16(1.00390625F) == 0x3f80);  // half way between 0x3f80 and 0x3f81: even
  CHECK(to_bfloat16(1.01171875F) == 0x3f82);  // half way between 0x3f81 and 0x3f82: even
  CHECK(to_bfloat16(1.004F) == 0x3f81);
  std::vector<float> x = spread(100, 6, 1);
  for (float& value : x) value *= 1.0037F;
  x[17] = 1.00390625F;
  x[99] = 1.01171875F;
  std::vector<BFloat16Bits> out(x.size());
  RowsCall rows;
  rows.x = x.data();
  rows.n_rows = 1;
  rows.width = rows.stride = rows.out_stride = 100;
  rows.out = out.data();
  rows.out_type = ElementType::kBFloat16;
  convert_rows(rows);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(out[i] == to_bfloat16(x[i]));
}

TEST_CASE("fused_ops: bias and residual are added in place", "[kernels][fused_ops]") {
  std::vector<float> x(3 * 700, 1.0F);
  const auto bias = spread(700, 7, 1);
  add_bias_rows(x.data(), 3, 700, bias.data());
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == 1.0F + bias[i % 700]);
  const auto before = x;
  const auto y = spread(3 * 700, 8, 1);
  add_in_place(x.data(), y.data(), 3 * 700);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == before[i] + y[i]);
}

TEST_CASE("log_softmax: log-sum-exp, argmax and rank of a row", "[kernels][log_softmax]") {
  const std::int64_t n = GENERATE(1, 5, 96, 49152);
  auto logits = spread(n, 9, 20);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  CHECK(std::fabs(log_sum_exp(logits.data(), n) - std::log(sum)) < 1e-6);
  const std::vector<float> ties = {1, 3, 2, 3};
  CHECK(argmax(ties.data(), 4) == 1);
  CHECK(rank_of(ties.data(), 4, 1) == 1);
  CHECK(rank_of(ties.data(), 4, 3) == 1);
  CHECK(rank_of(ties.data(), 4, 2) == 3);
  CHECK(rank_of(ties.data(), 4, 0) == 4);
  logits[static_cast<std::size_t>(n / 2)] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(log_sum_exp(logits.data(), n)));
}
