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
#include "harness/kernels/block_attention.h"
#include "harness/kernels/gemm.h"

namespace fathom::engine {
namespace {

constexpr std::int64_t kSize = 1024;
constexpr double kProductOperations = 2.0 * kSize * kSize * kSize;

/// The best of several rounds.
double gflops_of(double operations, const std::function<void()>& kernel) {
  kernel();  // warm-up: primitives are created, pages are touched
  double best_seconds = 1e9;
  double spent_seconds = 0;
  for (int round = 0; round < 8 && spent_seconds < 0.1; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    kernel();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best_seconds = std::min(best_seconds, seconds);
    spent_seconds += seconds;
  }
  return operations / best_seconds / 1e9;
}

double torch_gflops(at::ScalarType type) {
  const at::NoGradGuard no_grad;
  const at::Tensor a = at::ones({kSize, kSize}, type);
  const at::Tensor b = at::ones({kSize, kSize}, type);
  return gflops_of(kProductOperations, [&] { at::mm(a, b); });
}

kernels::ElementType element_type(at::ScalarType type) {
  return type == at::kFloat ? kernels::ElementType::kFloat32 : kernels::ElementType::kBFloat16;
}

double engine_gflops(at::ScalarType type) {
  const at::Tensor a = at::ones({kSize, kSize}, type);
  const at::Tensor b = at::ones({kSize, kSize}, type);
  at::Tensor c = at::empty({kSize, kSize}, at::kFloat);
  kernels::GemmCall call;
  call.type = element_type(type);
  call.m = call.n = call.k = kSize;
  call.a = a.data_ptr();
  call.b = b.data_ptr();
  call.c = c.data_ptr<float>();
  call.a_stride = call.b_stride = call.c_stride = kSize;
  return gflops_of(kProductOperations, [&] { kernels::gemm(call); });
}

double attention_gflops(at::ScalarType type, std::int64_t d_head) {
  constexpr std::int64_t kTokens = 2048;
  constexpr std::int64_t kHeads = 4;
  const at::Tensor q = at::ones({kTokens, kHeads, d_head}, type);
  const at::Tensor kv = at::ones({kHeads, kTokens, d_head}, type);
  at::Tensor out = at::empty({kTokens, kHeads, d_head}, at::kFloat);
  kernels::AttentionShape shape;
  shape.n_heads = shape.n_kv_heads = kHeads;
  shape.d_head = d_head;
  shape.type = element_type(type);
  kernels::AttentionSequence sequence;
  sequence.q = q.data_ptr();
  sequence.k = sequence.v = kv.data_ptr();
  sequence.out = out.data_ptr<float>();
  sequence.n_q = sequence.n_k = sequence.k_capacity = kTokens;
  const double visible_pairs = 0.5 * kTokens * (kTokens + 1);
  // Scores and weighted sums: two products of a multiply-add each.
  const double operations = 4 * visible_pairs * static_cast<double>(kHeads * d_head);
  return gflops_of(operations, [&] { kernels::block_attention(shape, {sequence}); });
}

}  // namespace

KernelSpeed measure_matmul_speed() {
  return {torch_gflops(at::kFloat), torch_gflops(at::kBFloat16)};
}

KernelSpeed measure_prefill_speed() {
  return {engine_gflops(at::kFloat), engine_gflops(at::kBFloat16)};
}

KernelSpeed measure_attention_speed(std::int64_t d_head) {
  return {attention_gflops(at::kFloat, d_head), attention_gflops(at::kBFloat16, d_head)};
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
