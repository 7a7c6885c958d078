// Remapped rotation: every pair of query and key sees the relative position that the remap says, prefilled or decoded.

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <vector>

#include "harness/checkpoint/position_override.h"
#include "harness/core/error.h"
#include "harness/engine/probe.h"
#include "harness/engine/torch_language_model.h"
#include "harness/position/position_scheme.h"
#include "harness/rope/position_remap.h"
#include "tests/engine/tiny_models.h"
#include "tests/support/catch.h"

using namespace fathom;          // NOLINT
using namespace fathom::engine;  // NOLINT

namespace {

constexpr std::int64_t kSeq = 200;

checkpoint::DecoderConfig remapped(const std::string& remap, const std::map<std::string, std::string>& options = {},
                                   const test::TinyShape& shape = {}) {
  checkpoint::PositionOverride change;
  change.remap = checkpoint::RemapSpec{remap, OptionSource("test", options)};
  return checkpoint::apply_override(test::tiny_config(shape), change);
}

std::vector<std::string> remap_names() {
  std::vector<std::string> names;
  for (const rope::PositionRemapEntry& entry : rope::position_remaps().entries()) names.emplace_back(entry.name);
  return names;
}

ProbeResult probe(const checkpoint::DecoderConfig& config, const TokenIds& ids) {
  const test::RandomCheckpoint checkpoint(config);
  return probe_logits(load_weights(checkpoint, {}), config, {}, ids);
}

std::vector<float> flat(const torch::Tensor& x) {
  const torch::Tensor values = x.contiguous();
  return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
}

/// q . k after rotating q by the relative position, in double; one head each, split halves.
double rotated_score(const float* q, const float* k, double relative, const rope::RopeFrequencies& frequencies) {
  const std::size_t half = frequencies.inv_freq.size();
  double sum = 0;
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = relative * frequencies.inv_freq[i];
    const double a = static_cast<double>(q[i]), b = static_cast<double>(q[i + half]);
    sum += (a * std::cos(angle) - b * std::sin(angle)) * static_cast<double>(k[i]) +
           (b * std::cos(angle) + a * std::sin(angle)) * static_cast<double>(k[i + half]);
  }
  return sum;
}

}  // namespace

TEST_CASE("remaps: the scores of all pairs equal a naive loop that rotates by the relative position",
          "[engine][remap]") {
  const at::NoGradGuard no_grad;
  const std::string name = GENERATE(from_range(remap_names()));
  INFO(name);
  const checkpoint::DecoderConfig config = remapped(name);
  const checkpoint::PositionSpec& spec = config.layers[0].position;
  const auto scheme = position::make_position_scheme({&config, 0, nullptr, nullptr});
  const auto remap = checkpoint::make_remap(spec);
  REQUIRE(scheme->n_regions() == remap->n_regions());
  const torch::Tensor positions = at::arange(kSeq, torch::kInt64).unsqueeze(0);
  const torch::Tensor x = at::linspace(-1, 1, kSeq * 16, torch::kFloat32).sin().view({1, kSeq, 1, 16});
  const torch::Tensor y = at::linspace(2, -3, kSeq * 16, torch::kFloat32).cos().view({1, kSeq, 1, 16});
  const rope::RopeFrequencies frequencies = checkpoint::resolve_frequencies(spec, kSeq);
  const torch::Tensor regions = scheme->region(positions[0], positions[0]);
  const std::vector<float> q_plain = flat(x), k_plain = flat(y);
  std::int64_t pairs = 0;
  double worst = 0, worst_plain = 0;
  for (std::int64_t region = 0; region < scheme->n_regions(); ++region) {
    const std::vector<float> q = flat(scheme->rotate(x, position::Role::kQuery, positions, kSeq, region));
    const std::vector<float> k = flat(scheme->rotate(y, position::Role::kKey, positions, kSeq, region));
    for (std::int64_t i = 0; i < kSeq; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        if (regions[i][j].item<std::int64_t>() != region) continue;
        ++pairs;
        double got = 0;
        for (std::int64_t c = 0; c < 16; ++c)
          got += static_cast<double>(q[static_cast<std::size_t>(i * 16 + c)]) *
                 static_cast<double>(k[static_cast<std::size_t>(j * 16 + c)]);
        const auto score = [&](double relative) {
          return rotated_score(q_plain.data() + i * 16, k_plain.data() + j * 16, relative, frequencies);
        };
        worst = std::max(worst, std::fabs(got - score(rope::relative_position(*remap, i, j))));
        worst_plain = std::max(worst_plain, std::fabs(got - score(static_cast<double>(i - j))));
      }
    }
  }
  CHECK(pairs == kSeq * (kSeq + 1) / 2);
  CHECK(worst < 1e-5);       // float32 rotations of 16 channels of size 1
  CHECK(worst_plain > 0.1);  // the default options do change something at three times the original context
}

TEST_CASE("remaps: a window beyond the text changes nothing, one within it does", "[engine][remap]") {
  const TokenIds ids = test::random_ids(150, 3);
  const ProbeResult plain = probe(test::tiny_config(), ids);
  const ProbeResult wide = probe(remapped("rerope", {{"window", "1000"}}), ids);
  const ProbeResult narrow = probe(remapped("rerope", {{"window", "20"}}), ids);
  double same = 0, other = 0;
  for (std::size_t i = 0; i < plain.next_logprobs.size(); ++i) {
    same = std::max(same, std::fabs(plain.next_logprobs[i] - wide.next_logprobs[i]));
    other = std::max(other, std::fabs(plain.next_logprobs[i] - narrow.next_logprobs[i]));
  }
  CHECK(same < 2e-5);  // two attention paths in float32
  CHECK(other > 0.01);
}

TEST_CASE("remaps: prefill of N equals prefill of k and decoding of N - k", "[engine][remap][cache]") {
  const std::string name = GENERATE(from_range(remap_names()));
  const std::int64_t window = GENERATE(0, 70);
  INFO(name << " window " << window);
  test::TinyShape shape;
  shape.window = window;
  const checkpoint::DecoderConfig config = remapped(name, {}, shape);
  const TokenIds ids = test::random_ids(300, 5);
  const ProbeResult whole = probe(config, ids);
  const test::RandomCheckpoint checkpoint(config);
  const auto model = make_language_model(load_weights(checkpoint, {}), config, {});
  double worst = 0;
  for (const std::int64_t k : {1, 64, 255, 257}) {
    lm::Request request;
    request.prompt.assign(ids.begin(), ids.begin() + k);
    request.continuations = {{k, TokenIds(ids.begin() + k, ids.end())}};
    const auto completion = model->complete({request}).front();
    REQUIRE(completion.error.empty());
    const auto& got = completion.continuations.front().logprobs;
    for (std::size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::fabs(got[i] - whole.next_logprobs[static_cast<std::size_t>(k) - 1 + i]));
  }
  INFO("largest difference of a log-probability " << worst);
  CHECK(worst < 2e-5);
}

TEST_CASE("remaps: refused where they cannot be meant", "[engine][remap][errors]") {
  checkpoint::DecoderConfig nope = test::tiny_config();
  for (checkpoint::LayerSpec& layer : nope.layers) {
    layer.position.kind = "nope";
    layer.position.rotary_dim = 0;
  }
  checkpoint::PositionOverride change;
  change.remap = checkpoint::RemapSpec{"rerope", {}};
  CHECK_THROWS_AS(checkpoint::apply_override(nope, change), ConfigError);
  change.scaling = "dynamic";
  change.length_policy = rope::LengthPolicy::kHf;
  CHECK_THROWS_AS(checkpoint::apply_override(test::tiny_config(), change), ConfigError);
  change = {};
  change.remap = checkpoint::RemapSpec{"reropee", {}};
  CHECK_THROWS_AS(checkpoint::apply_override(test::tiny_config(), change), ConfigError);
  change.remap = checkpoint::RemapSpec{"rerope", OptionSource("test", {{"windoww", "3"}})};
  CHECK_THROWS_AS(checkpoint::apply_override(test::tiny_config(), change), ConfigError);
}
