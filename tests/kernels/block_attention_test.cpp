#include "harness/kernels/block_attention.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "harness/core/error.h"
#include "tests/kernels/kernel_test_data.h"
#include "tests/support/catch.h"
#include "tests/support/naive_attention.h"

using namespace fathom;           // NOLINT
using namespace fathom::kernels;  // NOLINT

namespace {

/// One random sequence in the layouts of the kernel and of the naive implementation.
struct TestSequence {
  ElementType type;
  std::int64_t n_heads, n_kv_heads, d_head, n_q, first_position, capacity;
  test::Matrix q, k_rows, v_rows;  // naive layout: [rows, heads, d]
  std::vector<std::byte> k, v;     // cache layout: [kv heads, capacity, d]
  std::vector<float> out;

  TestSequence(ElementType type_in, const AttentionShape& shape, std::int64_t n_q_in, std::int64_t first,
               std::uint64_t seed)
      : type(type_in),
        n_heads(shape.n_heads),
        n_kv_heads(shape.n_kv_heads),
        d_head(shape.d_head),
        n_q(n_q_in),
        first_position(first),
        capacity(first + n_q_in + 5) {
    q = test::random_matrix(type, n_q * n_heads * d_head, seed);
    k_rows = test::random_matrix(type, n_k() * n_kv_heads * d_head, seed + 1000);
    v_rows = test::random_matrix(type, n_k() * n_kv_heads * d_head, seed + 2000);
    k = to_cache(k_rows);
    v = to_cache(v_rows);
    out.assign(static_cast<std::size_t>(n_q * n_heads * d_head), 99.0F);
  }
  std::int64_t n_k() const { return first_position + n_q; }

  std::vector<std::byte> to_cache(const test::Matrix& rows) const {
    const std::size_t row_bytes = static_cast<std::size_t>(d_head) * element_size_bytes(type);
    // All bits set is NaN in both types: what stands past the last key must not matter.
    std::vector<std::byte> cache(static_cast<std::size_t>(n_kv_heads * capacity) * row_bytes, std::byte{0xff});
    const auto* from = static_cast<const std::byte*>(rows.data());
    for (std::int64_t j = 0; j < n_k(); ++j) {
      for (std::int64_t h = 0; h < n_kv_heads; ++h) {
        std::memcpy(cache.data() + static_cast<std::size_t>(h * capacity + j) * row_bytes,
                    from + static_cast<std::size_t>(j * n_kv_heads + h) * row_bytes, row_bytes);
      }
    }
    return cache;
  }

  AttentionSequence view() {
    AttentionSequence s;
    s.q = q.data();
    s.k = k.data();
    s.v = v.data();
    s.out = out.data();
    s.n_q = n_q;
    s.n_k = n_k();
    s.k_capacity = capacity;
    s.first_position = first_position;
    return s;
  }

  /// The queries from `skip` on, as a call of their own.
  AttentionSequence tail_view(std::int64_t skip, std::vector<float>& tail_out) {
    AttentionSequence s = view();
    tail_out.assign(static_cast<std::size_t>((n_q - skip) * n_heads * d_head), 99.0F);
    s.q = static_cast<const std::byte*>(q.data()) +
          static_cast<std::size_t>(skip * n_heads * d_head) * element_size_bytes(type);
    s.out = tail_out.data();
    s.n_q = n_q - skip;
    s.first_position = first_position + skip;
    return s;
  }

  double error(const AttentionShape& shape,
               const std::function<double(std::int64_t, std::int64_t, std::int64_t)>& bias = nullptr) const {
    test::NaiveAttention naive;
    naive.n_q = n_q;
    naive.first_position = first_position;
    naive.n_heads = n_heads;
    naive.n_kv_heads = n_kv_heads;
    naive.d_head = d_head;
    naive.window = shape.window;
    naive.chunk = shape.chunk;
    naive.softcap = static_cast<double>(shape.softcap);
    if (shape.sinks != nullptr) naive.sinks.assign(shape.sinks, shape.sinks + shape.n_heads);
    naive.scale = static_cast<double>(shape.softmax_scale);
    naive.bias = bias;
    const auto wide = [](const std::vector<float>& x) { return std::vector<double>(x.begin(), x.end()); };
    return test::largest_difference(naive_attention(naive, wide(q.values), wide(k_rows.values), wide(v_rows.values)),
                                    out);
  }
};

AttentionShape make_shape(std::int64_t n_heads, std::int64_t n_kv_heads, std::int64_t d_head, ElementType type) {
  AttentionShape shape;
  shape.n_heads = n_heads;
  shape.n_kv_heads = n_kv_heads;
  shape.d_head = d_head;
  // Twice the usual scale, so that the softmax is far from uniform.
  shape.softmax_scale = 2.0F / std::sqrt(static_cast<float>(d_head));
  shape.type = type;
  return shape;
}

// float32: sums of a few hundred terms. bf16: probabilities are rounded to 8 bits, values are below 1.
double tolerance_of(ElementType type) {
  return type == ElementType::kFloat32 ? 3e-6 : 6e-3;
}

}  // namespace

TEST_CASE("block_attention: equals naive attention for every head shape", "[kernels][attention]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const std::int64_t d_head = GENERATE(16, 32, 64, 80, 96, 128);
  for (const auto& [n_heads, n_kv_heads] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {4, 4}, {9, 3}, {8, 1}}) {
    const AttentionShape shape = make_shape(n_heads, n_kv_heads, d_head, type);
    TestSequence sequence(type, shape, 150, 0, static_cast<std::uint64_t>(d_head));
    block_attention(shape, {sequence.view()});
    INFO("heads " << n_heads << " kv " << n_kv_heads << " d " << d_head);
    CHECK(sequence.error(shape) < tolerance_of(type));
  }
}

TEST_CASE("block_attention: any number of queries after any number of cached keys", "[kernels][attention]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const AttentionShape shape = make_shape(6, 2, 32, type);
  for (const std::int64_t first : {0, 1, 31, 127, 128, 300, 700}) {
    for (const std::int64_t n_q : {1, 2, 3, 7, 16, 17, 129, 260}) {
      TestSequence sequence(type, shape, n_q, first, static_cast<std::uint64_t>(first + n_q));
      block_attention(shape, {sequence.view()});
      INFO("first " << first << " queries " << n_q);
      CHECK(sequence.error(shape) < tolerance_of(type));
    }
  }
}

TEST_CASE("block_attention: a window hides all but the last keys", "[kernels][attention][window]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  for (const std::int64_t window : {1, 2, 16, 63, 64, 65, 200, 511, 1000}) {
    AttentionShape shape = make_shape(4, 2, 32, type);
    shape.window = window;
    for (const auto& [n_q, first] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{700, 0}, {1, 600}, {5, 333}, {100, 450}}) {
      TestSequence sequence(type, shape, n_q, first, static_cast<std::uint64_t>(window));
      block_attention(shape, {sequence.view()});
      INFO("window " << window << " first " << first << " queries " << n_q);
      CHECK(sequence.error(shape) < tolerance_of(type));
    }
  }
}

TEST_CASE("block_attention: chunks see nothing of the chunks before", "[kernels][attention][chunk]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  for (const std::int64_t chunk : {1, 2, 20, 64, 100, 513}) {
    AttentionShape shape = make_shape(4, 2, 32, type);
    shape.chunk = chunk;
    for (const auto& [n_q, first] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{700, 0}, {1, 600}, {100, 450}}) {
      TestSequence sequence(type, shape, n_q, first, static_cast<std::uint64_t>(chunk));
      block_attention(shape, {sequence.view()});
      INFO("chunk " << chunk << " first " << first << " queries " << n_q);
      CHECK(sequence.error(shape) < tolerance_of(type));
    }
  }
}

TEST_CASE("block_attention: scores are capped before a bias is added", "[kernels][attention][softcap]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const auto bias = [](std::int64_t head, std::int64_t q, std::int64_t k) {
    return -0.02 * static_cast<double>(head + 1) * static_cast<double>(q - k);
  };
  for (const float cap : {0.1F, 1.0F, 5.0F, 50.0F}) {
    for (const bool biased : {false, true}) {
      AttentionShape shape = make_shape(4, 2, 32, type);
      shape.softcap = cap;
      if (biased) {
        shape.bias = [&bias](std::int64_t head, const std::int32_t* q, std::int64_t n_q, const std::int32_t* k,
                             std::int64_t n_k, float* out, std::int64_t stride) {
          for (std::int64_t i = 0; i < n_q; ++i) {
            for (std::int64_t j = 0; j < n_k; ++j) out[i * stride + j] = static_cast<float>(bias(head, q[i], k[j]));
          }
        };
      }
      for (const auto& [n_q, first] : std::vector<std::pair<std::int64_t, std::int64_t>>{{530, 0}, {1, 600}, {3, 40}}) {
        TestSequence sequence(type, shape, n_q, first, 3);
        block_attention(shape, {sequence.view()});
        INFO("cap " << cap << " first " << first << " queries " << n_q << " biased " << biased);
        CHECK((biased ? sequence.error(shape, bias) : sequence.error(shape)) < tolerance_of(type));
      }
    }
  }
}

TEST_CASE("block_attention: a sink takes its share of the softmax", "[kernels][attention][sinks]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const std::vector<float> sinks = {-3.0F, 0.0F, 2.5F, 40.0F};
  for (const std::int64_t window : {0, 16}) {
    AttentionShape shape = make_shape(4, 2, 32, type);
    shape.sinks = sinks.data();
    shape.window = window;
    for (const auto& [n_q, first] : std::vector<std::pair<std::int64_t, std::int64_t>>{{530, 0}, {1, 600}, {17, 40}}) {
      TestSequence sequence(type, shape, n_q, first, 4);
      block_attention(shape, {sequence.view()});
      INFO("window " << window << " first " << first << " queries " << n_q);
      CHECK(sequence.error(shape) < tolerance_of(type));
    }
  }
}

TEST_CASE("block_attention: a bias is added per head and position", "[kernels][attention][bias]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const auto bias = [](std::int64_t head, std::int64_t q, std::int64_t k) {
    return -0.05 * static_cast<double>(head + 1) * static_cast<double>(q - k) + (k % 7 == 3 ? 1.5 : 0.0);
  };
  AttentionShape shape = make_shape(6, 3, 32, type);
  shape.bias = [&bias](std::int64_t head, const std::int32_t* q, std::int64_t n_q, const std::int32_t* k,
                       std::int64_t n_k, float* out, std::int64_t stride) {
    for (std::int64_t i = 0; i < n_q; ++i) {
      for (std::int64_t j = 0; j < n_k; ++j) out[i * stride + j] = static_cast<float>(bias(head, q[i], k[j]));
    }
  };
  for (const auto& [n_q, first] : std::vector<std::pair<std::int64_t, std::int64_t>>{{300, 0}, {1, 290}, {40, 600}}) {
    TestSequence sequence(type, shape, n_q, first, 8);
    block_attention(shape, {sequence.view()});
    INFO("first " << first << " queries " << n_q);
    CHECK(sequence.error(shape, bias) < tolerance_of(type));
  }
}

TEST_CASE("block_attention: scratch is never read before it is written", "[kernels][attention][bias]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const std::int64_t window = GENERATE(0, 100);
  for (const std::int64_t n_q : {1, 5, 17, 300}) {
    AttentionShape shape = make_shape(4, 2, 32, type);
    shape.window = window;
    shape.bias = [](std::int64_t, const std::int32_t*, std::int64_t n, const std::int32_t*, std::int64_t n_k,
                    float* out, std::int64_t stride) {
      for (std::int64_t i = 0; i < n; ++i) std::fill_n(out + i * stride, n_k, 0.25F);  // as good as none
    };
    TestSequence sequence(type, shape, n_q, 30, 9);
    std::thread fresh([&] { block_attention(shape, {sequence.view()}); });  // its scratch is new: all NaN
    fresh.join();
    INFO("window " << window << " queries " << n_q);
    CHECK(sequence.error(shape) < tolerance_of(type));
  }
}

TEST_CASE("block_attention: a bias of minus infinity hides a key", "[kernels][attention][bias]") {
  AttentionShape shape = make_shape(2, 2, 16, ElementType::kFloat32);
  const auto hidden = [](std::int64_t q, std::int64_t k) { return k != q && k < 550; };
  shape.bias = [&hidden](std::int64_t, const std::int32_t* q, std::int64_t n_q, const std::int32_t* k, std::int64_t n_k,
                         float* out, std::int64_t stride) {
    for (std::int64_t i = 0; i < n_q; ++i) {
      for (std::int64_t j = 0; j < n_k; ++j)
        out[i * stride + j] = hidden(q[i], k[j]) ? -std::numeric_limits<float>::infinity() : 0.0F;
    }
  };
  TestSequence sequence(ElementType::kFloat32, shape, 600, 0, 8);
  block_attention(shape, {sequence.view()});
  const auto bias = [&hidden](std::int64_t, std::int64_t q, std::int64_t k) {
    return hidden(q, k) ? -std::numeric_limits<double>::infinity() : 0.0;
  };
  CHECK(sequence.error(shape, bias) < 3e-6);
}

TEST_CASE("block_attention: sequences of a call do not touch each other", "[kernels][attention][determinism]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const AttentionShape shape = make_shape(9, 3, 64, type);
  std::vector<TestSequence> together;
  for (const auto& [n_q, first] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 40}, {200, 0}, {64, 500}, {3, 0}, {33, 700}}) {
    together.emplace_back(type, shape, n_q, first, static_cast<std::uint64_t>(n_q));
  }
  std::vector<AttentionSequence> views;
  for (TestSequence& sequence : together) views.push_back(sequence.view());
  block_attention(shape, views);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  for (TestSequence& sequence : together) {
    const std::vector<float> with_others = sequence.out;
    std::fill(sequence.out.begin(), sequence.out.end(), 0.0F);
    block_attention(shape, {sequence.view()});
    CHECK(sequence.out == with_others);
    CHECK(sequence.error(shape) < tolerance_of(type));
  }
  omp_set_num_threads(threads);
}

TEST_CASE("block_attention: a query's result does not depend on where the call starts",
          "[kernels][attention][determinism]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  const std::int64_t window = GENERATE(0, 100);
  AttentionShape shape = make_shape(6, 2, 64, type);
  shape.window = window;
  TestSequence sequence(type, shape, 900, 0, 5);
  block_attention(shape, {sequence.view()});
  // Bit for bit where oneDNN's row sums are the same for every row count (gemm_test).
  const double tolerance = has_native_bf16() ? 0.0 : tolerance_of(type);
  for (const std::int64_t skip : {64, 448, 512, 777, 880}) {
    std::vector<float> tail;
    block_attention(shape, {sequence.tail_view(skip, tail)});
    const std::vector<double> expected(sequence.out.begin() + skip * shape.n_heads * shape.d_head, sequence.out.end());
    INFO("skip " << skip);
    CHECK(test::largest_difference(expected, tail) <= tolerance);
  }
}

TEST_CASE("block_attention: an exception of the bias reaches the caller", "[kernels][attention][errors]") {
  AttentionShape shape = make_shape(2, 1, 16, ElementType::kFloat32);
  shape.bias = [](std::int64_t, const std::int32_t*, std::int64_t, const std::int32_t*, std::int64_t, float*,
                  std::int64_t) { throw std::runtime_error("no bias today"); };
  TestSequence sequence(ElementType::kFloat32, shape, 300, 0, 1);
  CHECK_THROWS_WITH(block_attention(shape, {sequence.view()}), "no bias today");
}

TEST_CASE("block_attention: impossible shapes are refused", "[kernels][attention][errors]") {
  AttentionShape shape = make_shape(5, 2, 16, ElementType::kFloat32);
  CHECK_THROWS_AS(block_attention(shape, {}), InvariantError);
  shape = make_shape(2, 2, 16, ElementType::kFloat32);
  TestSequence sequence(ElementType::kFloat32, shape, 4, 0, 1);
  AttentionSequence view = sequence.view();
  view.n_k = 3;
  CHECK_THROWS_AS(block_attention(shape, {view}), InvariantError);
}
