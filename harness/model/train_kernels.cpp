#include "harness/model/train_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

// The bodies are written once on GCC vector types and inlined into one wrapper per instruction set, because Debian
// builds for the oldest processor of the architecture and an AVX-512 machine trains eight times faster with its own
// instructions.
#define FATHOM_ALWAYS_INLINE [[gnu::always_inline]] inline

namespace fathom::model {
namespace {

constexpr std::int64_t kMostLanes = 16;
constexpr std::int64_t kTileRows = 8;
constexpr float kMasked = -1e30F;

/// The vector registers of an instruction set. GCC takes a vector that is wider than the registers apart, element by
/// element and through memory, which is ten times slower than plain loops: so every set has its own width.
/// `kTileVectors` registers of a product's row are summed at a time; with kTileRows rows they must fit the file of 16
/// (AVX-512: 32).
struct Registers512 {
  using Floats = float __attribute__((vector_size(64), aligned(4), may_alias));
  using Ints = std::int32_t __attribute__((vector_size(64), aligned(4), may_alias));
  static constexpr std::int64_t kLanes = 16;
  static constexpr int kTileVectors = 2;
};
struct Registers256 {
  using Floats = float __attribute__((vector_size(32), aligned(4), may_alias));
  using Ints = std::int32_t __attribute__((vector_size(32), aligned(4), may_alias));
  static constexpr std::int64_t kLanes = 8;
  static constexpr int kTileVectors = 1;
};
struct Registers128 {
  using Floats = float __attribute__((vector_size(16), aligned(4), may_alias));
  using Ints = std::int32_t __attribute__((vector_size(16), aligned(4), may_alias));
  static constexpr std::int64_t kLanes = 4;
  static constexpr int kTileVectors = 1;
};

/// Rows are padded for the widest registers, whichever are in use.
std::int64_t padded(std::int64_t n) {
  return (n + kMostLanes - 1) / kMostLanes * kMostLanes;
}

template <typename Registers>
FATHOM_ALWAYS_INLINE typename Registers::Floats& at(float* p) {
  return *reinterpret_cast<typename Registers::Floats*>(p);
}
template <typename Registers>
FATHOM_ALWAYS_INLINE const typename Registers::Floats& at(const float* p) {
  return *reinterpret_cast<const typename Registers::Floats*>(p);
}

/// A strided operand of a small matrix product: element (row, column) is at data[row * row_stride + column *
/// column_stride].
struct Strided {
  const float* data;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

/// c[kRows, kLanes * kVectors] += a[kRows, k_begin..k_end] * b[k_begin..k_end, kLanes * kVectors]
template <typename Registers, int kRows, int kVectors>
FATHOM_ALWAYS_INLINE void multiply_tile(const Strided& a, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
                                        std::int64_t k_begin, std::int64_t k_end) {
  using Floats = typename Registers::Floats;
  constexpr std::int64_t kLanes = Registers::kLanes;
  // The sums stay in registers only where the loops over the rows are unrolled, which -O2 leaves to the pragma.
  Floats sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kVectors; ++n) sum[r][n] = at<Registers>(c + r * ldc + n * kLanes);
  }
  for (std::int64_t k = k_begin; k < k_end; ++k) {
    Floats right[kVectors];
    for (int n = 0; n < kVectors; ++n) right[n] = at<Registers>(b + k * ldb + n * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float left = a.data[r * a.row_stride + k * a.column_stride];
      for (int n = 0; n < kVectors; ++n) sum[r][n] += left * right[n];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    for (int n = 0; n < kVectors; ++n) at<Registers>(c + r * ldc + n * kLanes) = sum[r][n];
  }
}

/// c[kRows, n] += a[kRows, k_begin..k_end] * b[k_begin..k_end, n]
template <typename Registers, int kRows>
FATHOM_ALWAYS_INLINE void multiply_rows(const Strided& a, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
                                        std::int64_t n, std::int64_t k_begin, std::int64_t k_end) {
  constexpr std::int64_t kLanes = Registers::kLanes, kWide = Registers::kTileVectors * kLanes;
  std::int64_t column = 0;
  for (; column + kWide <= n; column += kWide)
    multiply_tile<Registers, kRows, Registers::kTileVectors>(a, b + column, ldb, c + column, ldc, k_begin, k_end);
  for (; column + kLanes <= n; column += kLanes)
    multiply_tile<Registers, kRows, 1>(a, b + column, ldb, c + column, ldc, k_begin, k_end);
  for (; column < n; ++column) {
    for (int r = 0; r < kRows; ++r) {
      float sum = c[r * ldc + column];
      for (std::int64_t k = k_begin; k < k_end; ++k)
        sum += a.data[r * a.row_stride + k * a.column_stride] * b[k * ldb + column];
      c[r * ldc + column] = sum;
    }
  }
}

template <typename Registers>
FATHOM_ALWAYS_INLINE void multiply(std::int64_t rows, const Strided& a, const float* b, std::int64_t ldb, float* c,
                                   std::int64_t ldc, std::int64_t n, std::int64_t k_begin, std::int64_t k_end) {
  if (rows == kTileRows) {
    multiply_rows<Registers, kTileRows>(a, b, ldb, c, ldc, n, k_begin, k_end);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    multiply_rows<Registers, 1>({a.data + r * a.row_stride, a.row_stride, a.column_stride}, b, ldb, c + r * ldc, ldc, n,
                                k_begin, k_end);
  }
}

/// p[j] = exp(s[j] - shift), 0 where s[j] is masked; returns the sum. Degree-6 polynomial of 2^f on [-1/2, 1/2];
/// relative error under 1e-6.
template <typename Registers>
FATHOM_ALWAYS_INLINE float exponentials(const float* s, float shift, float* p, std::int64_t width) {
  using Floats = typename Registers::Floats;
  using Ints = typename Registers::Ints;
  constexpr std::int64_t kLanes = Registers::kLanes;
  Floats total{};
  for (std::int64_t j = 0; j < width; j += kLanes) {
    const Floats value = at<Registers>(s + j);
    Floats x = (value - shift) * 1.44269504088896F;
    x = x < -126.0F ? Floats{} - 126.0F : x;
    const Floats shifted = x + 12582912.0F;  // 1.5 * 2^23: rounds to the nearest integer
    const Floats whole = shifted - 12582912.0F;
    const Floats f = x - whole;
    Floats y = f * 1.54035304e-4F + 1.33335581e-3F;
    y = y * f + 9.61812911e-3F;
    y = y * f + 5.55041087e-2F;
    y = y * f + 2.40226507e-1F;
    y = y * f + 6.93147181e-1F;
    y = y * f + 1.0F;
    const Ints power = (__builtin_convertvector(whole, Ints) + 127) << 23;
    y *= reinterpret_cast<const Floats&>(power);
    y = value < kMasked * 0.5F ? Floats{} : y;
    at<Registers>(p + j) = y;
    total += y;
  }
  float sum = 0;
  for (std::int64_t i = 0; i < kLanes; ++i) sum += total[i];
  return sum;
}

template <typename Registers>
FATHOM_ALWAYS_INLINE float largest(const float* s, std::int64_t width) {
  using Floats = typename Registers::Floats;
  constexpr std::int64_t kLanes = Registers::kLanes;
  Floats best = at<Registers>(s);
  for (std::int64_t j = kLanes; j < width; j += kLanes) {
    const Floats value = at<Registers>(s + j);
    best = value > best ? value : best;
  }
  float out = best[0];
  for (std::int64_t i = 1; i < kLanes; ++i) out = std::max(out, best[i]);
  return out;
}

/// out[column, row] = in[row, column]
FATHOM_ALWAYS_INLINE void transpose(const float* in, std::int64_t ld_in, std::int64_t rows, std::int64_t columns,
                                    float* out, std::int64_t ld_out) {
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) out[c * ld_out + r] = in[r * ld_in + c];
  }
}

/// Visible keys of a query row, as a range of the block's key indices.
struct VisibleKeys {
  std::int64_t begin;
  std::int64_t end;
};

VisibleKeys visible_keys(const AttentionBlock& block, std::int64_t row_of_batch, std::int64_t query) {
  const std::int64_t index = block.q_begin + query - block.k_begin;
  std::int64_t begin = block.window > 0 ? std::max<std::int64_t>(0, index - block.window + 1) : 0;
  if (block.sequence_starts != nullptr) {
    const std::int64_t* starts = block.sequence_starts + row_of_batch * block.starts_batch_stride;
    begin = std::max(begin, starts[block.q_begin + query] - block.k_begin);
  }
  return {begin, std::min(block.n_k, index + 1)};
}

/// Memory of one head of one batch row, one set per thread.
struct HeadScratch {
  explicit HeadScratch(const AttentionBlock& block)
      : ld(padded(block.n_k)),
        k_transposed(static_cast<std::size_t>(block.d_head * ld)),
        v_transposed(static_cast<std::size_t>(block.d_head * ld)),
        probabilities(static_cast<std::size_t>((block.n_q + kTileRows) * ld)),
        gradients(static_cast<std::size_t>((block.n_q + kTileRows) * ld)) {}
  std::int64_t ld;
  std::vector<float> k_transposed, v_transposed, probabilities, gradients;
};

/// The logits of `rows` queries from `query` on against all visible keys, masked outside; returns the padded width in
/// use.
template <typename Registers>
FATHOM_ALWAYS_INLINE std::int64_t logit_rows(const AttentionBlock& block, std::int64_t row_of_batch, std::int64_t head,
                                             std::int64_t query, std::int64_t rows, const float* k_transposed, float* s,
                                             std::int64_t ld) {
  const std::int64_t visible = std::max<std::int64_t>(0, visible_keys(block, row_of_batch, query + rows - 1).end);
  const std::int64_t width = padded(visible);
  const std::int64_t token = row_of_batch * block.seq + block.q_begin + query;
  const float* q = block.q + (token * block.n_heads + head) * block.d_head;
  for (std::int64_t r = 0; r < rows; ++r) std::fill(s + r * ld, s + r * ld + width, 0.0F);
  multiply<Registers>(rows, {q, block.n_heads * block.d_head, 1}, k_transposed, ld, s, ld, width, 0, block.d_head);
  for (std::int64_t r = 0; r < rows; ++r) {
    const VisibleKeys keys = visible_keys(block, row_of_batch, query + r);
    float* row = s + r * ld;
    if (block.bias != nullptr) {
      const float* bias =
          block.bias + row_of_batch * block.bias_batch_stride + (head * block.n_q + query + r) * block.n_k;
      for (std::int64_t j = 0; j < visible; ++j) row[j] = row[j] * block.scale + bias[j];
    } else {
      for (std::int64_t j = 0; j < visible; ++j) row[j] *= block.scale;
    }
    for (std::int64_t j = 0; j < std::min(keys.begin, width); ++j) row[j] = kMasked;
    for (std::int64_t j = std::max<std::int64_t>(0, keys.end); j < width; ++j) row[j] = kMasked;
  }
  return width;
}

template <typename Registers>
FATHOM_ALWAYS_INLINE void forward_head(const AttentionBlock& block, const AttentionState& state,
                                       std::int64_t row_of_batch, std::int64_t head, HeadScratch& scratch) {
  const std::int64_t kv_head = head / (block.n_heads / block.n_kv_heads);
  const std::int64_t kv_offset =
      ((row_of_batch * block.seq + block.k_begin) * block.n_kv_heads + kv_head) * block.d_head;
  const std::int64_t kv_stride = block.n_kv_heads * block.d_head, q_stride = block.n_heads * block.d_head;
  transpose(block.k + kv_offset, kv_stride, block.n_k, block.d_head, scratch.k_transposed.data(), scratch.ld);
  float* s = scratch.probabilities.data();
  for (std::int64_t query = 0; query < block.n_q; query += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, block.n_q - query);
    const std::int64_t width =
        logit_rows<Registers>(block, row_of_batch, head, query, rows, scratch.k_transposed.data(), s, scratch.ld);
    if (width == 0) continue;
    float* out = state.out + ((row_of_batch * block.seq + block.q_begin + query) * block.n_heads + head) * block.d_head;
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = s + r * scratch.ld;
      const std::int64_t place = (row_of_batch * block.n_heads + head) * block.seq + block.q_begin + query + r;
      const float old_max = state.row_max[place], block_max = largest<Registers>(row, width);
      if (block_max < kMasked * 0.5F) {
        std::fill(row, row + width, 0.0F);
        continue;
      }
      const float new_max = std::max(old_max, block_max);
      const float shrink = old_max == new_max ? 1.0F : std::exp(old_max - new_max);
      state.row_sum[place] = state.row_sum[place] * shrink + exponentials<Registers>(row, new_max, row, width);
      state.row_max[place] = new_max;
      for (std::int64_t i = 0; i < block.d_head; ++i) out[r * q_stride + i] *= shrink;
    }
    const std::int64_t visible = std::min(width, block.n_k);
    multiply<Registers>(rows, {s, scratch.ld, 1}, block.v + kv_offset, kv_stride, out, q_stride, block.d_head, 0,
                        visible);
  }
}

/// Probabilities and logit gradients of one head, then its share of d_q; d_k and d_v follow from the two matrices.
template <typename Registers>
FATHOM_ALWAYS_INLINE void backward_head(const AttentionBlock& block, const AttentionGradient& gradient,
                                        std::int64_t row_of_batch, std::int64_t head, HeadScratch& scratch) {
  const std::int64_t kv_head = head / (block.n_heads / block.n_kv_heads);
  const std::int64_t kv_offset =
      ((row_of_batch * block.seq + block.k_begin) * block.n_kv_heads + kv_head) * block.d_head;
  const std::int64_t kv_stride = block.n_kv_heads * block.d_head, q_stride = block.n_heads * block.d_head,
                     ld = scratch.ld;
  const std::int64_t q_offset = ((row_of_batch * block.seq + block.q_begin) * block.n_heads + head) * block.d_head;
  for (std::int64_t query = 0; query < block.n_q; query += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, block.n_q - query);
    float* p = scratch.probabilities.data() + query * ld;
    float* ds = scratch.gradients.data() + query * ld;
    const std::int64_t width =
        logit_rows<Registers>(block, row_of_batch, head, query, rows, scratch.k_transposed.data(), p, ld);
    for (std::int64_t r = 0; r < rows; ++r) std::fill(ds + r * ld, ds + r * ld + width, 0.0F);
    const float* d_out = gradient.d_out + q_offset + query * q_stride;
    multiply<Registers>(rows, {d_out, q_stride, 1}, scratch.v_transposed.data(), ld, ds, ld, width, 0, block.d_head);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t place = (row_of_batch * block.n_heads + head) * block.seq + block.q_begin + query + r;
      float* p_row = p + r * ld;
      float* ds_row = ds + r * ld;
      exponentials<Registers>(p_row, gradient.log_sum_exp[place], p_row, width);
      const float out_dot = gradient.out_dot[place];
      for (std::int64_t j = 0; j < width; ++j) ds_row[j] = p_row[j] * (ds_row[j] - out_dot);
      if (gradient.d_bias != nullptr) {
        const std::int64_t slot = row_of_batch % gradient.d_bias_slots;
        float* d_bias = gradient.d_bias + ((slot * block.n_heads + head) * block.n_q + query + r) * block.n_k;
        const std::int64_t visible = std::min(width, block.n_k);
        if (row_of_batch < gradient.d_bias_slots) {
          std::copy(ds_row, ds_row + visible, d_bias);
          std::fill(d_bias + visible, d_bias + block.n_k, 0.0F);
        } else {
          for (std::int64_t j = 0; j < visible; ++j) d_bias[j] += ds_row[j];
        }
      }
      for (std::int64_t j = 0; j < width; ++j) ds_row[j] *= block.scale;
    }
    multiply<Registers>(rows, {ds, ld, 1}, block.k + kv_offset, kv_stride, gradient.d_q + q_offset + query * q_stride,
                        q_stride, block.d_head, 0, std::min(width, block.n_k));
  }
  for (std::int64_t key = 0; key < block.n_k; key += kTileRows) {
    const std::int64_t rows = std::min(kTileRows, block.n_k - key);
    // Rows of p are filled up to the visible keys of their tile only, so the first tile that reaches this key starts
    // the sum.
    const std::int64_t first = std::max<std::int64_t>(0, key + block.k_begin - block.q_begin);
    if (first >= block.n_q) break;
    std::int64_t begin = first / kTileRows * kTileRows;
    const float* p = scratch.probabilities.data() + key;
    const float* ds = scratch.gradients.data() + key;
    float* d_v = gradient.d_v + kv_offset + key * kv_stride;
    float* d_k = gradient.d_k + kv_offset + key * kv_stride;
    multiply<Registers>(rows, {p, 1, ld}, gradient.d_out + q_offset, q_stride, d_v, kv_stride, block.d_head, begin,
                        block.n_q);
    multiply<Registers>(rows, {ds, 1, ld}, block.q + q_offset, q_stride, d_k, kv_stride, block.d_head, begin,
                        block.n_q);
  }
}

template <typename Registers>
FATHOM_ALWAYS_INLINE void backward_kv_head(const AttentionBlock& block, const AttentionGradient& gradient,
                                           std::int64_t row_of_batch, std::int64_t kv_head, HeadScratch& scratch) {
  const std::int64_t kv_offset =
      ((row_of_batch * block.seq + block.k_begin) * block.n_kv_heads + kv_head) * block.d_head;
  const std::int64_t kv_stride = block.n_kv_heads * block.d_head, group = block.n_heads / block.n_kv_heads;
  transpose(block.k + kv_offset, kv_stride, block.n_k, block.d_head, scratch.k_transposed.data(), scratch.ld);
  transpose(block.v + kv_offset, kv_stride, block.n_k, block.d_head, scratch.v_transposed.data(), scratch.ld);
  for (std::int64_t g = 0; g < group; ++g)
    backward_head<Registers>(block, gradient, row_of_batch, kv_head * group + g, scratch);
}

using ForwardHead = void (*)(const AttentionBlock&, const AttentionState&, std::int64_t, std::int64_t, HeadScratch&);
using BackwardHead = void (*)(const AttentionBlock&, const AttentionGradient&, std::int64_t, std::int64_t,
                              HeadScratch&);

void forward_head_plain(const AttentionBlock& b, const AttentionState& s, std::int64_t row, std::int64_t head,
                        HeadScratch& scratch) {
  forward_head<Registers128>(b, s, row, head, scratch);
}
void backward_head_plain(const AttentionBlock& b, const AttentionGradient& g, std::int64_t row, std::int64_t head,
                         HeadScratch& scratch) {
  backward_kv_head<Registers128>(b, g, row, head, scratch);
}

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void forward_head_avx512(
    const AttentionBlock& b, const AttentionState& s, std::int64_t row, std::int64_t head, HeadScratch& scratch) {
  forward_head<Registers512>(b, s, row, head, scratch);
}
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void backward_head_avx512(
    const AttentionBlock& b, const AttentionGradient& g, std::int64_t row, std::int64_t head, HeadScratch& scratch) {
  backward_kv_head<Registers512>(b, g, row, head, scratch);
}
[[gnu::target("avx2,fma")]] void forward_head_avx2(const AttentionBlock& b, const AttentionState& s, std::int64_t row,
                                                   std::int64_t head, HeadScratch& scratch) {
  forward_head<Registers256>(b, s, row, head, scratch);
}
[[gnu::target("avx2,fma")]] void backward_head_avx2(const AttentionBlock& b, const AttentionGradient& g,
                                                    std::int64_t row, std::int64_t head, HeadScratch& scratch) {
  backward_kv_head<Registers256>(b, g, row, head, scratch);
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

ForwardHead pick_forward() {
  return has_avx512() ? forward_head_avx512 : has_avx2() ? forward_head_avx2 : forward_head_plain;
}
BackwardHead pick_backward() {
  return has_avx512() ? backward_head_avx512 : has_avx2() ? backward_head_avx2 : backward_head_plain;
}
#else
ForwardHead pick_forward() {
  return forward_head_plain;
}
BackwardHead pick_backward() {
  return backward_head_plain;
}
#endif

}  // namespace

void attention_block_forward(const AttentionBlock& block, const AttentionState& state) {
  const ForwardHead run = pick_forward();
  const std::int64_t units = block.batch * block.n_heads;
#pragma omp parallel
  {
    HeadScratch scratch(block);
#pragma omp for schedule(static)
    for (std::int64_t unit = 0; unit < units; ++unit)
      run(block, state, unit / block.n_heads, unit % block.n_heads, scratch);
  }
}

void attention_block_finish(const AttentionBlock& block, const AttentionState& state) {
  for (std::int64_t row = 0; row < block.batch; ++row) {
    for (std::int64_t head = 0; head < block.n_heads; ++head) {
      for (std::int64_t i = 0; i < block.seq; ++i) {
        const std::int64_t place = (row * block.n_heads + head) * block.seq + i;
        float* out = state.out + ((row * block.seq + i) * block.n_heads + head) * block.d_head;
        const float inverse = 1.0F / state.row_sum[place];
        for (std::int64_t d = 0; d < block.d_head; ++d) out[d] *= inverse;
        state.row_max[place] += std::log(state.row_sum[place]);
      }
    }
  }
}

void attention_block_backward(const AttentionBlock& block, const AttentionGradient& gradient) {
  const BackwardHead run = pick_backward();
  // Rows that add to one slot are one unit of work, in order, so that the sum does not depend on the threads.
  const std::int64_t slots = gradient.d_bias != nullptr ? gradient.d_bias_slots : block.batch;
  const std::int64_t units = slots * block.n_kv_heads;
#pragma omp parallel
  {
    HeadScratch scratch(block);
#pragma omp for schedule(static)
    for (std::int64_t unit = 0; unit < units; ++unit) {
      for (std::int64_t row = unit / block.n_kv_heads; row < block.batch; row += slots)
        run(block, gradient, row, unit % block.n_kv_heads, scratch);
    }
  }
}

}  // namespace fathom::model
