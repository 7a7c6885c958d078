// Cost of one attention layer by position scheme; not a test. scheme_bench [LENGTH...]
//
// Time of a whole pass of one layer's attention (rotation, scores, softmax, values) in float32 through a KV cache, and
// the memory it takes on top of its inputs, both beside nope. The peak is reset before each measurement, so a scheme
// that allocated [length x length] would show: 1 GiB a head at 16K.

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "harness/engine/kv_cache.h"
#include "harness/engine/torch_language_model.h"
#include "harness/model/ops.h"
#include "harness/position/position_scheme.h"
#include "harness/rope/position_remap.h"

namespace {

using namespace fathom;  // NOLINT

constexpr std::int64_t kHeads = 8, kHeadWidth = 64, kChunk = 512;

double status_megabytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == field) {
      double kilobytes = 0;
      status >> kilobytes;
      return kilobytes / 1024;
    }
  }
  return 0;
}

/// From here on VmHWM counts anew.
void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

struct SchemeCost {
  double seconds = 0;
  double megabytes = 0;
};

checkpoint::DecoderConfig bench_config(const std::string& scheme, const std::string& remap, std::int64_t length) {
  checkpoint::DecoderConfig config;
  config.d_model = kHeads * kHeadWidth;
  config.vocab_size = 16;
  config.claimed_context = length;
  config.trained_context = length;
  checkpoint::LayerSpec layer;
  layer.n_heads = layer.n_kv_heads = kHeads;
  layer.d_head = kHeadWidth;
  layer.d_ff = 16;
  layer.position.kind = scheme;
  layer.position.scaling.original_context = length / 4;
  if (position::position_infos().at(scheme).rotates) {
    layer.position.rotary_dim = kHeadWidth;
    layer.position.rope_base = 10000;
  }
  layer.position.remap.method = remap;
  config.layers = {layer};
  return config;
}

SchemeCost measure(const checkpoint::DecoderConfig& config, std::int64_t length) {
  const auto scheme = position::make_position_scheme({&config, 0, nullptr, nullptr});
  for (torch::Tensor& parameter : scheme->parameters()) parameter.uniform_(-0.1, 0.1);
  const auto vectors = [&] { return at::randn({1, length, kHeads, kHeadWidth}, torch::kFloat32); };
  const torch::Tensor q = vectors(), k = vectors(), v = vectors();
  const torch::Tensor hidden = at::randn({1, length, kHeads * kHeadWidth}, torch::kFloat32);
  const torch::Tensor positions = at::arange(length, torch::kInt64).unsqueeze(0);
  engine::KvCache cache(config, kernels::ElementType::kFloat32);
  cache.reserve(length);
  SchemeCost best{1e30, 0};
  for (int round = 0; round < (length <= 4096 ? 3 : 2); ++round) {
    reset_peak();
    const double before = status_megabytes("VmRSS:");
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t first = 0; first < length; first += kChunk) {
      const std::int64_t n = std::min(kChunk, length - first);
      const auto part = [&](const torch::Tensor& x) { return x.narrow(1, first, n); };
      const std::vector<model::SequenceSpan> spans = {{0, n, first, length, &cache}};
      model::ops::AttentionCall call{part(q), part(k),           part(v),      part(positions), part(hidden),
                                     0,       &config.layers[0], scheme.get(), &spans};
      model::ops::attention(call);
    }
    best.seconds =
        std::min(best.seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    best.megabytes = std::max(best.megabytes, status_megabytes("VmHWM:") - before);
  }
  return best;
}

void print_row(const std::string& name, std::int64_t length, const SchemeCost& cost, const SchemeCost& nope) {
  fmt::print("{:<22} {:>7} {:>11.1f} {:>8.2f} {:>12.1f}\n", name, length, cost.seconds * 1e3,
             cost.seconds / nope.seconds, cost.megabytes);
}

}  // namespace

int main(int argc, char** argv) {
  const at::NoGradGuard no_grad;
  engine::set_threads(0);
  std::vector<std::int64_t> lengths;
  for (int i = 1; i < argc; ++i) lengths.push_back(std::atoll(argv[i]));
  if (lengths.empty()) lengths = {1024, 4096, 16384};
  fmt::print("one layer, {} heads of {}, float32, chunks of {}\n", kHeads, kHeadWidth, kChunk);
  fmt::print("{:<22} {:>7} {:>11} {:>8} {:>12}\n", "scheme", "length", "ms", "x nope", "MiB on top");
  for (const std::int64_t length : lengths) {
    measure(bench_config("nope", "none", length), length);  // threads and buffers are made
    const SchemeCost nope = measure(bench_config("nope", "none", length), length);
    for (const std::string& scheme : position::position_infos().names())
      print_row(scheme, length, measure(bench_config(scheme, "none", length), length), nope);
    for (const std::string& remap : rope::position_remaps().names())
      print_row("rope " + remap, length, measure(bench_config("rope", remap, length), length), nope);
  }
  return 0;
}
