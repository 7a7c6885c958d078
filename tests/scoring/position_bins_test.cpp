#include "harness/scoring/position_bins.h"

#include <cmath>

#include "harness/scoring/scorer.h"
#include "tests/support/catch.h"

using namespace fathom;
using Catch::Matchers::WithinAbs;

TEST_CASE("position bins: quarters of octaves from 16 on", "[scoring][position]") {
  // Tasks specification 2.4: 16 19 23 27 32 …
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected = {
      {0, 0},   {15, 0},  {16, 16}, {18, 16}, {19, 19}, {22, 19},    {23, 23},     {26, 23},
      {27, 27}, {31, 27}, {32, 32}, {37, 32}, {38, 38}, {1023, 861}, {1024, 1024}, {131072, 131072}};
  for (const auto& [position, bin] : expected) {
    INFO(position);
    CHECK(scoring::position_bin(position) == bin);
  }
  for (std::int64_t position = 0; position < 5000; ++position) {
    const std::int64_t bin = scoring::position_bin(position);
    CHECK(bin <= position);
    if (position >= 16) CHECK(scoring::position_bin(bin) == bin);
  }
}

TEST_CASE("position bins: texts add up to the mean over all tokens", "[scoring][position]") {
  scoring::PositionBits first;
  for (int position = 10; position < 20; ++position) first.add(position, 2.0);
  CHECK(first.text() == "0=2/6 16=2/3 19=2/1");
  scoring::PositionBits both;
  both.add_text(first.text());
  both.add_text("16=5/6 nonsense 23=x/2 27=1/0");
  CHECK_THAT(both.bins().at(16).mean(), WithinAbs((2.0 * 3 + 5.0 * 6) / 9, 1e-12));
  CHECK(both.bins().at(16).n_tokens == 9);
  CHECK(both.bins().size() == 3);
}

TEST_CASE("bits_by_position: a uniform model costs log2 of the vocabulary everywhere, other tasks nothing",
          "[scoring][position]") {
  task::Sample sample;
  sample.metric = task::TaskMetric::kTop1;
  sample.prompt_ids.assign(14, 1);
  lm::ContinuationScore uniform;
  uniform.logprobs.assign(20, -std::log(1024.0));
  uniform.ranks.assign(20, 1);
  const lm::Completion completion;
  scoring::ScoredReply reply;
  reply.sample = &sample;
  reply.completion = &completion;
  reply.candidates = {uniform};
  const auto scorer = scoring::scorers().at("bits_by_position").make();
  const scoring::Score score = scorer->score(reply);
  CHECK_FALSE(score.value.has_value());
  scoring::PositionBits bits;
  bits.add_text(score.answer);
  std::int64_t n = 0;
  for (const auto& [first, bin] : bits.bins()) {
    CHECK_THAT(bin.mean(), WithinAbs(10, 1e-6));
    n += bin.n_tokens;
  }
  CHECK(n == 20);
  CHECK(bits.bins().at(0).n_tokens == 2);  // positions 14 and 15
  sample.metric = task::TaskMetric::kAll;
  CHECK(scorer->score(reply).answer.empty());
}
