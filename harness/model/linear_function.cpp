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

thread_local bool bf16_products = false;

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

/// What the products read: a bf16 copy, or the numbers themselves.
Tensor operand(const Tensor& x, std::int64_t rows, bool bf16) {
  const Tensor matrix = x.contiguous();
  return bf16 ? narrowed(matrix, rows) : matrix.view({rows, matrix.size(-1)});
}

/// The same of a weight matrix, whose rows need no padding.
Tensor weight_operand(const Tensor& weight, bool bf16) {
  const Tensor matrix = weight.contiguous();
  if (!bf16) return matrix;
  Tensor out = torch::empty(matrix.sizes(), torch::kBFloat16);
  narrow_rows(matrix.data_ptr<float>(), matrix.size(0), matrix.size(1), bits(out), matrix.size(0));
  return out;
}

struct Transposed {
  Tensor matrix;       ///< [columns, rows], rows padded like those of operand()
  Tensor column_sums;  ///< [columns]; undefined unless asked for
};

/// dy: [rows, columns] float32.
Transposed transposed_operand(const Tensor& dy, std::int64_t padded, bool bf16, bool with_sums) {
  const std::int64_t rows = dy.size(0), columns = dy.size(1);
  Transposed out;
  if (!bf16) {
    out.matrix = dy.t().contiguous();
    if (with_sums) out.column_sums = dy.sum(0);
    return out;
  }
  out.matrix = torch::empty({columns, padded}, torch::kBFloat16);
  if (with_sums) out.column_sums = torch::empty({columns});
  narrow_transposed(dy.data_ptr<float>(), rows, columns, bits(out.matrix), padded,
                    with_sums ? out.column_sums.data_ptr<float>() : nullptr);
  return out;
}

struct ProductSize {
  std::int64_t m, n, k;
};

void multiply_operands(kernels::MatrixLayout layout, const ProductSize& size, const Tensor& a, const Tensor& b,
                       const Tensor& c) {
  kernels::GemmCall call;
  call.type = a.scalar_type() == torch::kBFloat16 ? kernels::ElementType::kBFloat16 : kernels::ElementType::kFloat32;
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
    const bool bf16 = bf16_products && kernels::has_native_bf16();
    const Tensor x_operand = operand(x, rows, bf16), w_operand = weight_operand(weight, bf16);
    std::vector<std::int64_t> shape = x.sizes().vec();
    shape.back() = out;
    const Tensor y = torch::empty(shape);
    multiply_operands(kernels::MatrixLayout::kRowsAreOutputs, {rows, out, in}, x_operand, w_operand, y);
    const bool has_bias = bias.has_value() && bias->defined();
    if (has_bias) add_bias(bias->data_ptr<float>(), rows, out, y.data_ptr<float>());
    ctx->save_for_backward({x_operand, w_operand});
    ctx->saved_data["has_bias"] = has_bias;
    ctx->saved_data["shape"] = x.sizes().vec();
    return y;
  }

  static variable_list backward(torch::autograd::AutogradContext* ctx, variable_list gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const Tensor &x_operand = saved[0], &w_operand = saved[1];
    const std::int64_t out = w_operand.size(0), in = w_operand.size(1), padded = x_operand.size(0);
    const Tensor dy = gradients[0].contiguous().view({-1, out});
    const std::int64_t rows = dy.size(0);
    const bool bf16 = x_operand.scalar_type() == torch::kBFloat16;
    const Tensor dx = torch::empty(ctx->saved_data["shape"].toIntVector());
    multiply_operands(kernels::MatrixLayout::kRowsAreInputs, {rows, in, out}, operand(dy, rows, bf16), w_operand, dx);
    const Transposed dy_transposed = transposed_operand(dy, padded, bf16, ctx->saved_data["has_bias"].toBool());
    const Tensor dw = torch::empty({out, in});
    multiply_operands(kernels::MatrixLayout::kRowsAreInputs, {out, in, padded}, dy_transposed.matrix, x_operand, dw);
    return {dx, dw, dy_transposed.column_sums};
  }
};

}  // namespace

Bf16ProductScope::Bf16ProductScope() : outer_(bf16_products) {
  bf16_products = true;
}

Bf16ProductScope::~Bf16ProductScope() {
  bf16_products = outer_;
}

bool fused_linear_applies(const Tensor& x, const Tensor& weight) {
  return x.device().is_cpu() && x.scalar_type() == torch::kFloat32 && weight.scalar_type() == torch::kFloat32 &&
         weight.dim() == 2 && x.numel() >= kLeastRows * weight.size(1);
}

Tensor fused_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return LinearFunction::apply(x, weight, bias.defined() ? c10::optional<Tensor>(bias) : c10::nullopt);
}

}  // namespace fathom::model
