// The training product against plain double arithmetic, in both precisions.

#include "harness/model/linear_function.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "harness/kernels/block_attention.h"
#include "tests/support/catch.h"

namespace {

using fathom::model::Bf16ProductScope;
using fathom::model::fused_linear;
using fathom::model::fused_linear_applies;
using torch::Tensor;

struct Results {
  Tensor y, dx, dw, db;
};

/// Values and gradients of sum(direction * f(x, weight, bias)).
template <typename Function>
Results values_and_gradients(const std::vector<Tensor>& inputs, const Tensor& direction, Function function) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) leaves.push_back(input.clone().requires_grad_(true));
  const Tensor y = function(leaves[0], leaves[1], leaves[2]);
  y.backward(direction.to(y.scalar_type()));
  return {y.detach(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
}

/// Largest difference from the reference in parts of the reference's largest number.
double relative_error(const Tensor& got, const Tensor& reference) {
  return ((got.to(torch::kFloat64) - reference).abs().max() / reference.abs().max()).item<double>();
}

double worst_relative_error(const Results& got, const Results& reference) {
  return std::max({relative_error(got.y, reference.y), relative_error(got.dx, reference.dx),
                   relative_error(got.dw, reference.dw), relative_error(got.db, reference.db)});
}

Results reference_of(const std::vector<Tensor>& inputs, const Tensor& direction) {
  std::vector<Tensor> doubles;
  for (const Tensor& input : inputs) doubles.push_back(input.to(torch::kFloat64));
  return values_and_gradients(doubles, direction, [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return torch::matmul(x, w.t()) + b;
  });
}

}  // namespace

TEST_CASE("fused linear: float32 products wherever the processor multiplies bf16", "[model][linear]") {
  torch::manual_seed(5);
  for (const std::int64_t rows : {16, 63, 130}) {  // ragged and whole multiples of the padding
    INFO(rows << " rows");
    const std::vector<Tensor> inputs{torch::randn({rows, 48}), torch::randn({40, 48}), torch::randn({40})};
    REQUIRE(fused_linear_applies(inputs[0], inputs[1]));
    const Tensor direction = torch::randn({rows, 40});
    const Results reference = reference_of(inputs, direction);
    CHECK(worst_relative_error(values_and_gradients(inputs, direction, fused_linear), reference) < 1e-6);
  }
}

TEST_CASE("fused linear: bf16 products while a scope lives, and not a moment longer", "[model][linear]") {
  torch::manual_seed(6);
  const std::vector<Tensor> inputs{torch::randn({5, 13, 48}), torch::randn({40, 48}), torch::randn({40})};
  const Tensor direction = torch::randn({5, 13, 40});
  const Results reference = reference_of(inputs, direction);
  double scoped = 0;
  {
    const Bf16ProductScope scope;
    { const Bf16ProductScope inner; }
    scoped = worst_relative_error(values_and_gradients(inputs, direction, fused_linear), reference);
  }
  CHECK(scoped < 1e-2);
  CHECK((scoped > 1e-5) == fathom::kernels::has_native_bf16());
  CHECK(worst_relative_error(values_and_gradients(inputs, direction, fused_linear), reference) < 1e-6);
}
