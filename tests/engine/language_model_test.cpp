#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "harness/core/error.h"
#include "harness/engine/probe.h"
#include "harness/engine/torch_language_model.h"
#include "harness/kernels/block_attention.h"
#include "harness/position/position_registry.h"
#include "tests/engine/tiny_models.h"
#include "tests/support/catch.h"

using namespace fathom;          // NOLINT
using namespace fathom::engine;  // NOLINT

namespace {

struct Scaled {
  std::string kind;
  std::string scaling;
  rope::LengthPolicy policy = rope::LengthPolicy::kConsistent;
};

checkpoint::DecoderConfig scaled_config(const Scaled& scaled, const test::TinyShape& shape = {}) {
  checkpoint::DecoderConfig config = test::tiny_config(shape);
  for (checkpoint::LayerSpec& layer : config.layers) {
    layer.position.kind = scaled.kind;
    if (!position::position_infos().at(scaled.kind).rotates) {
      layer.position.rotary_dim = 0;
      layer.position.rope_base = 0;
      continue;
    }
    layer.position.scaling.method = scaled.scaling;
    layer.position.scaling.factor = scaled.scaling == "none" ? 1 : 4;
    layer.position.scaling.length_policy = scaled.policy;
  }
  if (scaled.kind == "learned") config.claimed_context = 2048;
  return config;
}

std::unique_ptr<lm::LanguageModel> make_model(const checkpoint::DecoderConfig& config, EngineOptions options = {}) {
  const test::RandomCheckpoint checkpoint(config);
  return make_language_model(load_weights(checkpoint, options), config, options);
}

lm::Request generation(TokenIds prompt, std::int64_t n) {
  lm::Request request;
  request.prompt = std::move(prompt);
  request.max_new_tokens = n;
  return request;
}

/// Logits after the last of `ids`, by one prefill.
std::vector<float> last_logits(const checkpoint::DecoderConfig& config, const TokenIds& ids,
                               const EngineOptions& options = {}) {
  const test::RandomCheckpoint checkpoint(config);
  return probe_logits(load_weights(checkpoint, options), config, options, ids).last_logits;
}

std::vector<double> log_softmax(const std::vector<float>& logits) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  std::vector<double> out;
  for (const float logit : logits) out.push_back(static_cast<double>(logit) - std::log(sum));
  return out;
}

/// Every position scheme of the registry, and rope under the scalings that need no options.
std::vector<Scaled> all_schemes() {
  std::vector<Scaled> out = {{"rope", "linear"}, {"rope", "ntk"}, {"rope", "dynamic"}, {"rope", "yarn"}};
  for (const position::PositionInfo& info : position::position_infos().entries())
    out.push_back({std::string(info.name), "none"});
  return out;
}

void check_equal(const lm::Completion& a, const lm::Completion& b, double tolerance) {
  CHECK(a.error == b.error);
  CHECK(a.ids == b.ids);
  CHECK(a.finish == b.finish);
  REQUIRE(a.continuations.size() == b.continuations.size());
  for (std::size_t c = 0; c < a.continuations.size(); ++c) {
    CHECK(a.continuations[c].ranks == b.continuations[c].ranks);
    REQUIRE(a.continuations[c].logprobs.size() == b.continuations[c].logprobs.size());
    for (std::size_t i = 0; i < a.continuations[c].logprobs.size(); ++i) {
      CHECK(std::fabs(a.continuations[c].logprobs[i] - b.continuations[c].logprobs[i]) <= tolerance);
    }
  }
}

/// Requests with a common prefix of `shared` tokens, of different lengths, with generation and continuations of every
/// kind.
std::vector<lm::Request> mixed_requests(std::int64_t shared) {
  const TokenIds prefix = test::random_ids(shared, 1);
  std::vector<lm::Request> out;
  for (const std::int64_t tail : {40, 3, 700, 90, 40}) {
    lm::Request request;
    request.prompt = prefix;
    const TokenIds more = test::random_ids(tail, static_cast<std::uint64_t>(tail) + out.size());
    request.prompt.insert(request.prompt.end(), more.begin(), more.end());
    request.max_new_tokens = static_cast<std::int64_t>(out.size()) * 2;
    const auto n = static_cast<std::int64_t>(request.prompt.size());
    request.continuations = {{n, {7}}, {n - 1, test::random_ids(3, 5)}, {n, test::random_ids(4, 6)}, {n - 2, {9}}};
    out.push_back(request);
  }
  return out;
}

}  // namespace

TEST_CASE("engine: greedy decoding equals repeated whole passes, for every scheme and scaling", "[engine][decode]") {
  const Scaled scaled = GENERATE(from_range(all_schemes()));
  INFO(scaled.kind << " " << scaled.scaling);
  const checkpoint::DecoderConfig config = scaled_config(scaled);
  // Starts inside the original context of 64 and ends outside.
  const TokenIds prompt = test::random_ids(58, 3);
  const auto completion = make_model(config)->complete({generation(prompt, 14)}).front();
  REQUIRE(completion.error.empty());
  REQUIRE(completion.ids.size() == 14);
  CHECK(completion.finish == lm::FinishReason::kBudget);
  TokenIds so_far = prompt;
  for (const TokenId id : completion.ids) {
    const std::vector<float> logits = last_logits(config, so_far);
    CHECK(id == static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    so_far.push_back(id);
  }
}

TEST_CASE("engine: prefill of N equals prefill of k and a continuation of N - k", "[engine][cache]") {
  // Sums run in another order; the largest difference is that of cope, whose positions are sums themselves (3e-5).
  constexpr double kTolerance = 6e-5;
  const Scaled scaled = GENERATE(from_range(all_schemes()));
  const std::int64_t window = GENERATE(0, 20);
  INFO(scaled.kind << " " << scaled.scaling << " window " << window);
  test::TinyShape shape;
  shape.window = window;
  const checkpoint::DecoderConfig config = scaled_config(scaled, shape);
  const TokenIds ids = test::random_ids(90, 4);
  const auto model = make_model(config);
  for (const std::int64_t k : {1, 17, 63, 64, 65, 88}) {
    lm::Request request;
    request.prompt.assign(ids.begin(), ids.begin() + k);
    request.continuations = {{k, TokenIds(ids.begin() + k, ids.end())}};
    const auto completion = model->complete({request}).front();
    REQUIRE(completion.error.empty());
    // One pass over all but the last id, as teacher forcing does it.
    const test::RandomCheckpoint checkpoint(config);
    const TokenIds all_but_last(ids.begin(), ids.end() - 1);
    const auto probe = probe_logits(load_weights(checkpoint, {}), config, {}, all_but_last);
    const auto& got = completion.continuations.front().logprobs;
    REQUIRE(got.size() == ids.size() - static_cast<std::size_t>(k));
    for (std::size_t i = 0; i + 1 < got.size(); ++i) {
      CHECK(std::fabs(got[i] - probe.next_logprobs[static_cast<std::size_t>(k) - 1 + i]) < kTolerance);
    }
    CHECK(std::fabs(got.back() - log_softmax(probe.last_logits)[static_cast<std::size_t>(ids.back())]) < kTolerance);
  }
}

TEST_CASE("engine: answers do not depend on the batch they stand in", "[engine][batch]") {
  const Scaled scaled = GENERATE(Scaled{"rope", "none"}, Scaled{"rope", "dynamic"}, Scaled{"alibi", "none"});
  INFO(scaled.kind << " " << scaled.scaling);
  const auto model = make_model(scaled_config(scaled));
  std::vector<lm::Request> requests = mixed_requests(30);
  const auto together = model->complete(requests);
  for (std::size_t i = 0; i < requests.size(); ++i)
    check_equal(together[i], model->complete({requests[i]}).front(), 2e-5);
  std::vector<lm::Request> reversed(requests.rbegin(), requests.rend());
  const auto backwards = model->complete(reversed);
  for (std::size_t i = 0; i < requests.size(); ++i) check_equal(together[i], backwards[requests.size() - 1 - i], 2e-5);
}

TEST_CASE("engine: sharing prefixes changes the work, not the scores", "[engine][prefix]") {
  const Scaled scaled =
      GENERATE(Scaled{"rope", "none"}, Scaled{"rope", "yarn"}, Scaled{"rope", "dynamic"}, Scaled{"nope", "none"});
  const std::int64_t batch_tokens = GENERATE(16384, 1);
  INFO(scaled.kind << " " << scaled.scaling << " batch_tokens " << batch_tokens);
  EngineOptions options;
  options.batch_tokens = batch_tokens;
  options.dtype = GENERATE("float32", "bf16");
  EngineOptions apart = options;
  apart.share_prefixes = false;
  const auto sharing = make_model(scaled_config(scaled), options);
  const auto separate = make_model(scaled_config(scaled), apart);
  const std::vector<lm::Request> requests = mixed_requests(1000);
  const auto a = sharing->complete(requests);
  const auto b = separate->complete(requests);
  std::int64_t computed = 0, all = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    // Bit for bit where oneDNN's row sums do not depend on the number of rows (AVX-512; see kernels::gemm).
    check_equal(a[i], b[i], kernels::has_native_bf16() ? 0.0 : 1e-4);
    CHECK(b[i].computed_tokens == static_cast<std::int64_t>(requests[i].prompt.size()));
    computed += a[i].computed_tokens;
    all += b[i].computed_tokens;
  }
  // Four of five prompts take 960 tokens over. Where the tables change with the length, only the two prompts of 1040
  // can share, and only while the first one's cache has not been used to score a longer text.
  const std::int64_t shared_prompts = scaled.scaling != "dynamic" ? 4 : batch_tokens > 1 ? 1 : 0;
  CHECK(computed == all - shared_prompts * 960);
}

TEST_CASE("engine: the time of ids after the first is told apart from that of the prompt", "[engine]") {
  const auto model = make_model(scaled_config({"rope", "none"}));
  const auto out = model->complete({generation(test::random_ids(40, 1), 1), generation(test::random_ids(40, 2), 8)});
  CHECK(out[0].decode_seconds == 0);
  CHECK(out[1].decode_seconds > 0);
  CHECK(out[0].seconds > 0);
  const auto alone = model->complete({generation(test::random_ids(40, 2), 8)}).front();
  CHECK(alone.decode_seconds > 0);
  CHECK(alone.decode_seconds < alone.seconds);
}

TEST_CASE("engine: prompts of one length share a prefix under length-dependent scaling too", "[engine][prefix]") {
  const auto model = make_model(scaled_config({"rope", "dynamic"}));
  std::vector<lm::Request> requests = {generation(test::random_ids(300, 1), 2), generation(test::random_ids(340, 1), 2),
                                       generation(test::random_ids(300, 1), 2)};
  for (std::size_t i = 250; i < 300; ++i) requests[2].prompt[i] = 5;
  const auto out = model->complete(requests);
  CHECK(out[0].computed_tokens + out[2].computed_tokens == 600 - 192);
  CHECK(out[1].computed_tokens == 340);
  for (std::size_t i = 0; i < 3; ++i) CHECK(out[i].ids == model->complete({requests[i]}).front().ids);
}

TEST_CASE("engine: a stop id ends the completion and is not part of it", "[engine][decode]") {
  const auto model = make_model(test::tiny_config());
  const auto free_run = model->complete({generation(test::random_ids(30, 8), 6)}).front();
  lm::Request request = generation(test::random_ids(30, 8), 6);
  request.stop_ids = {free_run.ids[3]};
  const auto stopped = model->complete({request}).front();
  const auto first = std::find(free_run.ids.begin(), free_run.ids.end(), free_run.ids[3]);
  CHECK(stopped.ids == TokenIds(free_run.ids.begin(), first));
  CHECK(stopped.finish == lm::FinishReason::kStop);
}

TEST_CASE("engine: continuation scores are log-probabilities and ranks of the logits", "[engine][continuations]") {
  const checkpoint::DecoderConfig config = test::tiny_config();
  const TokenIds prompt = test::random_ids(20, 9);
  const std::vector<float> logits = last_logits(config, prompt);
  const std::vector<double> expected = log_softmax(logits);
  lm::Request request;
  request.prompt = prompt;
  for (TokenId id = 0; id < 50; ++id) request.continuations.push_back({20, {id}});
  const auto completion = make_model(config)->complete({request}).front();
  CHECK(completion.ids.empty());
  for (std::size_t id = 0; id < 50; ++id) {
    const auto& score = completion.continuations[id];
    CHECK(std::fabs(score.logprobs.at(0) - expected[id]) < 1e-5);
    CHECK(score.ranks.at(0) ==
          1 + std::count_if(logits.begin(), logits.end(), [&](float x) { return x > logits[id]; }));
  }
}

TEST_CASE("engine: long and short sequences of a length-dependent scaling do not influence each other",
          "[engine][dynamic]") {
  const auto model = make_model(scaled_config({"rope", "dynamic"}));
  const auto lengths = {200, 100, 40};
  std::vector<lm::Completion> first, second;
  for (const int n : lengths) first.push_back(model->complete({generation(test::random_ids(n, 2), 3)}).front());
  const auto fresh = make_model(scaled_config({"rope", "dynamic"}));
  for (auto it = std::rbegin(lengths); it != std::rend(lengths); ++it) {
    second.push_back(fresh->complete({generation(test::random_ids(*it, 2), 3)}).front());
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK(first[i].ids == second[2 - i].ids);
}

TEST_CASE("engine: bf16 weights and caches stay near float32", "[engine][bf16]") {
  EngineOptions options;
  options.dtype = "bf16";
  const checkpoint::DecoderConfig config = test::tiny_config();
  const TokenIds ids = test::random_ids(300, 10);
  const auto exact = last_logits(config, ids);
  const auto rounded = last_logits(config, ids, options);
  double largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    largest = std::max(largest, std::fabs(static_cast<double>(exact[i] - rounded[i])));
  CHECK(largest < 0.15);  // logits have a spread of several units; bf16 keeps 8 bits
  CHECK(largest > 1e-5);
  CHECK(make_model(config, options)->identity().dtype == "bf16");
}

TEST_CASE("engine: a request that cannot be answered does not stop the others", "[engine][errors]") {
  checkpoint::DecoderConfig config = scaled_config({"learned", "none"});
  config.claimed_context = 64;
  const auto model = make_model(config);
  REQUIRE(model->max_positions() == std::optional<std::int64_t>(64));
  lm::Request scored = generation(test::random_ids(10, 1), 0);
  scored.continuations = {{11, {3}}};
  const auto out =
      model->complete({generation(test::random_ids(64, 1), 1), generation(test::random_ids(64, 1), 2),
                       generation({}, 1), generation({5, 50}, 1), scored, generation(test::random_ids(20, 1), 3)});
  CHECK(out[0].error.empty());
  CHECK(out[0].ids.size() == 1);
  CHECK(out[1].error == "model: the request needs 65 positions, the model's position table ends at 64");
  CHECK(out[2].error == "model: the prompt is empty; a request needs at least one token");
  CHECK(out[3].error == "model: token id 50 is outside the vocabulary of 0..49");
  CHECK(out[4].error == "model: a continuation keeps 11 tokens of a prompt of 10; allowed are 1..10");
  CHECK(out[5].error.empty());
  CHECK(out[5].ids.size() == 3);
  for (const auto& completion : out) CHECK_FALSE(completion.out_of_memory);
}

TEST_CASE("engine: an allocation that fails is the request's error", "[engine][errors]") {
#ifdef __SANITIZE_ADDRESS__
  WARN("SKIPPED: AddressSanitizer ends the process where an allocation would fail");
  return;
#endif
  const auto model = make_model(test::tiny_config());
  // More cache rows than any machine has memory for, asked for by the budget alone.
  lm::Request huge = generation(test::random_ids(10, 1), std::int64_t{1} << 50);
  const auto out = model->complete({generation(test::random_ids(10, 1), 2), huge});
  CHECK(out[0].error.empty());
  CHECK(out[0].ids.size() == 2);
  CHECK(out[1].out_of_memory);
  CHECK(out[1].error == "model: out of memory for a sequence of 1125899906842634 tokens");
}

TEST_CASE("engine: a stop request interrupts between passes", "[engine][errors]") {
  struct Stop : StopToken {
    mutable int asked = 0;
    bool stop_requested() const override { return ++asked > 3; }
  } stop;
  EngineOptions options;
  options.stop = &stop;
  const auto model = make_model(test::tiny_config(), options);
  CHECK_THROWS_AS(model->complete({generation(test::random_ids(10, 1), 20)}), Interrupted);
}

TEST_CASE("engine: what is asked for and does not exist is named", "[engine][errors]") {
  const test::RandomCheckpoint checkpoint(test::tiny_config());
  EngineOptions options;
  options.dtype = "fp8";
  CHECK_THROWS_WITH(load_weights(checkpoint, options),
                    "engine: dtype 'fp8' is unknown; allowed are auto, float32, bf16");
  options = {};
  options.device = "tpu";
  CHECK_THROWS_AS(load_weights(checkpoint, options), ConfigError);
  test::RandomCheckpoint broken(test::tiny_config());
  broken.remove("layers.1.mlp.up.weight");
  CHECK_THROWS_AS(load_weights(broken, {}), ModelError);
}

TEST_CASE("engine: identity names weights, position, dtype and kernel", "[engine]") {
  const auto model = make_model(test::tiny_config());
  const lm::ModelIdentity identity = model->identity();
  CHECK(identity.name == "tiny");
  CHECK(identity.weights_hash == "0123");
  CHECK(identity.device == "cpu");
  CHECK(identity.dtype == "float32");
  CHECK(identity.kernel == "block-float32/1");
  CHECK(identity.position == checkpoint::describe_position(test::tiny_config()));
  CHECK(identity.parameters > 50 * 64);
  CHECK(engine_versions().find("oneDNN") != std::string::npos);
}
