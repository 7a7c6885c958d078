#include "harness/model/linear_function.h"

#include <torch/torch.h>

#include <cstdint>

#include "harness/kernels/block_attention.h"
#include "harness/kernels/gemm.h"
#include "harness/model/train_convert.h"

namespace fathom::model {
namespace {

using torch::Tensor;
using torch::autograd::variable_list;

constexpr std::int64_t kLeastRows = 16;
// Row counts in the inner dimension are padded to this, so that ragged batches share compiled products.
constexpr std::int64_t kRowMultiple = 64;

std::int64_t padded_rows(std::int64_t rows) {
  return (rows + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
}

std::uint16_t* bits(const Tensor& x) {
  return reinterpret_cast<std::uint16_t*>(x.data_ptr());
}

/// bf16 copy of [rows, columns] with rows padded by zeros.
Tensor narrowed(const Tensor& x, std::int64_t rows) {
  const std::int64_t columns = x.size(-1), padded = padded_rows(rows);
  Tensor out = torch::empty({padded, columns}, torch::kBFloat16);
  narrow_rows(x.data_ptr<float>(), rows, columns, bits(out), padded);
  return out;
}

struct ProductSize {
  std::int64_t m, n, k;
};

void multiply_bf16(kernels::MatrixLayout layout, const ProductSize& size, const Tensor& a, const Tensor& b,
                   const Tensor& c) {
  kernels::GemmCall call;
  call.type = kernels::ElementType::kBFloat16;
  call.layout = layout;
  call.m = size.m;
  call.n = size.n;
  call.k = size.k;
  call.a = a.data_ptr();
  call.a_stride = a.stride(0);
  call.b = b.data_ptr();
  call.b_stride = b.stride(0);
  call.c = c.data_ptr<float>();
  call.c_stride = size.n;
  kernels::gemm(call);
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& x, const Tensor& weight,
                        const c10::optional<Tensor>& bias) {
    const std::int64_t in = weight.size(1), out = weight.size(0), rows = x.numel() / in;
    const Tensor x16 = narrowed(x.contiguous(), rows);
    Tensor w16 = torch::empty({out, in}, torch::kBFloat16);
    narrow_rows(weight.contiguous().data_ptr<float>(), out, in, bits(w16), out);
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = out;
    const Tensor y = torch::empty(shape);
    multiply_bf16(kernels::MatrixLayout::kRowsAreOutputs, {rows, out, in}, x16, w16, y);
    const bool has_bias = bias.has_value() && bias->defined();
    if (has_bias) add_bias(bias->data_ptr<float>(), rows, out, y.data_ptr<float>());
    ctx->save_for_backward({x16, w16});
    ctx->saved_data["has_bias"] = has_bias;
    ctx->saved_data["shape"] = x.sizes().vec();
    return y;
  }

  static variable_list backward(torch::autograd::AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &x16 = saved[0], &w16 = saved[1];
    const std::int64_t out = w16.size(0), in = w16.size(1);
    const Tensor dy = gradients[0].contiguous();
    const std::int64_t rows = dy.numel() / out, padded = x16.size(0);
    const Tensor dx = torch::empty(ctx->saved_data["shape"].toIntVector());
    multiply_bf16(kernels::MatrixLayout::kRowsAreInputs, {rows, in, out}, narrowed(dy, rows), w16, dx);
    Tensor dy_transposed = torch::empty({out, padded}, torch::kBFloat16);
    Tensor d_bias;
    if (ctx->saved_data["has_bias"].toBool()) d_bias = torch::empty({out});
    narrow_transposed(dy.data_ptr<float>(), rows, out, bits(dy_transposed), padded,
                      d_bias.defined() ? d_bias.data_ptr<float>() : nullptr);
    const Tensor dw = torch::empty({out, in});
    multiply_bf16(kernels::MatrixLayout::kRowsAreInputs, {out, in, padded}, dy_transposed, x16, dw);
    return {dx, dw, d_bias};
  }
};

}  // namespace

bool linear_runs_on_bf16(const Tensor& x, const Tensor& weight) {
  return x.device().is_cpu() && x.scalar_type() == torch::kFloat32 && weight.scalar_type() == torch::kFloat32 &&
         weight.dim() == 2 && x.numel() >= kLeastRows * weight.size(1) && kernels::has_native_bf16();
}

Tensor linear_bf16(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return LinearFunction::apply(x, weight, bias.defined() ? c10::optional<Tensor>(bias) : c10::nullopt);
}

}  // namespace fathom::model
