#include "harness/engine/diagnostics.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <sstream>

#include "harness/core/text_util.h"
#include "harness/kernels/gemm.h"

namespace fathom::engine {
namespace {

constexpr std::int64_t kSize = 1024;

/// Of a product of kSize in all three dimensions; the best of several.
double gflops_of(const std::function<void()>& product) {
  product();  // warm-up: primitives are created, pages are touched
  double best_seconds = 1e9;
  double spent_seconds = 0;
  for (int round = 0; round < 8 && spent_seconds < 0.1; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    product();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best_seconds = std::min(best_seconds, seconds);
    spent_seconds += seconds;
  }
  return 2.0 * kSize * kSize * kSize / best_seconds / 1e9;
}

double torch_gflops(at::ScalarType type) {
  const at::NoGradGuard no_grad;
  const at::Tensor a = at::ones({kSize, kSize}, type);
  const at::Tensor b = at::ones({kSize, kSize}, type);
  return gflops_of([&] { at::mm(a, b); });
}

double engine_gflops(at::ScalarType type) {
  const at::Tensor a = at::ones({kSize, kSize}, type);
  const at::Tensor b = at::ones({kSize, kSize}, type);
  at::Tensor c = at::empty({kSize, kSize}, at::kFloat);
  kernels::GemmCall call;
  call.type = type == at::kFloat ? kernels::ElementType::kFloat32 : kernels::ElementType::kBFloat16;
  call.m = call.n = call.k = kSize;
  call.a = a.data_ptr();
  call.b = b.data_ptr();
  call.c = c.data_ptr<float>();
  call.a_stride = call.b_stride = call.c_stride = kSize;
  return gflops_of([&] { kernels::gemm(call); });
}

}  // namespace

MatmulSpeed measure_matmul_speed() {
  return {torch_gflops(at::kFloat), torch_gflops(at::kBFloat16)};
}

MatmulSpeed measure_prefill_speed() {
  return {engine_gflops(at::kFloat), engine_gflops(at::kBFloat16)};
}

EngineFacts engine_facts() {
  EngineFacts facts;
  facts.torch_version = TORCH_VERSION;
  std::istringstream config(at::show_config());
  std::vector<std::string> found;
  for (std::string line; std::getline(config, line);) {
    const std::string_view text = trim(line);
    constexpr std::string_view kCapability = "- CPU capability usage: ";
    if (starts_with(text, kCapability)) facts.cpu_capability = std::string(text.substr(kCapability.size()));
    for (const std::string_view key : {"- Intel(R) MKL-DNN", "- OpenMP", "- LAPACK", "- Build settings: BLAS_INFO"}) {
      if (starts_with(text, key)) found.emplace_back(text.substr(2, text.find(", ") - 2));
    }
  }
  facts.blas = join(found, "; ");
  facts.n_threads = at::get_num_threads();
  facts.cuda = at::hasCUDA();
  return facts;
}

}  // namespace fathom::engine
