#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/core/error.h"
#include "harness/engine/diagnostics.h"
#include "harness/engine/torch_language_model.h"
#include "harness/kernels/block_attention.h"

namespace fathom::cli {
namespace {

/// Below this a matrix product runs without an optimised BLAS: LibTorch's own loops reach a few GF/s.
constexpr double kSlowGflopsPerThread = 15;

nlohmann::ordered_json doctor_facts() {
  engine::set_threads(0);
  const engine::EngineFacts facts = engine::engine_facts();
  const engine::KernelSpeed speed = engine::measure_matmul_speed();
  const engine::KernelSpeed prefill = engine::measure_prefill_speed();
  std::vector<std::string> advice;
  if (speed.float32_gflops < kSlowGflopsPerThread * static_cast<double>(facts.n_threads)) {
    advice.push_back(
        fmt::format("float32 matrix products reach only {:.0f} GF/s: LibTorch works without a fast BLAS; install "
                    "libopenblas0-pthread, and "
                    "see that OPENBLAS_CORETYPE and OPENBLAS_NUM_THREADS are not set",
                    speed.float32_gflops));
  }
  const std::string coretype = environment("OPENBLAS_CORETYPE", "");
  if (!coretype.empty())
    advice.push_back(fmt::format("OPENBLAS_CORETYPE={} is set and picks slow kernels; unset it", coretype));
  const std::string threads = environment("OMP_NUM_THREADS", "");
  if (!threads.empty()) advice.push_back(fmt::format("OMP_NUM_THREADS={} limits the threads", threads));
  std::error_code failure;
  const auto space = std::filesystem::space(std::filesystem::current_path(), failure);
  const double free_gib = failure ? 0 : static_cast<double>(space.available) / (1 << 30);
  if (free_gib < 1)
    advice.push_back(fmt::format("only {:.1f} GiB free in the working folder; results are stored there", free_gib));
  return {{"fathom", FATHOM_VERSION},
          {"versions", engine::engine_versions()},
          {"libraries", FATHOM_DEPENDENCY_VERSIONS},
          {"hardware", hardware_line()},
          {"threads", facts.n_threads},
          {"blas", facts.blas},
          {"vector_instructions", facts.cpu_capability},
          {"native_bf16", kernels::has_native_bf16()},
          {"attention_float32", kernels::attention_kernel_name(kernels::ElementType::kFloat32)},
          {"attention_bf16", kernels::attention_kernel_name(kernels::ElementType::kBFloat16)},
          {"matmul_float32_gflops", speed.float32_gflops},
          {"matmul_bf16_gflops", speed.bf16_gflops},
          {"prefill_float32_gflops", prefill.float32_gflops},
          {"prefill_bf16_gflops", prefill.bf16_gflops},
          {"cuda", facts.cuda},
          {"free_disk_gib", free_gib},
          {"cache", cache_root()},
          {"models", environment("FATHOM_MODELS", "(not set)")},
          {"advice", advice}};
}

int run_doctor(const Arguments& arguments) {
  const nlohmann::ordered_json facts = doctor_facts();
  if (arguments.has("json")) {
    fmt::print("{}\n", facts.dump(1));
    return static_cast<int>(ExitCode::kOk);
  }
  for (const auto& [key, value] : facts.items()) {
    if (key == "advice") continue;
    const std::string text = value.is_string()         ? value.get<std::string>()
                             : value.is_number_float() ? fmt::format("{:.1f}", value.get<double>())
                                                       : value.dump();
    fmt::print("{:<22} {}\n", key, text);
  }
  for (const auto& advice : facts["advice"]) fmt::print("advice: {}\n", advice.get<std::string>());
  if (facts["advice"].empty()) fmt::print("nothing to improve\n");
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::doctor_entry() {
  return {"doctor",
          "BLAS in use and its speed, threads, vector instructions, bf16, disk, versions",
          "Takes under a second; says how to mend a slow set-up.",
          {"fathom doctor", "fathom doctor --json"},
          {},
          {{"json", "", "machine-readable", {}}},
          run_doctor};
}

}  // namespace fathom::cli
