// See vector_kernels.cpp for the choice of instruction sets.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "harness/kernels/fused_ops.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h has to come first.
#include <hwy/highway.h>
#include <omp.h>

#include <cmath>

#include "harness/kernels/fused_ops.h"
#include "harness/kernels/vector_math-inl.h"

// Functors and row loops live in the per-target namespace; the parallel loops outside call them through Highway's
// table, one call a row.
#ifndef FATHOM_FUSED_OPS_PARAMETERS_
#define FATHOM_FUSED_OPS_PARAMETERS_
namespace fathom::kernels {
struct NormParameters {
  const float* weight;
  const float* bias;
  double eps;
};
}  // namespace fathom::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::VFromD<D> sigmoid_vector(D d, hn::VFromD<D> x) {
  // Below -87 the exponential would overflow; the quotient is 0 there to float32 anyway.
  const auto t = hn::Min(hn::Mul(x, hn::Set(d, -1.44269504F)), hn::Set(d, 126.0F));
  return hn::Div(hn::Set(d, 1.0F), hn::Add(hn::Set(d, 1.0F), exp2_vector(d, t)));
}

// Abramowitz and Stegun 7.1.26 on |z|: erf(z) = 1 - (a1 t + ... + a5 t^5) exp(-z^2), t = 1 / (1 + 0.3275911 z).
template <class D>
HWY_INLINE hn::VFromD<D> erf_vector(D d, hn::VFromD<D> z) {
  const auto one = hn::Set(d, 1.0F);
  const auto magnitude = hn::Abs(z);
  const auto t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.3275911F), magnitude, one));
  auto p = hn::MulAdd(hn::Set(d, 1.061405429F), t, hn::Set(d, -1.453152027F));
  p = hn::MulAdd(p, t, hn::Set(d, 1.421413741F));
  p = hn::MulAdd(p, t, hn::Set(d, -0.284496736F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.254829592F));
  const auto decay = exp2_vector(d, hn::Mul(hn::Mul(magnitude, magnitude), hn::Set(d, -1.44269504F)));
  return hn::CopySign(hn::NegMulAdd(hn::Mul(p, t), decay, one), z);
}

struct Silu {
  template <class D>
  HWY_INLINE hn::VFromD<D> operator()(D d, hn::VFromD<D> x) const {
    return hn::Mul(x, sigmoid_vector(d, x));
  }
};

struct Gelu {
  template <class D>
  HWY_INLINE hn::VFromD<D> operator()(D d, hn::VFromD<D> x) const {
    const auto half = hn::Mul(x, hn::Set(d, 0.5F));
    return hn::MulAdd(half, erf_vector(d, hn::Mul(x, hn::Set(d, 0.70710678F))), half);
  }
};

struct GeluTanh {
  template <class D>
  HWY_INLINE hn::VFromD<D> operator()(D d, hn::VFromD<D> x) const {
    const auto cubic = hn::MulAdd(hn::Mul(hn::Set(d, 0.044715F), hn::Mul(x, x)), x, x);
    return hn::Mul(x, sigmoid_vector(d, hn::Mul(cubic, hn::Set(d, 1.59576912F))));
  }
};

struct Relu {
  template <class D>
  HWY_INLINE hn::VFromD<D> operator()(D d, hn::VFromD<D> x) const {
    return hn::Max(x, hn::Zero(d));
  }
};

struct ReluSquared {
  template <class D>
  HWY_INLINE hn::VFromD<D> operator()(D d, hn::VFromD<D> x) const {
    const auto y = hn::Max(x, hn::Zero(d));
    return hn::Mul(y, y);
  }
};

// act(x) * up over one row; the tail runs through a padded copy, so that every element sees the same arithmetic.
template <class Act, typename Out>
HWY_INLINE void activate_row(const Act& act, const float* x, const float* up, std::int64_t width, Out* out) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + n <= width; j += n) {
    auto y = act(d, hn::LoadU(d, x + j));
    if (up != nullptr) y = hn::Mul(y, hn::LoadU(d, up + j));
    store_from_float(d, y, out + j);
  }
  if (j == width) return;
  HWY_ALIGN float tail[HWY_MAX_BYTES / sizeof(float)] = {};
  for (std::int64_t t = j; t < width; ++t) tail[t - j] = x[t];
  hn::Store(act(d, hn::Load(d, tail)), d, tail);
  for (std::int64_t t = j; t < width; ++t) {
    const float y = up == nullptr ? tail[t - j] : tail[t - j] * up[t];
    if constexpr (sizeof(Out) == sizeof(float)) {
      out[t] = y;
    } else {
      out[t] = to_bfloat16(y);
    }
  }
}

template <typename Out>
HWY_INLINE void activate_row_kind(ActivationKind kind, const float* x, const float* up, std::int64_t width, Out* out) {
  switch (kind) {
    case ActivationKind::kSilu:
      return activate_row(Silu(), x, up, width, out);
    case ActivationKind::kGelu:
      return activate_row(Gelu(), x, up, width, out);
    case ActivationKind::kGeluTanh:
      return activate_row(GeluTanh(), x, up, width, out);
    case ActivationKind::kRelu:
      return activate_row(Relu(), x, up, width, out);
    case ActivationKind::kReluSquared:
      return activate_row(ReluSquared(), x, up, width, out);
  }
}

void activate_row_impl(const RowsCall& rows, std::int64_t row, ActivationKind kind, const float* up) {
  const float* x = rows.x + row * rows.stride;
  const float* other = up == nullptr ? nullptr : up + row * rows.stride;
  if (rows.out_type == ElementType::kFloat32) {
    activate_row_kind(kind, x, other, rows.width, static_cast<float*>(rows.out) + row * rows.out_stride);
  } else {
    activate_row_kind(kind, x, other, rows.width, static_cast<BFloat16Bits*>(rows.out) + row * rows.out_stride);
  }
}

// Sums of x and of (x - shift)^2; lanes are added in double, so that wide rows lose nothing.
HWY_INLINE double sum_row(const float* x, std::int64_t width) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  std::int64_t j = 0;
  for (; j + n <= width; j += n) sum = hn::Add(sum, hn::LoadU(d, x + j));
  double total = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  for (; j < width; ++j) total += static_cast<double>(x[j]);
  return total;
}

HWY_INLINE double sum_squares_row(const float* x, std::int64_t width, float shift) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vshift = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  std::int64_t j = 0;
  for (; j + n <= width; j += n) {
    const auto v = hn::Sub(hn::LoadU(d, x + j), vshift);
    sum = hn::MulAdd(v, v, sum);
  }
  double total = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  for (; j < width; ++j) total += static_cast<double>(x[j] - shift) * static_cast<double>(x[j] - shift);
  return total;
}

template <typename Out>
HWY_INLINE void write_normalised(const float* x, std::int64_t width, float shift, float scale, const NormParameters& p,
                                 Out* out) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const auto vshift = hn::Set(d, shift);
  const auto vscale = hn::Set(d, scale);
  std::int64_t j = 0;
  for (; j + n <= width; j += n) {
    auto y = hn::Mul(hn::Sub(hn::LoadU(d, x + j), vshift), vscale);
    if (p.weight != nullptr) y = hn::Mul(y, hn::LoadU(d, p.weight + j));
    if (p.bias != nullptr) y = hn::Add(y, hn::LoadU(d, p.bias + j));
    store_from_float(d, y, out + j);
  }
  for (; j < width; ++j) {
    float y = (x[j] - shift) * scale;
    if (p.weight != nullptr) y *= p.weight[j];
    if (p.bias != nullptr) y += p.bias[j];
    if constexpr (sizeof(Out) == sizeof(float)) {
      out[j] = y;
    } else {
      out[j] = to_bfloat16(y);
    }
  }
}

HWY_INLINE void write_row(const RowsCall& rows, std::int64_t row, float shift, float scale, const NormParameters& p) {
  const float* x = rows.x + row * rows.stride;
  if (rows.out_type == ElementType::kFloat32) {
    write_normalised(x, rows.width, shift, scale, p, static_cast<float*>(rows.out) + row * rows.out_stride);
  } else {
    write_normalised(x, rows.width, shift, scale, p, static_cast<BFloat16Bits*>(rows.out) + row * rows.out_stride);
  }
}

void rms_norm_row_impl(const RowsCall& rows, std::int64_t row, const NormParameters& p) {
  const double mean_square =
      sum_squares_row(rows.x + row * rows.stride, rows.width, 0) / static_cast<double>(rows.width);
  write_row(rows, row, 0, static_cast<float>(1.0 / std::sqrt(mean_square + p.eps)), p);
}

void layer_norm_row_impl(const RowsCall& rows, std::int64_t row, const NormParameters& p) {
  const float* x = rows.x + row * rows.stride;
  const auto width = static_cast<double>(rows.width);
  const auto mean = static_cast<float>(sum_row(x, rows.width) / width);
  const double variance = sum_squares_row(x, rows.width, mean) / width;
  write_row(rows, row, mean, static_cast<float>(1.0 / std::sqrt(variance + p.eps)), p);
}

void convert_row_impl(const RowsCall& rows, std::int64_t row) {
  write_row(rows, row, 0, 1, {nullptr, nullptr, 0});
}

void add_row_impl(float* x, const float* y, std::int64_t width) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + n <= width; j += n) hn::StoreU(hn::Add(hn::LoadU(d, x + j), hn::LoadU(d, y + j)), d, x + j);
  for (; j < width; ++j) x[j] += y[j];
}

}  // namespace fathom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fathom::kernels {

HWY_EXPORT(rms_norm_row_impl);
HWY_EXPORT(layer_norm_row_impl);
HWY_EXPORT(activate_row_impl);
HWY_EXPORT(convert_row_impl);
HWY_EXPORT(add_row_impl);

namespace {

// Below this many elements a parallel region costs more than it saves.
constexpr std::int64_t kMinParallelElements = 1 << 14;

template <typename PerRow>
void for_each_row(std::int64_t n_rows, std::int64_t width, const PerRow& per_row) {
#pragma omp parallel for schedule(static) if (n_rows * width >= kMinParallelElements && omp_in_parallel() == 0)
  for (std::int64_t row = 0; row < n_rows; ++row) per_row(row);
}

}  // namespace

void rms_norm_rows(const RowsCall& rows, const float* weight, const float* bias, double eps) {
  const NormParameters p{weight, bias, eps};
  for_each_row(rows.n_rows, rows.width, [&](std::int64_t row) {
    HWY_DYNAMIC_DISPATCH(rms_norm_row_impl)(rows, row, p);
  });
}

void layer_norm_rows(const RowsCall& rows, const float* weight, const float* bias, double eps) {
  const NormParameters p{weight, bias, eps};
  for_each_row(rows.n_rows, rows.width, [&](std::int64_t row) {
    HWY_DYNAMIC_DISPATCH(layer_norm_row_impl)(rows, row, p);
  });
}

void activate_rows(const RowsCall& rows, ActivationKind kind, const float* up) {
  for_each_row(rows.n_rows, rows.width, [&](std::int64_t row) {
    HWY_DYNAMIC_DISPATCH(activate_row_impl)(rows, row, kind, up);
  });
}

void convert_rows(const RowsCall& rows) {
  for_each_row(rows.n_rows, rows.width, [&](std::int64_t row) { HWY_DYNAMIC_DISPATCH(convert_row_impl)(rows, row); });
}

void add_bias_rows(float* x, std::int64_t n_rows, std::int64_t width, const float* bias) {
  for_each_row(n_rows, width, [&](std::int64_t row) {
    HWY_DYNAMIC_DISPATCH(add_row_impl)(x + row * width, bias, width);
  });
}

void add_in_place(float* x, const float* y, std::int64_t n) {
  constexpr std::int64_t kPart = 4096;
  for_each_row((n + kPart - 1) / kPart, kPart, [&](std::int64_t part) {
    const std::int64_t begin = part * kPart;
    HWY_DYNAMIC_DISPATCH(add_row_impl)(x + begin, y + begin, n - begin < kPart ? n - begin : kPart);
  });
}

}  // namespace fathom::kernels
#endif  // HWY_ONCE
