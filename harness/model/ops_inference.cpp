#include "harness/model/ops_inference.h"

#include <ATen/Functions.h>

#include <cmath>
#include <cstring>

#include "harness/core/error.h"
#include "harness/kernels/fused_ops.h"
#include "harness/kernels/gemm.h"
#include "harness/model/inference_attention.h"
#include "harness/model/ops_train.h"

namespace fathom::model::ops::inference {
namespace {

using kernels::ElementType;
using torch::Tensor;

/// Rows of the last dimension.
std::int64_t inference_rows(const Tensor& x) {
  return x.size(-1) == 0 ? 0 : x.numel() / x.size(-1);
}

const float* optional_data(const Tensor& x) {
  return x.defined() ? x.data_ptr<float>() : nullptr;
}

kernels::RowsCall inference_rows_call(const Tensor& x, const Tensor& out) {
  kernels::RowsCall call;
  call.x = x.data_ptr<float>();
  call.n_rows = inference_rows(x);
  call.width = call.stride = call.out_stride = x.size(-1);
  call.out = out.data_ptr();
  call.out_type = out.scalar_type() == torch::kBFloat16 ? ElementType::kBFloat16 : ElementType::kFloat32;
  return call;
}

Tensor in_type(const Tensor& x, torch::Dtype dtype) {
  const Tensor rows = x.contiguous();
  if (rows.scalar_type() == dtype) return rows;
  if (rows.scalar_type() != torch::kFloat32 || dtype != torch::kBFloat16) return rows.to(dtype);
  Tensor out = at::empty(rows.sizes(), dtype);
  kernels::convert_rows(inference_rows_call(rows, out));
  return out;
}

kernels::ActivationKind inference_activation(checkpoint::Activation activation) {
  switch (activation) {
    case checkpoint::Activation::kSilu:
      return kernels::ActivationKind::kSilu;
    case checkpoint::Activation::kGelu:
      return kernels::ActivationKind::kGelu;
    case checkpoint::Activation::kGeluTanh:
      return kernels::ActivationKind::kGeluTanh;
    case checkpoint::Activation::kRelu:
      return kernels::ActivationKind::kRelu;
    case checkpoint::Activation::kReluSquared:
      return kernels::ActivationKind::kReluSquared;
  }
  throw InvariantError("unknown activation");
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const bool bf16 = weight.scalar_type() == torch::kBFloat16;
  if (!bf16 && weight.scalar_type() != torch::kFloat32) return train::linear(x, weight, bias);
  const Tensor input = in_type(x, weight.scalar_type());
  const Tensor matrix = weight.contiguous();
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = matrix.size(0);
  Tensor out = at::empty(shape, torch::kFloat32);
  kernels::GemmCall call;
  call.type = bf16 ? ElementType::kBFloat16 : ElementType::kFloat32;
  call.m = inference_rows(input);
  call.n = matrix.size(0);
  call.k = matrix.size(1);
  call.a = input.data_ptr();
  call.a_stride = call.b_stride = call.k;
  call.b = matrix.data_ptr();
  call.c = out.data_ptr<float>();
  call.c_stride = call.n;
  kernels::gemm(call);
  if (bias.defined())
    kernels::add_bias_rows(call.c, call.m, call.n, bias.to(torch::kFloat32).contiguous().data_ptr<float>());
  return out;
}

Tensor norm(const Tensor& x, checkpoint::NormKind kind, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor rows = in_type(x, torch::kFloat32);
  Tensor out = at::empty(rows.sizes(), torch::kFloat32);
  switch (kind) {
    case checkpoint::NormKind::kRms:
      kernels::rms_norm_rows(inference_rows_call(rows, out), optional_data(weight), optional_data(bias), eps);
      return out;
    case checkpoint::NormKind::kLayer:
      kernels::layer_norm_rows(inference_rows_call(rows, out), optional_data(weight), optional_data(bias), eps);
      return out;
  }
  throw InvariantError("unknown norm kind");
}

Tensor activate(const Tensor& x, checkpoint::Activation activation) {
  const Tensor rows = in_type(x, torch::kFloat32);
  Tensor out = at::empty(rows.sizes(), torch::kFloat32);
  kernels::activate_rows(inference_rows_call(rows, out), inference_activation(activation), nullptr);
  return out;
}

Tensor gated(const Tensor& gate, const Tensor& up, checkpoint::Activation activation) {
  const Tensor gate_rows = in_type(gate, torch::kFloat32);
  const Tensor up_rows = in_type(up, torch::kFloat32);
  Tensor out = at::empty(gate_rows.sizes(), torch::kFloat32);
  kernels::activate_rows(inference_rows_call(gate_rows, out), inference_activation(activation),
                         up_rows.data_ptr<float>());
  return out;
}

Tensor attention(const AttentionCall& call) {
  return inference_attention(call);
}

}  // namespace fathom::model::ops::inference
