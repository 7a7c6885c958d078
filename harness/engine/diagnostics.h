#pragma once
// What `doctor` measures and `--dry-run` estimates with. No torch in this header.

#include <cstdint>
#include <string>
#include <vector>

namespace fathom::engine {

/// Of a product of 1024 x 1024 x 1024.
struct MatmulSpeed {
  double float32_gflops = 0;
  double bf16_gflops = 0;
};

/// LibTorch's matrix product, which training goes through. Takes about a quarter of a second.
MatmulSpeed measure_matmul_speed();
/// The product that prompts go through (kernels::gemm). Takes about a quarter of a second.
MatmulSpeed measure_prefill_speed();

struct EngineFacts {
  std::string torch_version;
  std::string blas;            ///< what LibTorch says of its BLAS and oneDNN, one line
  std::string cpu_capability;  ///< vector instructions LibTorch uses
  std::int64_t n_threads = 0;
  bool cuda = false;
};
EngineFacts engine_facts();

}  // namespace fathom::engine
