// Vector helpers shared by the Highway translation units of this folder. Included once per instruction set: no include
// guard of the usual kind.

#if defined(FATHOM_VECTOR_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FATHOM_VECTOR_MATH_INL_H_
#undef FATHOM_VECTOR_MATH_INL_H_
#else
#define FATHOM_VECTOR_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "harness/kernels/element_type.h"

HWY_BEFORE_NAMESPACE();
namespace fathom::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 2^x for x <= 127; exactly 0 below -126, so that masked logits (-infinity) weigh nothing. Least-squares polynomial on
// [-1/2, 1/2], relative error 1.1e-7.
template <class D>
HWY_INLINE hn::VFromD<D> exp2_vector(D d, hn::VFromD<D> x) {
  const auto low = hn::Set(d, -126.0F);
  const auto in_range = hn::Ge(x, low);
  const auto clamped = hn::Max(x, low);
  const auto whole = hn::Round(clamped);
  const auto f = hn::Sub(clamped, whole);
  auto p = hn::MulAdd(hn::Set(d, 1.3218672e-3F), f, hn::Set(d, 9.6716979e-3F));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5508930e-2F));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022238e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 6.9314686e-1F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  const hn::RebindToSigned<D> di;
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(di, whole));
  return hn::IfThenElseZero(in_range, hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent)));
}

template <class D>
HWY_INLINE hn::VFromD<D> load_as_float(D d, const float* p) {
  return hn::LoadU(d, p);
}

template <class D>
HWY_INLINE hn::VFromD<D> load_as_float(D d, const BFloat16Bits* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> dh;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, p))));
}

template <class D>
HWY_INLINE void store_from_float(D d, hn::VFromD<D> v, float* p) {
  hn::StoreU(v, d, p);
}

// Nearest even. Spelled out because Highway 1.0's own conversion truncates.
template <class D>
HWY_INLINE void store_from_float(D /*d*/, hn::VFromD<D> v, BFloat16Bits* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> dh;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffU)));
  hn::StoreU(hn::TruncateTo(dh, hn::ShiftRight<16>(rounded)), dh, p);
}

// Cheaper rounding for probabilities: ties go up instead of to even, which is without bias in a sum of many.
template <class D>
HWY_INLINE void store_probability(D /*d*/, hn::VFromD<D> v, BFloat16Bits* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> dh;
  const auto rounded = hn::Add(hn::BitCast(du, v), hn::Set(du, 0x8000U));
  hn::StoreU(hn::TruncateTo(dh, hn::ShiftRight<16>(rounded)), dh, p);
}

template <class D>
HWY_INLINE void store_probability(D d, hn::VFromD<D> v, float* p) {
  hn::StoreU(v, d, p);
}

inline float as_float(float value) {
  return value;
}
inline float as_float(BFloat16Bits value) {
  return from_bfloat16(value);
}

}  // namespace fathom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FATHOM_VECTOR_MATH_INL_H_
