#include "harness/engine/torch_language_model.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <omp.h>
#include <torch/version.h>

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/engine/batch_runner.h"
#include "harness/engine/diagnostics.h"
#include "harness/engine/loaded_weights.h"
#include "harness/engine/network.h"
#include "harness/kernels/block_attention.h"
#include "harness/kernels/gemm.h"
#include "harness/model/weights.h"
#include "harness/position/position_scheme.h"

namespace fathom::engine {
namespace {

/// Tiny models stay in float32: they are fast either way, and their scores then compare across machines.
constexpr std::int64_t kLargeModelParameters = 20'000'000;

kernels::ElementType engine_type(const EngineOptions& options, std::int64_t n_parameters) {
  if (options.dtype == "float32") return kernels::ElementType::kFloat32;
  if (options.dtype == "bf16") return kernels::ElementType::kBFloat16;
  if (options.dtype != "auto") {
    throw ConfigError(fmt::format("engine: dtype '{}' is unknown; allowed are auto, float32, bf16", options.dtype));
  }
  return kernels::has_native_bf16() && n_parameters > kLargeModelParameters ? kernels::ElementType::kBFloat16
                                                                            : kernels::ElementType::kFloat32;
}

void check_engine_device(const EngineOptions& options) {
  if (options.device == "cpu") return;
  if (options.device != "cuda")
    throw ConfigError(fmt::format("engine: device '{}' is unknown; allowed are cpu, cuda", options.device));
  throw ConfigError("engine: device cuda: the inference kernels of this build run on the CPU only; use --device cpu");
}

std::int64_t count_parameters(const checkpoint::Checkpoint& checkpoint) {
  std::int64_t total = 0;
  for (const checkpoint::TensorInfo& tensor : checkpoint.tensors()) {
    std::int64_t n = 1;
    for (const std::int64_t size : tensor.shape) n *= size;
    total += n;
  }
  return total;
}

/// Of every layer, without weights.
std::vector<std::shared_ptr<position::PositionScheme>> make_schemes(const checkpoint::DecoderConfig& config) {
  std::vector<std::shared_ptr<position::PositionScheme>> schemes;
  for (std::int64_t layer = 0; layer < config.n_layers(); ++layer) {
    const auto first = schemes.empty() ? nullptr : schemes.front();
    schemes.push_back(position::make_position_scheme({&config, layer, first, nullptr}));
  }
  return schemes;
}

class TorchLanguageModel : public lm::LanguageModel {
 public:
  TorchLanguageModel(std::shared_ptr<const LoadedWeights> weights, const checkpoint::DecoderConfig& config,
                     const EngineOptions& options)
      : network_(std::move(weights), config) {
    if (!options.encoder_ids.empty()) network_.set_encoder_input(options.encoder_ids);
    limits_.batch_tokens = options.batch_tokens;
    limits_.cache_bytes = options.cache_bytes;
    limits_.share_prefixes = options.share_prefixes;
    limits_.stop = options.stop;
  }

  std::vector<lm::Completion> complete(const std::vector<lm::Request>& batch) override {
    return run_batch(network_, batch, limits_);
  }
  std::optional<std::int64_t> max_positions() const override { return network_.max_positions(); }
  std::int64_t vocab_size() const override { return network_.config().vocab_size; }

  lm::ModelIdentity identity() const override {
    const LoadedWeights& weights = network_.weights();
    lm::ModelIdentity identity;
    identity.name = network_.config().name;
    identity.weights_hash = weights.fingerprint;
    identity.position = checkpoint::describe_position(network_.config());
    identity.device = weights.device;
    identity.dtype = weights.type == kernels::ElementType::kFloat32 ? "float32" : "bf16";
    identity.kernel = kernels::attention_kernel_name(weights.type);
    identity.parameters = weights.n_parameters;
    return identity;
  }

 private:
  Network network_;
  BatchLimits limits_;
};

}  // namespace

std::shared_ptr<const LoadedWeights> load_weights(const checkpoint::Checkpoint& checkpoint,
                                                  const EngineOptions& options) {
  check_engine_device(options);
  const at::NoGradGuard no_grad;
  auto weights = std::make_shared<LoadedWeights>();
  weights->config = checkpoint.config();
  weights->n_parameters = count_parameters(checkpoint);
  weights->type = engine_type(options, weights->n_parameters);
  weights->device = options.device;
  weights->fingerprint = checkpoint.fingerprint();
  const torch::Dtype dtype = weights->type == kernels::ElementType::kFloat32 ? torch::kFloat32 : torch::kBFloat16;
  weights->model = std::make_shared<model::DecoderLm>(weights->config, dtype);
  model::load_weights(*weights->model, checkpoint);
  return weights;
}

std::int64_t weight_bytes(const LoadedWeights& weights) {
  std::int64_t total = 0;
  for (const auto& item : weights.model->named_parameters())
    total += item.value().numel() * static_cast<std::int64_t>(item.value().element_size());
  return total;
}

std::unique_ptr<lm::LanguageModel> make_language_model(std::shared_ptr<const LoadedWeights> weights,
                                                       const checkpoint::DecoderConfig& config,
                                                       const EngineOptions& options) {
  return std::make_unique<TorchLanguageModel>(std::move(weights), config, options);
}

void check_position_settings(const checkpoint::DecoderConfig& config) {
  make_schemes(config);
}

bool recomputes_every_token(const checkpoint::DecoderConfig& config, std::int64_t length_tokens) {
  if (keeps_stale_keys(config)) return false;
  const auto schemes = make_schemes(config);
  return std::any_of(schemes.begin(), schemes.end(), [&](const auto& scheme) {
    return scheme->rotation_state(length_tokens - 1) != scheme->rotation_state(length_tokens) ||
           scheme->softmax_scale_factor(length_tokens - 1) != scheme->softmax_scale_factor(length_tokens);
  });
}

void set_threads(std::int64_t n_threads) {
  const int n = n_threads > 0 ? static_cast<int>(n_threads) : omp_get_num_procs();
  omp_set_num_threads(n);
  at::set_num_threads(n);
}

std::string engine_versions() {
  return fmt::format("LibTorch {}, {}, {}", TORCH_VERSION, kernels::gemm_version(), engine_facts().blas);
}

}  // namespace fathom::engine
