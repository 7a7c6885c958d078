// Scalings that depend on the length in their three modes, held against the defects of other programs by number.

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/position_override.h"
#include "harness/core/error.h"
#include "harness/engine/probe.h"
#include "harness/engine/torch_language_model.h"
#include "harness/rope/rope_scaling.h"
#include "tests/engine/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

using namespace fathom;          // NOLINT
using namespace fathom::engine;  // NOLINT

namespace {

using Options = std::map<std::string, std::string>;

/// Eight channels' divisors for LongRoPE on heads of 16.
const Options kLongRope = {{"short_factor", "1,1.05,1.1,1.15,1.25,1.3,1.4,1.5"},
                           {"long_factor", "1,1.3,1.9,2.7,3.6,4.4,5.1,6"}};

/// A scaling method and its options.
struct Method {
  std::string name;
  Options options;

  std::string text() const {
    std::string out = name;
    for (const auto& [option, value] : options) out += " " + option + "=" + value;
    return out;
  }
};

Method method_of(const std::string& name) {
  if (name == "longrope") return {name, kLongRope};
  if (name == "divisors") return {name, {{"divisors", "1,1,1.5,2,2.5,3,3.5,4"}}};
  return {name, {}};
}

/// A tiny model with L0 = 64 under a scaling.
checkpoint::DecoderConfig scaled(const Method& method, rope::LengthPolicy policy, std::int64_t frozen_length = 0) {
  checkpoint::PositionOverride change;
  change.scaling = method.name;
  change.factor = rope::scalings().at(method.name).uses_factor ? 4 : 1;
  change.length_policy = policy;
  change.frozen_length = frozen_length;
  change.scaling_options = OptionSource("test", method.options);
  return checkpoint::apply_override(test::tiny_config(), change);
}
checkpoint::DecoderConfig scaled(const std::string& name, rope::LengthPolicy policy, std::int64_t frozen_length = 0) {
  return scaled(method_of(name), policy, frozen_length);
}

/// Every method of the registry, and options that make a list depend on the length.
std::vector<Method> all_methods() {
  std::vector<Method> out = {{"yarn", {{"dynamic", "on"}}}, {"dynamic", {{"alpha", "stepped"}}}};
  for (const rope::RopeScalingEntry& entry : rope::scalings().entries()) {
    try {
      scaled(std::string(entry.name), rope::LengthPolicy::kConsistent);
      out.push_back(method_of(std::string(entry.name)));
    } catch (const ConfigError& error) {
      WARN("SKIPPED: " << error.what());  // a method whose required options are not in method_of()
    }
  }
  return out;
}

std::unique_ptr<lm::LanguageModel> make_scaled_model(const checkpoint::DecoderConfig& config) {
  const test::RandomCheckpoint checkpoint(config);
  return make_language_model(load_weights(checkpoint, {}), config, {});
}

ProbeResult probe(const checkpoint::DecoderConfig& config, const TokenIds& ids) {
  const test::RandomCheckpoint checkpoint(config);
  return probe_logits(load_weights(checkpoint, {}), config, {}, ids);
}

/// Largest difference between the log-probabilities of ids[k..] after a prompt of ids[..k], and those of passes over
/// the whole text, over some k on both sides of L0.
double split_difference(const checkpoint::DecoderConfig& config, const TokenIds& ids) {
  const auto model = make_scaled_model(config);
  // Teacher forcing feeds all but the last id.
  const ProbeResult whole = probe(config, TokenIds(ids.begin(), ids.end() - 1));
  double worst = 0;
  for (const std::int64_t k : {1, 40, 63, 64, 65, 80}) {
    lm::Request request;
    request.prompt.assign(ids.begin(), ids.begin() + k);
    request.continuations = {{k, TokenIds(ids.begin() + k, ids.end())}};
    const auto completion = model->complete({request}).front();
    REQUIRE(completion.error.empty());
    const auto& got = completion.continuations.front().logprobs;
    for (std::size_t i = 0; i + 1 < got.size(); ++i)
      worst = std::max(worst, std::fabs(got[i] - whole.next_logprobs[static_cast<std::size_t>(k) - 1 + i]));
  }
  return worst;
}

std::vector<float> last_logits(const checkpoint::DecoderConfig& config, const TokenIds& ids) {
  return probe(config, ids).last_logits;
}

TokenIds greedy(lm::LanguageModel& model, const TokenIds& prompt, std::int64_t n) {
  lm::Request request;
  request.prompt = prompt;
  request.max_new_tokens = n;
  const auto completion = model.complete({request}).front();
  REQUIRE(completion.error.empty());
  return completion.ids;
}

TokenIds repeated_passes(const checkpoint::DecoderConfig& config, TokenIds ids, std::int64_t n) {
  TokenIds out;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto logits = last_logits(config, ids);
    out.push_back(static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    ids.push_back(out.back());
  }
  return out;
}

}  // namespace

TEST_CASE("T-01 T-42 T-44: prefill of N equals prefill of k and decoding of N - k under every scaling, across L0",
          "[engine][scaling][cache]") {
  const TokenIds ids = test::random_ids(90, 4);
  for (const Method& method : all_methods()) {
    const double worst = split_difference(scaled(method, rope::LengthPolicy::kConsistent), ids);
    INFO("scaling " << method.text() << ": largest difference of a log-probability " << worst);
    CHECK(worst < 2e-5);  // float32, sums in another order
  }
}

TEST_CASE("T-01: in mode hf cached keys are stale, so decoding differs from one pass", "[engine][scaling][hf]") {
  const TokenIds ids = test::random_ids(90, 4);
  for (const char* name : {"dynamic", "longrope"}) {
    INFO("scaling " << name);
    CHECK(split_difference(scaled(name, rope::LengthPolicy::kHf), ids) > 1e-2);
    // Below L0 nothing changes, so nothing goes stale.
    CHECK(split_difference(scaled(name, rope::LengthPolicy::kFrozen, 90), ids) < 2e-5);
  }
}

TEST_CASE("T-02: step by step the base is that of the length reached", "[engine][scaling]") {
  const checkpoint::DecoderConfig config = scaled("dynamic", rope::LengthPolicy::kConsistent);
  const TokenIds prompt = test::random_ids(60, 8);
  CHECK(greedy(*make_scaled_model(config), prompt, 12) == repeated_passes(config, prompt, 12));
  for (const std::int64_t length : {64, 65, 100, 256}) {
    const double grown = 10000 * std::pow(4.0 * std::max<double>(static_cast<double>(length), 64) / 64 - 3, 16.0 / 14);
    const auto list = checkpoint::resolve_frequencies(config.layers[0].position, length).inv_freq;
    CHECK(std::fabs(list[1] / std::pow(grown, -2.0 / 16) - 1) < 1e-12);
  }
}

TEST_CASE("T-03 T-04 T-05: a long input leaves no trace in a shorter one, in any order", "[engine][scaling]") {
  const auto policy = GENERATE(rope::LengthPolicy::kConsistent, rope::LengthPolicy::kHf);
  for (const char* name : {"dynamic", "longrope"}) {
    INFO("scaling " << name << " mode " << rope::to_string(policy));
    const checkpoint::DecoderConfig config = scaled(name, policy);
    const auto used = make_scaled_model(config);
    for (const std::int64_t length : {150, 100, 40, 100, 150}) {
      const TokenIds prompt = test::random_ids(length, 6);
      CHECK(greedy(*used, prompt, 4) == greedy(*make_scaled_model(config), prompt, 4));
    }
  }
}

TEST_CASE("T-06: hf and frozen are different models, and each says its name", "[engine][scaling]") {
  const checkpoint::DecoderConfig hf = scaled("dynamic", rope::LengthPolicy::kHf);
  const checkpoint::DecoderConfig frozen = scaled("dynamic", rope::LengthPolicy::kFrozen, 256);
  const TokenIds ids = test::random_ids(100, 2);
  CHECK(std::fabs(probe(hf, ids).next_logprobs[50] - probe(frozen, ids).next_logprobs[50]) > 1e-3);
  CHECK(make_scaled_model(hf)->identity().position.find("mode=hf") != std::string::npos);
  CHECK(make_scaled_model(frozen)->identity().position.find("mode=frozen;at=256") != std::string::npos);
}

TEST_CASE("T-07 T-63: the last position of an extended context works under every scaling", "[engine][scaling]") {
  for (const Method& method : all_methods()) {
    INFO("scaling " << method.text());
    const auto logits = last_logits(scaled(method, rope::LengthPolicy::kConsistent), test::random_ids(4 * 64, 9));
    CHECK(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); }));
  }
}

TEST_CASE("T-08 T-41: up to L0 the table is the plain (or short) one to the bit, from L0 + 1 on another",
          "[engine][scaling]") {
  for (const char* name : {"dynamic", "longrope"}) {
    INFO("scaling " << name);
    const checkpoint::PositionSpec spec = scaled(name, rope::LengthPolicy::kConsistent).layers[0].position;
    const auto below = checkpoint::resolve_frequencies(spec, 63).inv_freq;
    CHECK(checkpoint::resolve_frequencies(spec, 64).inv_freq == below);
    CHECK(checkpoint::resolve_frequencies(spec, 65).inv_freq != below);
    const auto frozen = scaled(name, rope::LengthPolicy::kFrozen, 48).layers[0].position;
    CHECK(checkpoint::resolve_frequencies(frozen, 4096).inv_freq == below);
  }
}

TEST_CASE("T-09: a short sequence beside a long one keeps its own base, in mode hf too", "[engine][scaling]") {
  const auto policy = GENERATE(rope::LengthPolicy::kConsistent, rope::LengthPolicy::kHf);
  const auto model = make_scaled_model(scaled("dynamic", policy));
  std::vector<lm::Request> requests(3);
  const std::int64_t lengths[] = {150, 61, 75};
  for (std::size_t i = 0; i < 3; ++i) {
    requests[i].prompt = test::random_ids(lengths[i], 7);  // the shorter ones are prefixes of the longest
    requests[i].max_new_tokens = 6;
    requests[i].continuations = {{lengths[i], test::random_ids(5, 3)}, {lengths[i] - 2, test::random_ids(3, 4)}};
  }
  const auto together = model->complete(requests);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto alone = model->complete({requests[i]}).front();
    CHECK(together[i].ids == alone.ids);
    CHECK(together[i].computed_tokens == lengths[i]);  // bases differ: nothing can be shared
    for (std::size_t c = 0; c < 2; ++c) {
      const auto &a = together[i].continuations[c].logprobs, &b = alone.continuations[c].logprobs;
      REQUIRE(a.size() == b.size());
      for (std::size_t n = 0; n < a.size(); ++n) CHECK(std::fabs(a[n] - b[n]) < 2e-5);
    }
  }
}

TEST_CASE("mode hf: prompts of one length share nothing", "[engine][scaling][hf]") {
  const auto model = make_scaled_model(scaled("dynamic", rope::LengthPolicy::kHf));
  lm::Request request;
  request.prompt = test::random_ids(300, 1);
  request.max_new_tokens = 2;
  const auto out = model->complete({request, request});
  CHECK(out[0].computed_tokens == 300);
  CHECK(out[1].computed_tokens == 300);
  CHECK(out[0].ids == out[1].ids);
}

TEST_CASE("mode hf: decoding equals the reference's through its stale cache", "[engine][parity][hf]") {
  const std::string name = GENERATE("llama_dynamic", "llama_longrope");
  const std::string folder = "fixtures/tiny/" + name;
  FATHOM_NEEDS_SHARED(folder + "/expected.json");
  const auto expected = test::read_json_file(test::shared_path(folder + "/expected.json"));
  const auto checkpoint = checkpoint::open_checkpoint(test::shared_path(folder));
  EngineOptions options;
  options.dtype = "float32";
  const auto weights = load_weights(*checkpoint, options);
  checkpoint::PositionOverride change;
  const auto ids = expected["input_ids"].get<TokenIds>();
  const auto& crossing = expected["crossing"];
  const TokenIds prompt(ids.begin(), ids.begin() + crossing["prompt_len"].get<std::int64_t>());
  const auto decoded = [&](rope::LengthPolicy policy, const TokenIds& from, std::size_t n) {
    change.length_policy = policy;
    const auto config = checkpoint::apply_override(checkpoint->config(), change);
    return greedy(*make_language_model(weights, config, options), from, static_cast<std::int64_t>(n));
  };
  const auto cached = expected["greedy"].get<TokenIds>();
  CHECK(decoded(rope::LengthPolicy::kHf, ids, cached.size()) == cached);
  const auto crossed = crossing["greedy_cache"].get<TokenIds>();
  CHECK(decoded(rope::LengthPolicy::kHf, prompt, crossed.size()) == crossed);
  const auto recomputed = crossing["greedy_no_cache"].get<TokenIds>();
  CHECK(decoded(rope::LengthPolicy::kConsistent, prompt, recomputed.size()) == recomputed);
}

TEST_CASE("engine: which settings compute the whole sequence again for every token", "[engine][positions]") {
  const auto at = [](const Method& method, rope::LengthPolicy policy, std::int64_t length_tokens) {
    return recomputes_every_token(scaled(method, policy, length_tokens), length_tokens);
  };
  using rope::LengthPolicy;
  CHECK_FALSE(at(method_of("dynamic"), LengthPolicy::kConsistent, 64));  // L0
  CHECK(at(method_of("dynamic"), LengthPolicy::kConsistent, 65));
  CHECK(at(method_of("dynamic"), LengthPolicy::kConsistent, 128));
  CHECK_FALSE(at(method_of("dynamic"), LengthPolicy::kFrozen, 128));
  CHECK_FALSE(at(method_of("dynamic"), LengthPolicy::kHf, 128));
  CHECK(at({"yarn", {{"dynamic", "on"}}}, LengthPolicy::kConsistent, 128));
  CHECK_FALSE(at(method_of("yarn"), LengthPolicy::kConsistent, 128));
  CHECK(at(method_of("longrope"), LengthPolicy::kConsistent, 65));  // the other list, once
  CHECK_FALSE(at(method_of("longrope"), LengthPolicy::kConsistent, 66));
}
