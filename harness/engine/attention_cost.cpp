#include "harness/engine/attention_cost.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <vector>

#include "harness/engine/kv_cache.h"
#include "harness/model/ops.h"
#include "harness/position/position_scheme.h"

namespace fathom::engine {
namespace {

constexpr std::int64_t kHeads = 8, kHeadWidth = 64, kChunk = 512;
constexpr std::int64_t kThreeRoundsUpTo = 4096;  // longer passes take seconds and vary less

std::optional<std::int64_t> status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kilobytes = 0;
    if (word == field && status >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

/// From here on VmHWM counts anew, if the system lets a process ask for it.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

struct LayerInput {
  torch::Tensor q, k, v, hidden, positions;
};

LayerInput drawn_input(std::int64_t length) {
  const auto vectors = [&] { return at::randn({1, length, kHeads, kHeadWidth}, torch::kFloat32); };
  return {vectors(), vectors(), vectors(), at::randn({1, length, kHeads * kHeadWidth}, torch::kFloat32),
          at::arange(length, torch::kInt64).unsqueeze(0)};
}

void pass_through_cache(const checkpoint::DecoderConfig& config, position::PositionScheme& scheme,
                        const LayerInput& input, KvCache& cache) {
  const std::int64_t length = input.q.size(1);
  for (std::int64_t first = 0; first < length; first += kChunk) {
    const std::int64_t n = std::min(kChunk, length - first);
    const auto part = [&](const torch::Tensor& x) { return x.narrow(1, first, n); };
    const std::vector<model::SequenceSpan> spans = {{0, n, first, length, &cache}};
    model::ops::attention({part(input.q), part(input.k), part(input.v), part(input.positions), part(input.hidden), 0,
                           &config.layers[0], &scheme, &spans});
  }
}

}  // namespace

checkpoint::DecoderConfig one_layer_config(const std::string& scheme, const std::string& remap,
                                           std::int64_t length_tokens) {
  checkpoint::DecoderConfig config;
  config.d_model = kHeads * kHeadWidth;
  config.vocab_size = 16;
  config.claimed_context = length_tokens;
  config.trained_context = length_tokens;
  checkpoint::LayerSpec layer;
  layer.n_heads = layer.n_kv_heads = kHeads;
  layer.d_head = kHeadWidth;
  layer.d_ff = 16;
  layer.position.kind = scheme;
  layer.position.scaling.original_context = std::max<std::int64_t>(1, length_tokens / 4);
  if (position::position_infos().at(scheme).rotates) {
    layer.position.rotary_dim = kHeadWidth;
    layer.position.rope_base = 10000;
  }
  layer.position.remap.method = remap;
  config.layers = {layer};
  return config;
}

AttentionCost measure_attention(const checkpoint::DecoderConfig& config, std::int64_t length_tokens) {
  const at::NoGradGuard no_grad;
  const auto scheme = position::make_position_scheme({&config, 0, nullptr, nullptr});
  for (torch::Tensor& parameter : scheme->parameters()) parameter.uniform_(-0.1, 0.1);
  const LayerInput input = drawn_input(length_tokens);
  KvCache cache(config, kernels::ElementType::kFloat32);
  cache.reserve(length_tokens);
  AttentionCost cost{std::numeric_limits<double>::infinity(), std::nullopt};
  for (int round = 0; round < (length_tokens <= kThreeRoundsUpTo ? 3 : 2); ++round) {
    const bool counts_memory = reset_peak();
    const auto before = status_bytes("VmRSS:");
    const auto begin = std::chrono::steady_clock::now();
    pass_through_cache(config, *scheme, input, cache);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    cost.seconds = std::min(cost.seconds, taken.count());
    const auto peak = status_bytes("VmHWM:");
    if (counts_memory && before && peak) {
      cost.extra_bytes = std::max(cost.extra_bytes.value_or(0), *peak - *before);
    }
  }
  return cost;
}

}  // namespace fathom::engine
