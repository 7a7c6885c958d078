// SSSE3 and SSE4 are left out: processors without AVX2 get the portable code, and the build is a third shorter.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "harness/kernels/vector_kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/kernels/vector_kernels.h"
#include "harness/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::HWY_NAMESPACE {

constexpr float kLog2E = 1.44269504F;

// Scores outside [begin, end) become -infinity as far as vectors reach, the bias is added, and the maximum comes back.
// Works in steps of two vectors counted from column 0, so that a row's arithmetic does not depend on the query block it
// stands in.
template <class D>
HWY_INLINE float prepare_row(D d, float* scores, const float* bias, float scale, std::int64_t first,
                             std::int64_t last) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vscale = hn::Set(d, scale);
  auto max0 = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto max1 = max0;
  if (bias == nullptr) {
    for (std::int64_t j = first; j < last; j += 2 * n) {
      max0 = hn::Max(max0, hn::Load(d, scores + j));
      max1 = hn::Max(max1, hn::Load(d, scores + j + n));
    }
    return hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1))) * scale;
  }
  const auto log2e = hn::Set(d, kLog2E);
  for (std::int64_t j = first; j < last; j += 2 * n) {
    const auto s0 = hn::MulAdd(hn::LoadU(d, bias + j), log2e, hn::Mul(hn::Load(d, scores + j), vscale));
    const auto s1 = hn::MulAdd(hn::LoadU(d, bias + j + n), log2e, hn::Mul(hn::Load(d, scores + j + n), vscale));
    hn::Store(s0, d, scores + j);
    hn::Store(s1, d, scores + j + n);
    max0 = hn::Max(max0, s0);
    max1 = hn::Max(max1, s1);
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(max0, max1)));
}

template <class D, typename P>
HWY_INLINE float exponentiate_row(D d, const float* scores, float scale, float row_max, std::int64_t first,
                                  std::int64_t last, P* probabilities) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vscale = hn::Set(d, scale);
  const auto vmax = hn::Set(d, row_max);
  auto sum0 = hn::Zero(d);
  auto sum1 = sum0;
  for (std::int64_t j = first; j < last; j += 2 * n) {
    const auto e0 = exp2_vector(d, hn::MulSub(hn::Load(d, scores + j), vscale, vmax));
    const auto e1 = exp2_vector(d, hn::MulSub(hn::Load(d, scores + j + n), vscale, vmax));
    sum0 = hn::Add(sum0, e0);
    sum1 = hn::Add(sum1, e1);
    store_probability(d, e0, probabilities + j);
    store_probability(d, e1, probabilities + j + n);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
}

template <class D>
HWY_INLINE void multiply_row(D d, const float* in, float factor, std::int64_t count, float* out) {
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto v = hn::Set(d, factor);
  std::int64_t j = 0;
  for (; j + n <= count; j += n) hn::StoreU(hn::Mul(hn::LoadU(d, in + j), v), d, out + j);
  for (; j < count; ++j) out[j] = in[j] * factor;
}

template <typename P>
void softmax_row(const SoftmaxBlock& block, std::int64_t row, std::int32_t begin, std::int32_t end, P* probabilities) {
  const hn::ScalableTag<float> d;
  const auto step = 2 * static_cast<std::int64_t>(hn::Lanes(d));
  if (begin >= end) {
    std::fill(probabilities, probabilities + block.width, P{0});
    return;
  }
  float* scores = block.scores + row * block.stride;
  float* bias = block.bias == nullptr ? nullptr : block.bias + row * block.stride;
  const std::int64_t first = begin / step * step;
  const std::int64_t last = (end + step - 1) / step * step;
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  std::fill(scores + first, scores + begin, minus_infinity);
  std::fill(scores + end, scores + last, minus_infinity);
  if (bias != nullptr) {  // minus infinity plus NaN would be NaN
    std::fill(bias + first, bias + begin, 0.0F);
    std::fill(bias + end, bias + last, 0.0F);
  }
  const float block_max = prepare_row(d, scores, bias, block.scale, first, last);
  const float old_max = block.row_max[row];
  const float new_max = std::max(old_max, block_max);
  if (new_max == minus_infinity) {  // a bias may hide every key
    std::fill(probabilities, probabilities + block.width, P{0});
    return;
  }
  const float sum =
      exponentiate_row(d, scores, bias == nullptr ? block.scale : 1.0F, new_max, first, last, probabilities);
  std::fill(probabilities, probabilities + first, P{0});
  if (last < block.width) std::fill(probabilities + last, probabilities + block.width, P{0});
  if (new_max == old_max) {
    block.row_sum[row] += sum;
    return;
  }
  const float decay = std::exp2(old_max - new_max);
  block.row_max[row] = new_max;
  block.row_sum[row] = block.row_sum[row] * decay + sum;
  float* out = block.out + row * block.d;
  multiply_row(d, out, decay, block.d, out);
}

void softmax_rows_impl(const SoftmaxBlock& block, const SoftmaxRows& rows) {
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const std::int64_t row = rows.row_begin + i;
    if (block.probabilities != nullptr) {
      softmax_row(block, row, rows.begin[i], rows.end[i], block.probabilities + row * block.stride);
    } else {
      softmax_row(block, row, rows.begin[i], rows.end[i], block.scores + row * block.stride);
    }
  }
}

// tanh by its exponential away from zero, by its series near it, where the exponential would cancel.
template <class D>
HWY_INLINE hn::VFromD<D> tanh_vector(D d, hn::VFromD<D> x) {
  const auto magnitude = hn::Min(hn::Abs(x), hn::Set(d, 15.0F));
  const auto one = hn::Set(d, 1.0F);
  const auto e = exp2_vector(d, hn::Mul(magnitude, hn::Set(d, -2 * kLog2E)));
  const auto far = hn::Div(hn::Sub(one, e), hn::Add(one, e));
  const auto square = hn::Mul(magnitude, magnitude);
  // x - x^3/3 + 2x^5/15 - 17x^7/315 + 62x^9/2835: below 2e-8 relative for |x| < 0.2
  auto p = hn::MulAdd(square, hn::Set(d, 62.0F / 2835), hn::Set(d, -17.0F / 315));
  p = hn::MulAdd(square, p, hn::Set(d, 2.0F / 15));
  p = hn::MulAdd(square, p, hn::Set(d, -1.0F / 3));
  const auto near = hn::MulAdd(hn::Mul(square, magnitude), p, magnitude);
  return hn::CopySign(hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.2F)), near, far), x);
}

void softcap_row_impl(float* scores, float scale, float cap, std::int64_t count) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto inner = hn::Set(d, scale / cap);
  const auto outer = hn::Set(d, cap);
  for (std::int64_t j = 0; j < count; j += n)
    hn::Store(hn::Mul(tanh_vector(d, hn::Mul(hn::Load(d, scores + j), inner)), outer), d, scores + j);
}

void scale_row_impl(const float* in, float factor, std::int64_t n, float* out) {
  multiply_row(hn::ScalableTag<float>(), in, factor, n, out);
}

// kRows rows of a against kCols rows of b. Every sum runs over k in the same order whatever kRows and kCols are.
template <int kRows, int kCols, typename B>
HWY_INLINE void dot_tile(const FewRows& call, std::int64_t row, std::int64_t col) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const float* a = call.a + row * call.a_stride;
  const B* b = static_cast<const B*>(call.b) + col * call.b_stride;
  hn::VFromD<decltype(d)> sum[kRows][kCols];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kCols; ++c) sum[r][c] = hn::Zero(d);
  }
  std::int64_t k = 0;
  for (; k + n <= call.k; k += n) {
    hn::VFromD<decltype(d)> bv[kCols];
    for (int c = 0; c < kCols; ++c) bv[c] = load_as_float(d, b + c * call.b_stride + k);
    for (int r = 0; r < kRows; ++r) {
      const auto av = hn::LoadU(d, a + r * call.a_stride + k);
      for (int c = 0; c < kCols; ++c) sum[r][c] = hn::MulAdd(av, bv[c], sum[r][c]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kCols; ++c) {
      float total = hn::GetLane(hn::SumOfLanes(d, sum[r][c]));
      for (std::int64_t t = k; t < call.k; ++t) total += a[r * call.a_stride + t] * as_float(b[c * call.b_stride + t]);
      float& out = call.c[(row + r) * call.c_stride + col + c];
      out = call.keep == 0 ? total : out + total;
    }
  }
}

template <typename B>
void few_rows_dot_typed(const FewRows& call, std::int64_t n_begin, std::int64_t n_end) {
  std::int64_t col = n_begin;
  for (; col + 4 <= n_end; col += 4) {
    std::int64_t row = 0;
    for (; row + 2 <= call.m; row += 2) dot_tile<2, 4, B>(call, row, col);
    if (row < call.m) dot_tile<1, 4, B>(call, row, col);
  }
  for (; col < n_end; ++col) {
    for (std::int64_t row = 0; row < call.m; ++row) dot_tile<1, 1, B>(call, row, col);
  }
}

void few_rows_dot_impl(const FewRows& call, std::int64_t n_begin, std::int64_t n_end) {
  if (call.b_type == ElementType::kFloat32) {
    few_rows_dot_typed<float>(call, n_begin, n_end);
  } else {
    few_rows_dot_typed<BFloat16Bits>(call, n_begin, n_end);
  }
}

template <int kVectors, typename B>
HWY_INLINE void combine_tile(const FewRows& call, std::int64_t row, std::int64_t col) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const float* a = call.a + row * call.a_stride;
  const B* b = static_cast<const B*>(call.b) + col;
  float* c = call.c + row * call.c_stride + col;
  hn::VFromD<decltype(d)> sum[kVectors];
  for (int v = 0; v < kVectors; ++v) sum[v] = call.keep == 0 ? hn::Zero(d) : hn::LoadU(d, c + v * n);
  for (std::int64_t k = 0; k < call.k; ++k) {
    const auto av = hn::Set(d, a[k]);
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::MulAdd(av, load_as_float(d, b + k * call.b_stride + v * n), sum[v]);
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, c + v * n);
}

template <typename B>
void few_rows_combine_typed(const FewRows& call) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t row = 0; row < call.m; ++row) {
    std::int64_t col = 0;
    for (; col + 4 * n <= call.n; col += 4 * n) combine_tile<4, B>(call, row, col);
    for (; col + n <= call.n; col += n) combine_tile<1, B>(call, row, col);
    for (; col < call.n; ++col) {
      float& out = call.c[row * call.c_stride + col];
      float total = call.keep == 0 ? 0.0F : out;
      const B* b = static_cast<const B*>(call.b) + col;
      for (std::int64_t k = 0; k < call.k; ++k)
        total += call.a[row * call.a_stride + k] * as_float(b[k * call.b_stride]);
      out = total;
    }
  }
}

void few_rows_combine_impl(const FewRows& call) {
  if (call.b_type == ElementType::kFloat32) {
    few_rows_combine_typed<float>(call);
  } else {
    few_rows_combine_typed<BFloat16Bits>(call);
  }
}

template <typename From, typename To>
HWY_INLINE void convert(const From* in, std::int64_t count, To* out) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + n <= count; j += n) store_from_float(d, load_as_float(d, in + j), out + j);
  for (; j < count; ++j) {
    if constexpr (sizeof(To) == sizeof(float)) {
      out[j] = from_bfloat16(in[j]);
    } else {
      out[j] = to_bfloat16(in[j]);
    }
  }
}

void widen_impl(const BFloat16Bits* in, std::int64_t n, float* out) {
  convert(in, n, out);
}
void narrow_impl(const float* in, std::int64_t n, BFloat16Bits* out) {
  convert(in, n, out);
}

const char* vector_target_name_impl() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace fathom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fathom::kernels {

HWY_EXPORT(softmax_rows_impl);
HWY_EXPORT(scale_row_impl);
HWY_EXPORT(softcap_row_impl);
HWY_EXPORT(few_rows_dot_impl);
HWY_EXPORT(few_rows_combine_impl);
HWY_EXPORT(widen_impl);
HWY_EXPORT(narrow_impl);
HWY_EXPORT(vector_target_name_impl);

void softmax_rows(const SoftmaxBlock& block, const SoftmaxRows& rows) {
  HWY_DYNAMIC_DISPATCH(softmax_rows_impl)(block, rows);
}

void softcap_row(float* scores, float scale, float cap, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(softcap_row_impl)(scores, scale, cap, n);
}

void scale_row(const float* in, float factor, std::int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(scale_row_impl)(in, factor, n, out);
}

void few_rows_dot(const FewRows& call, std::int64_t n_begin, std::int64_t n_end) {
  HWY_DYNAMIC_DISPATCH(few_rows_dot_impl)(call, n_begin, n_end);
}

void few_rows_combine(const FewRows& call) {
  HWY_DYNAMIC_DISPATCH(few_rows_combine_impl)(call);
}

void widen(const BFloat16Bits* in, std::int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(widen_impl)(in, n, out);
}

void narrow(const float* in, std::int64_t n, BFloat16Bits* out) {
  HWY_DYNAMIC_DISPATCH(narrow_impl)(in, n, out);
}

const char* vector_target_name() {
  return HWY_DYNAMIC_DISPATCH(vector_target_name_impl)();
}

}  // namespace fathom::kernels
#endif  // HWY_ONCE
