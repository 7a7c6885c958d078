#include <cmath>

#include "harness/scoring/scorer.h"
#include "tests/support/catch.h"

namespace {

using namespace fathom;

/// A candidate whose tokens have these probabilities (and ranks).
lm::ContinuationScore candidate(const std::vector<double>& probabilities, const std::vector<std::int64_t>& ranks = {}) {
  lm::ContinuationScore score;
  for (const double p : probabilities) score.logprobs.push_back(std::log(p));
  score.ranks = ranks.empty() ? std::vector<std::int64_t>(probabilities.size(), 1) : ranks;
  return score;
}

std::optional<double> value(std::string_view scorer, const std::vector<lm::ContinuationScore>& candidates,
                            const std::vector<std::string>& references = {"v1"}, bool whole_words = true) {
  task::Sample sample;
  sample.references = references;
  sample.whole_words = whole_words;
  lm::Completion completion;
  scoring::ScoredReply scored;
  scored.sample = &sample;
  scored.completion = &completion;
  scored.candidates = candidates;
  return scoring::scorers().at(scorer).make()->score(scored).value;
}

constexpr double kRounding = 1e-12;  // a few additions in double

void check_near(const std::optional<double>& given, double expected) {
  REQUIRE(given.has_value());
  CHECK(std::abs(*given - expected) <= kRounding);
}

}  // namespace

TEST_CASE("lp: bits of the answer, mean over several references", "[scoring][graded]") {
  check_near(value("lp", {candidate({0.5, 0.25})}), -3);
  check_near(value("lp", {candidate({0.5, 0.25})}, {"v1", "v2"}), -1.5);
  check_near(value("lp", {candidate({1.0})}), 0);
}

TEST_CASE("first: the first answer token is the argmax", "[scoring][graded]") {
  check_near(value("first", {candidate({0.9, 0.1}, {1, 5})}, {"v1 v2"}), 1);
  check_near(value("first", {candidate({0.9, 0.1}, {2, 1})}, {"v1 v2"}), 0);
  // Closed vocabulary: two references of one token each.
  check_near(value("first", {candidate({0.9, 0.1}, {1, 5})}, {"v1", "v2"}), 0.5);
  // Elsewhere only the first token of all is known to begin a reference.
  check_near(value("first", {candidate({0.9, 0.1}, {1, 5})}, {"11", "22"}, false), 1);
}

TEST_CASE("rank: one more than the candidates that score higher", "[scoring][graded]") {
  check_near(value("rank", {candidate({0.5}), candidate({0.2}), candidate({0.1})}), 1);
  check_near(value("rank", {candidate({0.1}), candidate({0.2}), candidate({0.3})}), 3);
  check_near(value("rank", {candidate({0.2}), candidate({0.2}), candidate({0.3})}), 2.5);
}

TEST_CASE("rank: a uniform model stands at the mean rank", "[scoring][graded]") {
  for (const std::size_t c : {std::size_t{1}, std::size_t{2}, std::size_t{16}}) {
    check_near(value("rank", std::vector<lm::ContinuationScore>(c, candidate({0.01, 0.01}))),
               (static_cast<double>(c) + 1) / 2);
  }
}

TEST_CASE("rank: compared per token where token counts differ", "[scoring][graded]") {
  // 2 bits in one token against 3 bits in two: by sum the gold one leads, per token the other does.
  check_near(value("rank", {candidate({0.25}), candidate({0.5, 0.25})}), 2);
  check_near(value("rank", {candidate({0.25, 0.5}), candidate({0.5, 0.5})}), 2);
}

TEST_CASE("margin: bits ahead of the best other candidate", "[scoring][graded]") {
  check_near(value("margin", {candidate({0.5}), candidate({0.125}), candidate({0.25})}), 1);
  check_near(value("margin", {candidate({0.125}), candidate({0.5})}), -2);
  check_near(value("margin", {candidate({0.25, 0.25}), candidate({1.0, 1.0})}, {"v1", "v2"}), -2);
  CHECK_FALSE(value("margin", {candidate({0.5})}).has_value());
}

TEST_CASE("graded scores: without teacher-forced numbers there is no score", "[scoring][graded]") {
  for (const std::string_view scorer : {"lp", "first", "rank", "margin"}) {
    CHECK_FALSE(value(scorer, {}).has_value());
    CHECK_FALSE(value(scorer, {lm::ContinuationScore{}, candidate({0.5})}).has_value());
    CHECK(scoring::scorers().at(scorer).needs_candidates);
  }
  CHECK_FALSE(scoring::scorers().at("rank").higher_is_better);
}

TEST_CASE("bits and top1: what a token and a byte of the right text cost, and how many would be said",
          "[scoring][graded]") {
  check_near(value("bits_per_token", {candidate({0.5, 0.125})}), 2);
  check_near(value("top1", {candidate({0.5, 0.25, 0.1, 0.1}, {1, 2, 1, 7})}), 0.5);
  CHECK_FALSE(value("bits_per_byte", {candidate({0.5})}).has_value());  // no text
  // A uniform model over 16 tokens.
  check_near(value("bits_per_token", {candidate(std::vector<double>(9, 1.0 / 16))}), 4);
}

TEST_CASE("lp: wordings of one answer are one answer", "[scoring][graded]") {
  task::Sample sample;
  sample.references = {"lake", "the lake"};
  sample.metric = task::TaskMetric::kPart;
  lm::Completion completion;
  scoring::ScoredReply scored;
  scored.sample = &sample;
  scored.completion = &completion;
  scored.candidates = {candidate({0.25})};
  check_near(scoring::scorers().at("lp").make()->score(scored).value, -2);
}
