// Speed of the attention and matrix kernels; not a test. Build target `kernels_bench`, no arguments.

#include <fmt/format.h>
#include <omp.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <vector>

#include "harness/kernels/block_attention.h"
#include "harness/kernels/gemm.h"
#include "harness/kernels/vector_kernels.h"
#include "tests/kernels/kernel_test_data.h"

namespace {

using namespace fathom;           // NOLINT
using namespace fathom::kernels;  // NOLINT

double best_seconds(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  work();
  double best = 1e30;
  double spent = 0;
  for (int i = 0; i < 200 && (i < 3 || spent < 0.4); ++i) {
    const auto start = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    spent += seconds;
  }
  return best;
}

struct BenchShape {
  std::int64_t n_heads, n_kv_heads, d_head, length, n_sequences;
  std::int64_t n_queries;  // last queries of each sequence
};

void bench_attention(const BenchShape& b, ElementType type) {
  AttentionShape shape;
  shape.n_heads = b.n_heads;
  shape.n_kv_heads = b.n_kv_heads;
  shape.d_head = b.d_head;
  shape.softmax_scale = 1.0F / std::sqrt(static_cast<float>(b.d_head));
  shape.type = type;
  const auto q = test::random_matrix(type, b.n_queries * b.n_heads * b.d_head, 1);
  const auto k = test::random_matrix(type, b.n_kv_heads * b.length * b.d_head, 2);
  const auto v = test::random_matrix(type, b.n_kv_heads * b.length * b.d_head, 3);
  std::vector<float> out(static_cast<std::size_t>(b.n_sequences * b.n_queries * b.n_heads * b.d_head));
  std::vector<AttentionSequence> sequences;
  for (std::int64_t s = 0; s < b.n_sequences; ++s) {
    AttentionSequence one;
    one.q = q.data();
    one.k = k.data();
    one.v = v.data();
    one.out = out.data() + s * b.n_queries * b.n_heads * b.d_head;
    one.n_q = b.n_queries;
    one.n_k = one.k_capacity = b.length;
    one.first_position = b.length - b.n_queries;
    sequences.push_back(one);
  }
  const double seconds = best_seconds([&] { block_attention(shape, sequences); });
  double pairs = 0;
  for (std::int64_t i = 0; i < b.n_queries; ++i) pairs += static_cast<double>(b.length - b.n_queries + i + 1);
  const double flops = 4.0 * pairs * static_cast<double>(b.d_head * b.n_heads * b.n_sequences);
  fmt::print("attention {:>8} heads {}:{} d {:>3} length {:>5} queries {:>5} x {:>2}: {:9.3f} ms {:6.0f} GF/s\n",
             type == ElementType::kFloat32 ? "float32" : "bf16", b.n_heads, b.n_kv_heads, b.d_head, b.length,
             b.n_queries, b.n_sequences, seconds * 1e3, flops / seconds / 1e9);
}

void bench_gemm(std::int64_t m, std::int64_t n, std::int64_t k, ElementType type) {
  const auto a = test::random_matrix(type, m * k, 1);
  const auto b = test::random_matrix(type, n * k, 2);
  std::vector<float> c(static_cast<std::size_t>(m * n));
  GemmCall call;
  call.type = type;
  call.m = m;
  call.n = n;
  call.k = k;
  call.a = a.data();
  call.a_stride = call.b_stride = k;
  call.b = b.data();
  call.c = c.data();
  call.c_stride = n;
  const double seconds = best_seconds([&] { gemm(call); });
  fmt::print("gemm {:>8} m {:>5} n {:>5} k {:>5}: {:9.3f} ms {:6.0f} GF/s\n",
             type == ElementType::kFloat32 ? "float32" : "bf16", m, n, k, seconds * 1e3,
             2e-9 * static_cast<double>(m * n * k) / seconds);
}

}  // namespace

int main() {
  fmt::print("{}, vectors {}, {} threads\n", gemm_version(), vector_target_name(), omp_get_max_threads());
  for (const ElementType type : {ElementType::kBFloat16, ElementType::kFloat32}) {
    for (const BenchShape& shape : std::vector<BenchShape>{{9, 3, 64, 512, 1, 512},
                                                           {9, 3, 64, 2048, 1, 2048},
                                                           {9, 3, 64, 8192, 1, 8192},
                                                           {9, 3, 64, 8192, 1, 1},
                                                           {4, 4, 32, 128, 64, 128},
                                                           {4, 4, 32, 512, 16, 512},
                                                           {4, 4, 32, 2048, 4, 2048},
                                                           {4, 4, 32, 512, 64, 1}}) {
      bench_attention(shape, type);
    }
    for (const std::int64_t m : {1, 8, 64, 512, 2048}) {
      bench_gemm(m, 576, 576, type);
      bench_gemm(m, 3072, 576, type);
      bench_gemm(m, 576, 1536, type);
      bench_gemm(m, 128, 128, type);
      bench_gemm(m, 384, 128, type);
    }
    bench_gemm(1, 49152, 576, type);
  }
  return 0;
}
