// The vector loops are compiled for several instruction sets; every one that this processor has is tried.

#include <hwy/targets.h>

#include <cmath>
#include <string>
#include <vector>

#include "harness/kernels/block_attention.h"
#include "harness/kernels/fused_ops.h"
#include "harness/kernels/log_softmax.h"
#include "harness/kernels/vector_kernels.h"
#include "tests/kernels/kernel_test_data.h"
#include "tests/support/catch.h"

using namespace fathom;           // NOLINT
using namespace fathom::kernels;  // NOLINT

namespace {

/// Outputs of every kernel on one small problem each, in a row.
std::vector<float> all_kernels(ElementType type) {
  const std::int64_t heads = 6, kv_heads = 2, d = 40, length = 90;
  const auto q = test::random_matrix(type, length * heads * d, 1);
  const auto k = test::random_matrix(type, kv_heads * length * d, 2);
  const auto v = test::random_matrix(type, kv_heads * length * d, 3);
  std::vector<float> out(static_cast<std::size_t>(length * heads * d));
  AttentionShape shape;
  shape.n_heads = heads;
  shape.n_kv_heads = kv_heads;
  shape.d_head = d;
  shape.softmax_scale = 0.3F;
  shape.window = 50;
  shape.type = type;
  AttentionSequence sequence;
  sequence.q = q.data();
  sequence.k = k.data();
  sequence.v = v.data();
  sequence.out = out.data();
  sequence.n_q = sequence.n_k = sequence.k_capacity = length;
  block_attention(shape, {sequence});
  std::vector<float> one(static_cast<std::size_t>(heads * d));
  sequence.out = one.data();
  sequence.n_q = 1;
  sequence.first_position = length - 1;
  block_attention(shape, {sequence});
  out.insert(out.end(), one.begin(), one.end());

  const std::vector<float> x = test::random_matrix(ElementType::kFloat32, 4 * 75, 4).values;
  std::vector<float> y(x.size());
  RowsCall rows;
  rows.x = x.data();
  rows.n_rows = 4;
  rows.width = rows.stride = rows.out_stride = 75;
  rows.out = y.data();
  rms_norm_rows(rows, x.data(), nullptr, 1e-5);
  out.insert(out.end(), y.begin(), y.end());
  layer_norm_rows(rows, x.data(), x.data() + 75, 1e-5);
  out.insert(out.end(), y.begin(), y.end());
  for (const auto kind :
       {ActivationKind::kSilu, ActivationKind::kGelu, ActivationKind::kGeluTanh, ActivationKind::kRelu}) {
    activate_rows(rows, kind, x.data());
    out.insert(out.end(), y.begin(), y.end());
  }
  std::vector<BFloat16Bits> half(75);
  rows.n_rows = 1;
  rows.out = half.data();
  rows.out_type = ElementType::kBFloat16;
  convert_rows(rows);
  widen(half.data(), 75, y.data());
  out.insert(out.end(), y.begin(), y.begin() + 75);
  out.push_back(static_cast<float>(log_sum_exp(x.data(), 300)));
  return out;
}

}  // namespace

TEST_CASE("kernels: every instruction set computes the same", "[kernels][targets]") {
  const auto type = GENERATE(ElementType::kFloat32, ElementType::kBFloat16);
  hwy::SetSupportedTargetsForTest(0);
  const std::vector<float> reference = all_kernels(type);
  const std::int64_t supported = hwy::SupportedTargets();
  std::vector<std::string> tried;
  for (int bit = 0; bit < 63; ++bit) {
    const std::int64_t target = std::int64_t{1} << bit;
    if ((supported & target) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    const std::string name = vector_target_name();
    const std::vector<float> got = all_kernels(type);
    tried.push_back(name);
    INFO("instruction set " << name);
    // float32 sums in another order; in bf16 a probability may round the other way, half of 2^-8.
    CHECK(test::largest_difference({reference.begin(), reference.end()}, got) <
          (type == ElementType::kFloat32 ? 2e-6 : 2e-3));
  }
  hwy::SetSupportedTargetsForTest(0);
  CHECK(tried.size() >= 2);
}
