// The published RULER and NoLiMa tables as a test of the effective-length rule (tasks specification, section 4.4).

#include <fmt/format.h>

#include <set>

#include "harness/analysis/effective_context.h"
#include "harness/core/types.h"
#include "tests/support/csv.h"

namespace fathom::analysis {
namespace {

double as_number(const std::string& text) {
  const auto value = parse_double(text);
  INFO(text);
  REQUIRE(value.has_value());
  return *value;
}

std::vector<LengthPoint> ruler_points(const test::CsvRow& row) {
  std::vector<LengthPoint> points;
  for (const std::int64_t length : {4096, 8192, 16384, 32768, 65536, 131072}) {
    const std::string& text = row.at("s" + std::to_string(length));
    if (!text.empty()) points.push_back({length, as_number(text)});
  }
  return points;
}

std::vector<LengthPoint> nolima_points(const test::CsvRow& row) {
  std::vector<LengthPoint> points;
  for (const std::int64_t k : {1, 2, 4, 8, 16, 32}) {
    const std::string& text = row.at(fmt::format("s{}K", k));
    if (!text.empty()) points.push_back({k * kTokensPerK, as_number(text)});
  }
  return points;
}

/// ">=131072" as the table prints it: ">128K".
std::string listed_form(const EffectiveValue& value) {
  switch (value.kind) {
    case Censoring::kExact:
      return fmt::format("{}K", value.tokens.value() / kTokensPerK);
    case Censoring::kRight:
      return fmt::format(">{}K", value.tokens.value() / kTokensPerK);
    case Censoring::kLeft:
      return fmt::format("<{}K", value.first_tested.value() / kTokensPerK);
    case Censoring::kNone:
      break;
  }
  return "none";
}

}  // namespace

TEST_CASE("published RULER: both rules reproduce every row, and the listed contradictions", "[analysis][published]") {
  std::set<std::string> contradictions;
  std::set<std::string> boundaries;
  int n_models = 0;
  for (const test::CsvRow& row : test::read_published_csv("ruler_published.csv")) {
    if (row.at("role") != "model") continue;
    INFO(row.at("model"));
    ++n_models;
    const EffectiveValue greater = effective_context(ruler_points(row), 85.6, PassRule::kGreater);
    const EffectiveValue at_least = effective_context(ruler_points(row), 85.6, PassRule::kAtLeast);
    CHECK(format_effective(greater) == row.at("rule_gt"));
    CHECK(format_effective(at_least) == row.at("rule_ge"));
    const bool agrees = row.at("effective_listed") == listed_form(greater);
    const bool boundary = format_effective(greater) != format_effective(at_least);
    if (boundary) {
      boundaries.insert(row.at("model"));
    } else if (!agrees) {
      contradictions.insert(row.at("model"));
    }
    CHECK((row.at("contradicts_rule") == "1") == (!agrees && !boundary));
    CHECK((row.at("boundary") == "1") == boundary);
  }
  CHECK(n_models == 44);
  CHECK(contradictions ==
        std::set<std::string>{"Qwen3-14B", "Qwen2.5-7B-Instruct-1M", "Qwen3-8B", "Qwen3-4B", "EXAONE-4.0-1.2B"});
  CHECK(boundaries == std::set<std::string>{"Qwen3-32B"});
}

TEST_CASE("published RULER: the listed means agree within 0.1, but for one", "[analysis][published]") {
  std::set<std::string> different;
  for (const test::CsvRow& row : test::read_published_csv("ruler_published.csv")) {
    if (row.at("role") != "model") continue;
    INFO(row.at("model"));
    std::vector<double> scores;
    for (const LengthPoint& point : ruler_points(row)) scores.push_back(point.score.value());
    const WeightedMeans means = weighted_means(scores);
    const auto close = [](double computed, const std::string& listed) {
      return std::abs(computed - as_number(listed)) < 0.1 + 1e-9;
    };
    if (!close(means.average, row.at("avg"))) different.insert(row.at("model"));
    if (row.at("wavg_inc") != "TBD") CHECK(close(means.increasing, row.at("wavg_inc")));
    if (row.at("wavg_dec") != "TBD") CHECK(close(means.decreasing, row.at("wavg_dec")));
  }
  CHECK(different == std::set<std::string>{"Qwen2.5-14B-Instruct-1M"});
}

TEST_CASE("published NoLiMa: every listed length follows from 0.85 times the base", "[analysis][published]") {
  int n_models = 0;
  for (const test::CsvRow& row : test::read_published_csv("nolima_published.csv")) {
    INFO(row.at("model"));
    ++n_models;
    const double threshold = as_number(row.at("threshold"));
    // One decimal in both columns.
    CHECK(std::abs(0.85 * as_number(row.at("base")) - threshold) < 0.05 + 0.85 * 0.05 + 1e-9);
    const EffectiveValue value = effective_context(nolima_points(row), threshold, PassRule::kAtLeast);
    CHECK(listed_form(value) == row.at("rule_ge"));
    CHECK(listed_form(value) == row.at("effective_listed"));
  }
  CHECK(n_models == 18);
}

}  // namespace fathom::analysis
