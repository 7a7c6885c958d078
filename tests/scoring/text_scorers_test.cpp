#include <set>

#include "harness/scoring/scorer.h"
#include "tests/support/catch.h"

namespace {

using namespace fathom;

scoring::Score score(std::string_view scorer, const std::vector<std::string>& references, const std::string& reply,
                     bool whole_words = false) {
  task::Sample sample;
  sample.references = references;
  sample.whole_words = whole_words;
  lm::Completion completion;
  scoring::ScoredReply scored;
  scored.sample = &sample;
  scored.completion = &completion;
  scored.reply_text = reply;
  return scoring::scorers().at(scorer).make()->score(scored);
}

std::optional<double> value(std::string_view scorer, const std::vector<std::string>& references,
                            const std::string& reply, bool whole_words = false) {
  return score(scorer, references, reply, whole_words).value;
}

using Some = std::optional<double>;

}  // namespace

TEST_CASE("all: the share of references that occur", "[scoring][all]") {
  CHECK(value("all", {"111", "222", "333", "444"}, "111, 333, and 444") == Some(0.75));
  CHECK(value("all", {"111"}, "the number is 111.") == Some(1.0));
  CHECK(value("all", {"ABCDE"}, "abcde") == Some(1.0));
  CHECK(value("all", {"111"}, "") == Some(0.0));
  CHECK(value("all", {"111"}, "<think>111</think>222") == Some(0.0));
  CHECK(value("all", {"123"}, "１２３") == Some(1.0));
  CHECK(value("all", {"v1"}, "v17", true) == Some(0.0));
  CHECK(value("all", {"v1", "v2"}, "v2 v9", true) == Some(0.5));
  CHECK_FALSE(value("all", {}, "x").has_value());
  CHECK(score("all", {"111", "222"}, "111").explanation == "1 of 2 found; missing: 222");
}

TEST_CASE("part: one reference is enough, and is not divided by their number", "[scoring][part]") {
  CHECK(value("part", {"Paris", "the capital"}, "It is paris.") == Some(1.0));
  CHECK(value("part", {"Paris", "Rome"}, "Oslo") == Some(0.0));
  CHECK(value("part", {"Paris"}, "") == Some(0.0));
  CHECK(value("part", {"v1", "v2"}, "v21 v1", true) == Some(1.0));
  CHECK_FALSE(value("part", {}, "x").has_value());
}

TEST_CASE("exact_set: the values of the reply are the references, in any order", "[scoring][exact_set]") {
  CHECK(value("exact_set", {"111", "222"}, "222 and 111") == Some(1.0));
  CHECK(value("exact_set", {"111", "222"}, "222, 111, 222") == Some(1.0));
  CHECK(value("exact_set", {"111", "222"}, "222, 111, 333") == Some(0.0));
  CHECK(value("exact_set", {"111", "222"}, "222") == Some(0.0));
  CHECK(value("exact_set", {"111", "222"}, "") == Some(0.0));
  CHECK(value("exact_set", {"k1", "k2"}, "k2 v9 k1", true) == Some(1.0));
  CHECK_FALSE(value("exact_set", {"under the sundial"}, "under the sundial").has_value());
}

TEST_CASE("precision: hits among the values given", "[scoring][precision]") {
  CHECK(value("precision", {"111", "222"}, "111, 333") == Some(0.5));
  CHECK(value("precision", {"111", "222"}, "111") == Some(1.0));
  CHECK(value("precision", {"111"}, "333, 444, 555, 111") == Some(0.25));
  CHECK_FALSE(value("precision", {"111"}, "no idea").has_value());
}

TEST_CASE("ordered: the share of references in their place", "[scoring][ordered]") {
  CHECK(value("ordered", {"111", "222", "333", "444"}, "111 333 222 444") == Some(0.5));
  CHECK(value("ordered", {"111", "222"}, "999 111 222") == Some(0.0));
  CHECK(value("ordered", {"111", "222"}, "111 222 999") == Some(1.0));
  CHECK(value("ordered", {"111", "222"}, "") == Some(0.0));
  CHECK(value("ordered", {"ABC", "DEF"}, "ABC, DEF") == Some(1.0));
}

TEST_CASE("scorers: every entry has a name, a summary and handles an empty reply", "[scoring]") {
  std::set<std::string_view> names;
  for (const scoring::ScorerEntry& entry : scoring::scorers().entries()) {
    names.insert(entry.name);
    CHECK(!entry.summary.empty());
    CHECK(entry.version >= 1);
    const auto empty = value(entry.name, {"111"}, "");
    if (empty) {
      CHECK(*empty == 0.0);
    }
  }
  CHECK(names.size() == scoring::scorers().entries().size());
  CHECK_THROWS_AS(scoring::scorers().at("al"), ConfigError);
}
