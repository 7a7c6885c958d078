// A change of the rotation on a model with two: the engine runs what the override says, layer by layer.

#include <cmath>

#include "harness/checkpoint/position_override.h"
#include "harness/engine/probe.h"
#include "tests/engine/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/shared_dir.h"

using namespace fathom;  // NOLINT

TEST_CASE("override: Gemma-3 under YaRN runs it on its global layer only, unless told otherwise",
          "[engine][override]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/gemma3_text/expected.json");
  const test::Fixture fixture(test::shared_path("fixtures/tiny/gemma3_text"));
  const auto logprobs = [&](const checkpoint::DecoderConfig& config) {
    return engine::probe_logits(fixture.weights, config, fixture.options, fixture.ids).next_logprobs;
  };
  const auto difference = [](const std::vector<double>& a, const std::vector<double>& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
    return worst;
  };
  checkpoint::PositionOverride change;
  change.scaling = "yarn";
  change.factor = 4;
  change.original_context = 32;
  const checkpoint::DecoderConfig declared = fixture.checkpoint->config();
  REQUIRE(declared.n_layers() == 3);
  checkpoint::DecoderConfig by_hand = declared;  // the last layer sees everything
  by_hand.layers[2].position.scaling.method = "yarn";
  by_hand.layers[2].position.scaling.factor = 4;
  by_hand.layers[2].position.scaling.original_context = 32;
  const auto global = logprobs(checkpoint::apply_override(declared, change));
  CHECK(global == logprobs(by_hand));
  CHECK(difference(global, logprobs(declared)) > 1e-5);
  change.layers = checkpoint::RotationLayers::kLocal;
  const auto local = logprobs(checkpoint::apply_override(declared, change));
  change.layers = checkpoint::RotationLayers::kAll;
  const auto all = logprobs(checkpoint::apply_override(declared, change));
  CHECK(difference(local, global) > 1e-5);
  CHECK(difference(all, global) > 1e-5);
  CHECK(difference(all, local) > 1e-5);
}
