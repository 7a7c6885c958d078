#include "harness/kernels/gemm.h"

#include <omp.h>

#include <cmath>
#include <vector>

#include "harness/core/random.h"
#include "harness/kernels/block_attention.h"
#include "tests/kernels/kernel_test_data.h"
#include "tests/support/catch.h"

using namespace fathom;           // NOLINT
using namespace fathom::kernels;  // NOLINT

namespace {

struct GemmCase {
  std::int64_t m, n, k;
};

std::vector<double> naive_product(const GemmCase& c, const std::vector<float>& a, const std::vector<float>& b,
                                  MatrixLayout layout) {
  std::vector<double> out(static_cast<std::size_t>(c.m * c.n));
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (std::int64_t x = 0; x < c.k; ++x) {
        const std::int64_t b_index = layout == MatrixLayout::kRowsAreOutputs ? j * c.k + x : x * c.n + j;
        sum += static_cast<double>(a[static_cast<std::size_t>(i * c.k + x)]) *
               static_cast<double>(b[static_cast<std::size_t>(b_index)]);
      }
      out[static_cast<std::size_t>(i * c.n + j)] = sum;
    }
  }
  return out;
}

std::vector<float> product(const GemmCase& c, const test::Matrix& a, const test::Matrix& b, MatrixLayout layout) {
  std::vector<float> out(static_cast<std::size_t>(c.m * c.n), 7.0F);
  GemmCall call;
  call.type = a.type;
  call.layout = layout;
  call.m = c.m;
  call.n = c.n;
  call.k = c.k;
  call.a = a.data();
  call.a_stride = c.k;
  call.b = b.data();
  call.b_stride = layout == MatrixLayout::kRowsAreOutputs ? c.k : c.n;
  call.c = out.data();
  call.c_stride = c.n;
  gemm(call);
  return out;
}

}  // namespace

TEST_CASE("gemm: equals a double-precision product", "[kernels][gemm]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const auto layout = GENERATE(MatrixLayout::kRowsAreOutputs, MatrixLayout::kRowsAreInputs);
  for (const GemmCase& c : std::vector<GemmCase>{{1, 1, 1},
                                                 {1, 17, 5},
                                                 {3, 6, 64},
                                                 {8, 33, 40},
                                                 {9, 5, 2},
                                                 {31, 64, 7},
                                                 {70, 48, 96},
                                                 {200, 96, 130},
                                                 {2, 3000, 128}}) {
    const test::Matrix a = test::random_matrix(type, c.m * c.k, 1);
    const test::Matrix b = test::random_matrix(type, c.n * c.k, 2);
    const auto expected = naive_product(c, a.values, b.values, layout);
    const auto got = product(c, a, b, layout);
    INFO("m " << c.m << " n " << c.n << " k " << c.k);
    // Inputs are exact in both types, so only float32 sums differ: k terms below 1 each.
    CHECK(test::largest_difference(expected, got) < 1e-6 * static_cast<double>(c.k));
  }
}

TEST_CASE("gemm: accumulates when asked", "[kernels][gemm]") {
  const auto m = GENERATE(2, 40);
  const GemmCase c{m, 24, 32};
  const auto a = test::random_matrix(ElementType::kFloat32, c.m * c.k, 3);
  const auto b = test::random_matrix(ElementType::kFloat32, c.n * c.k, 4);
  const auto expected = naive_product(c, a.values, b.values, MatrixLayout::kRowsAreOutputs);
  std::vector<float> out(static_cast<std::size_t>(c.m * c.n), 0.5F);
  GemmCall call;
  call.output = GemmOutput::kAccumulate;
  call.m = c.m;
  call.n = c.n;
  call.k = c.k;
  call.a = a.data();
  call.a_stride = call.b_stride = c.k;
  call.b = b.data();
  call.c = out.data();
  call.c_stride = c.n;
  gemm(call);
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(std::fabs(static_cast<double>(out[i]) - 0.5 - expected[i]) < 1e-5);
}

TEST_CASE("gemm: a row does not depend on the rows beside it, nor on the threads", "[kernels][gemm][determinism]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const GemmCase all{700, 192, 320};
  const auto a = test::random_matrix(type, all.m * all.k, 5);
  const auto b = test::random_matrix(type, all.n * all.k, 6);
  const auto reference = product(all, a, b, MatrixLayout::kRowsAreOutputs);
  const int threads = omp_get_max_threads();
  // 9 rows and more share oneDNN's path; its row sums are the same for every row count with AVX-512, elsewhere to
  // rounding.
  const double tolerance = has_native_bf16() ? 0.0 : 1e-4;
  for (const std::int64_t m : {9, 16, 37, 64, 65, 66, 72, 73, 100, 129, 136, 333, 512, 577, 700}) {
    omp_set_num_threads(m % 2 == 0 ? 1 : 2);
    const auto got = product({m, all.n, all.k}, a, b, MatrixLayout::kRowsAreOutputs);
    const std::vector<double> expected(reference.begin(), reference.begin() + m * all.n);
    INFO("m " << m);
    CHECK(test::largest_difference(expected, got) <= tolerance);
  }
  omp_set_num_threads(threads);
}
