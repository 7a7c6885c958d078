#include "harness/analysis/effective_context.h"

#include <chrono>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::analysis {
namespace {

using Catch::Matchers::WithinAbs;

std::vector<LengthPoint> points_at(std::vector<std::optional<double>> scores) {
  std::vector<LengthPoint> points;
  std::int64_t length = 128;
  for (const auto& score : scores) {
    points.push_back({length, score});
    length *= 2;
  }
  return points;
}

EffectiveValue strict(std::vector<std::optional<double>> scores) {
  return effective_context(points_at(std::move(scores)), 85.6, PassRule::kGreater);
}

/// One value per sample: the first n_right of n are 1.
LengthScores zero_one(std::int64_t length, int n_right, int n) {
  LengthScores scores;
  scores.length_tokens = length;
  for (int i = 0; i < n; ++i) scores.by_sample.push_back({i < n_right ? 1.0 : 0.0});
  return scores;
}

RuleSettings settings_with_base(std::vector<std::int64_t> base_lengths) {
  RuleSettings settings;
  settings.base_lengths = std::move(base_lengths);
  return settings;
}

}  // namespace

TEST_CASE("effective_context: a pass after a failure counts for the plain maximum only", "[analysis]") {
  const EffectiveValue value = strict({90, 84, 90});
  CHECK(value.kind == Censoring::kExact);
  CHECK(value.tokens == std::optional<std::int64_t>(128));
  CHECK(value.next_tested == std::optional<std::int64_t>(256));
  CHECK(value.plain_maximum == std::optional<std::int64_t>(512));
  CHECK(value.notes == std::vector<std::string>{"not monotone"});
  CHECK(format_effective(value) == "128");
}

TEST_CASE("effective_context: the first length fails", "[analysis]") {
  const EffectiveValue value = strict({84, 90});
  CHECK(value.kind == Censoring::kLeft);
  CHECK_FALSE(value.tokens.has_value());
  CHECK(value.plain_maximum == std::optional<std::int64_t>(256));
  CHECK(format_effective(value) == "<128");
}

TEST_CASE("effective_context: a gap ends the prefix", "[analysis]") {
  const EffectiveValue value = strict({90, std::nullopt, 90});
  CHECK(value.kind == Censoring::kExact);
  CHECK(value.tokens == std::optional<std::int64_t>(128));
  CHECK(value.next_tested == std::optional<std::int64_t>(512));
  CHECK(value.notes == std::vector<std::string>{"gap at 256"});
  CHECK(strict({std::nullopt, 90}).kind == Censoring::kNone);
  CHECK(strict({std::nullopt, std::nullopt}).kind == Censoring::kNone);
  CHECK(format_effective(strict({std::nullopt, 90})) == "–");
}

TEST_CASE("effective_context: everything passes", "[analysis]") {
  const EffectiveValue value = strict({90, 90});
  CHECK(value.kind == Censoring::kRight);
  CHECK_FALSE(value.next_tested.has_value());
  CHECK(value.notes.empty());
  CHECK(format_effective(value) == ">=256");
}

TEST_CASE("effective_context: a score at the threshold", "[analysis]") {
  CHECK(strict({85.6}).kind == Censoring::kLeft);
  CHECK(effective_context(points_at({85.6}), 85.6, PassRule::kAtLeast).kind == Censoring::kRight);
  // Rounding of a sum is no pass and no failure.
  CHECK(strict({85.6 + 1e-12}).kind == Censoring::kLeft);
  CHECK(effective_context(points_at({85.6 - 1e-12}), 85.6, PassRule::kAtLeast).kind == Censoring::kRight);
  CHECK(strict({85.61}).kind == Censoring::kRight);
}

TEST_CASE("effective_context: empty, unsorted and repeated lengths", "[analysis]") {
  CHECK(strict({}).kind == Censoring::kNone);
  CHECK(format_effective(effective_context({{512, 20.0}, {128, 90.0}, {256, 90.0}}, 85.6, PassRule::kGreater)) ==
        "256");
  CHECK_THROWS_AS(effective_context({{128, 90.0}, {128, 80.0}}, 85.6, PassRule::kGreater), ConfigError);
  CHECK_THROWS_WITH(effective_context({{128, 90.0}, {128, 80.0}}, 85.6, PassRule::kGreater),
                    "effective context: length 128 appears twice; each length may be given once");
}

TEST_CASE("weighted_means: the worked figures", "[analysis]") {
  const WeightedMeans llama = weighted_means({95.5, 93.8, 91.6, 87.4, 84.7, 77.0});
  CHECK_THAT(llama.average, WithinAbs(88.3, 0.05));
  CHECK_THAT(llama.increasing, WithinAbs(85.4, 0.05));
  CHECK_THAT(llama.decreasing, WithinAbs(91.3, 0.05));
  const WeightedMeans dbrx = weighted_means({95.1, 93.8, 83.6, 63.1, 2.4, 0.0});
  CHECK_THAT(dbrx.average, WithinAbs(56.3, 0.05));
  CHECK_THAT(dbrx.increasing, WithinAbs(38.0, 0.05));
  CHECK_THAT(dbrx.decreasing, WithinAbs(74.7, 0.05));
  CHECK(weighted_means({50}).increasing == 50);
}

TEST_CASE("estimate: point values, base and means of one task", "[analysis]") {
  const auto result = estimate_effective_context(
      {{zero_one(128, 20, 20), zero_one(256, 19, 20), zero_one(512, 16, 20), zero_one(1024, 4, 20)}},
      settings_with_base({128, 256}), RngKey("test"));
  CHECK(format_effective(result.absolute) == "256");
  CHECK(result.base_score == std::optional<double>(100.0));
  CHECK(format_effective(result.relative) == "256");
  CHECK_THAT(result.average.value(), WithinAbs(73.75, 1e-9));
  // (1*100 + 2*95 + 3*80 + 4*20) / 10
  CHECK_THAT(result.weighted_increasing.value(), WithinAbs(61.0, 1e-9));
  REQUIRE(result.probability_at_least.size() == 4);
  CHECK(result.probability_at_least[0] == 1.0);
  // P(at least 18 of 20 at 256 tokens), p = .95: 0.9245.
  CHECK_THAT(result.probability_at_least[1], WithinAbs(0.9245, 0.02));
  // The lengths share their samples: 512 passes only with at most 2 of the 4 wrong samples (16 of 20 right): P =
  // 0.2061.
  CHECK_THAT(result.probability_at_least[2], WithinAbs(0.206, 0.03));
  CHECK(result.probability_at_least[3] == 0.0);
  CHECK(format_effective(result.absolute_low.value()) == "128");
  CHECK(format_effective(result.absolute_high.value()) == "512");
}

TEST_CASE("estimate: the relative rule passes at exactly 0.85 of the base", "[analysis]") {
  const auto at = estimate_effective_context({{zero_one(128, 20, 20), zero_one(256, 17, 20)}},
                                             settings_with_base({128}), RngKey("test"));
  CHECK(format_effective(at.relative) == ">=256");
  const auto below = estimate_effective_context({{zero_one(128, 20, 20), zero_one(256, 16, 20)}},
                                                settings_with_base({128}), RngKey("test"));
  CHECK(format_effective(below.relative) == "128");
}

TEST_CASE("estimate: a base no better than chance says nothing", "[analysis]") {
  RuleSettings settings = settings_with_base({128});
  settings.blind_guess = 0.25;
  const auto weak =
      estimate_effective_context({{zero_one(128, 7, 20), zero_one(256, 7, 20)}}, settings, RngKey("test"));
  CHECK(weak.relative.kind == Censoring::kNone);
  CHECK(weak.relative.notes == std::vector<std::string>{"the base score is no better than chance"});
  CHECK_FALSE(weak.relative_low.has_value());
  const auto better =
      estimate_effective_context({{zero_one(128, 8, 20), zero_one(256, 8, 20)}}, settings, RngKey("test"));
  CHECK(better.relative.kind == Censoring::kRight);
  const auto none = estimate_effective_context({{zero_one(128, 20, 20)}}, settings_with_base({64}), RngKey("test"));
  CHECK(none.relative.kind == Censoring::kNone);
  CHECK(none.relative.notes == std::vector<std::string>{"no base length is scored"});
}

TEST_CASE("estimate: all right and all wrong have certain answers", "[analysis]") {
  const auto right = estimate_effective_context({{zero_one(128, 10, 10), zero_one(256, 10, 10)}},
                                                settings_with_base({128}), RngKey("test"));
  CHECK(format_effective(right.absolute_low.value()) == ">=256");
  CHECK(format_effective(right.absolute_high.value()) == ">=256");
  CHECK(right.probability_at_least == std::vector<double>{1.0, 1.0});
  const auto wrong = estimate_effective_context({{zero_one(128, 0, 10), zero_one(256, 0, 10)}},
                                                settings_with_base({128}), RngKey("test"));
  CHECK(format_effective(wrong.absolute) == "<128");
  CHECK(format_effective(wrong.absolute_high.value()) == "<128");
  CHECK(wrong.probability_at_least == std::vector<double>{0.0, 0.0});
  CHECK(wrong.relative.kind == Censoring::kNone);
}

TEST_CASE("estimate: the same samples are drawn at every length", "[analysis]") {
  // Two lengths with equal scores per sample: with shared indices they pass or fail together.
  std::vector<LengthScores> lengths = {zero_one(128, 9, 10), zero_one(256, 9, 10)};
  const auto shared = estimate_effective_context({lengths}, settings_with_base({128}), RngKey("test"));
  CHECK(shared.probability_at_least[0] == shared.probability_at_least[1]);
  CHECK(shared.probability_at_least[0] < 1.0);
}

TEST_CASE("estimate: a sample keeps its depths together", "[analysis]") {
  // 10 samples with 10 depths each, 9 samples all right: pooled values would make 0.9 nearly certain to pass 0.8.
  LengthScores clustered;
  clustered.length_tokens = 128;
  for (int i = 0; i < 10; ++i) clustered.by_sample.push_back(std::vector<double>(10, i < 9 ? 1.0 : 0.0));
  RuleSettings settings = settings_with_base({128});
  settings.absolute_threshold = 80;
  const auto result = estimate_effective_context({{clustered}}, settings, RngKey("test"));
  // P(at most one wrong sample among 10 draws), p = 0.1: 0.7361.
  CHECK_THAT(result.probability_at_least[0], WithinAbs(0.7361, 0.03));
}

TEST_CASE("estimate: the mean of tasks, with gaps and lengths left out", "[analysis]") {
  std::vector<LengthScores> easy = {zero_one(128, 10, 10), zero_one(256, 10, 10), zero_one(512, 10, 10)};
  std::vector<LengthScores> hard = {zero_one(256, 8, 10), zero_one(512, 0, 10)};
  const auto result = estimate_effective_context({easy, hard}, settings_with_base({256}), RngKey("test"));
  CHECK(format_effective(result.absolute) == "256");
  CHECK(result.absolute.notes == std::vector<std::string>{"128 left out: not every task can be built there"});
  CHECK_THAT(result.base_score.value(), WithinAbs(90, 1e-9));
  CHECK_THAT(result.average.value(), WithinAbs(70, 1e-9));

  hard[0].scored = false;
  const auto gap = estimate_effective_context({easy, hard}, settings_with_base({256}), RngKey("test"));
  CHECK(gap.absolute.kind == Censoring::kNone);
  CHECK_FALSE(gap.average.has_value());
  CHECK_FALSE(gap.base_score.has_value());
  CHECK(gap.probability_at_least.empty());
}

TEST_CASE("estimate: samples that are missing at some lengths weigh nothing there", "[analysis]") {
  std::vector<LengthScores> lengths = {zero_one(128, 10, 10), zero_one(256, 10, 10)};
  lengths[1].by_sample[3].clear();
  lengths[1].by_sample.pop_back();
  const auto result = estimate_effective_context({lengths}, settings_with_base({128}), RngKey("test"));
  CHECK(format_effective(result.absolute_low.value()) == ">=256");
  CHECK_THAT(result.average.value(), WithinAbs(100, 1e-9));
}

TEST_CASE("estimate: nothing in, nothing out", "[analysis]") {
  CHECK(estimate_effective_context({}, {}, RngKey("test")).absolute.kind == Censoring::kNone);
  CHECK(estimate_effective_context({{}}, {}, RngKey("test")).absolute.kind == Censoring::kNone);
  LengthScores empty;
  empty.length_tokens = 128;
  CHECK(estimate_effective_context({{empty}}, {}, RngKey("test")).absolute.kind == Censoring::kNone);
}

TEST_CASE("estimate: the same key gives the same interval, and 13 tasks of 50 samples are quick", "[analysis]") {
  std::vector<std::vector<LengthScores>> tasks;
  for (int t = 0; t < 13; ++t) {
    std::vector<LengthScores> lengths;
    for (int l = 0; l < 8; ++l) lengths.push_back(zero_one(128 << l, 50 - 3 * l - t / 2, 50));
    tasks.push_back(lengths);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto one = estimate_effective_context(tasks, settings_with_base({128, 256}), RngKey("test"));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto two = estimate_effective_context(tasks, settings_with_base({128, 256}), RngKey("test"));
  CHECK(one.probability_at_least == two.probability_at_least);
  CHECK(seconds < 2);
}

}  // namespace fathom::analysis
