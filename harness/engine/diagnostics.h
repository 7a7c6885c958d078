#pragma once
// What `doctor` measures and `--dry-run` estimates with. No torch in this header.

#include <cstdint>
#include <string>
#include <vector>

namespace fathom::engine {

/// A multiply-add is two operations.
struct KernelSpeed {
  double float32_gflops = 0;
  double bf16_gflops = 0;
};

/// LibTorch's matrix product, which training goes through, of 1024 x 1024 x 1024. Takes about a quarter of a second.
KernelSpeed measure_matmul_speed();
/// The product that prompts go through (kernels::gemm), of the same size. Takes about a quarter of a second.
KernelSpeed measure_prefill_speed();
/// Causal attention of 2048 tokens over heads of `d_head` (kernels::block_attention), softmax included; counted are the
/// products of the pairs of tokens that see each other. Takes about a quarter of a second.
KernelSpeed measure_attention_speed(std::int64_t d_head);

struct EngineFacts {
  std::string torch_version;
  std::string blas;            ///< what LibTorch says of its BLAS and oneDNN, one line
  std::string cpu_capability;  ///< vector instructions LibTorch uses
  std::int64_t n_threads = 0;
  bool cuda = false;
};
EngineFacts engine_facts();

}  // namespace fathom::engine
