#include <cmath>
#include <set>

#include "harness/scoring/matching.h"
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

TEST_CASE("subspan: case, punctuation and articles do not count", "[scoring][subspan]") {
  CHECK(value("subspan", {"the third flowerpot"}, "It is under the Third  flowerpot!") == Some(1.0));
  CHECK(value("subspan", {"St. Mary's"}, "at st marys") == Some(1.0));
  CHECK(value("subspan", {"sundial"}, "barometer") == Some(0.0));
  CHECK(value("subspan", {"a", "b"}, "") == Some(0.0));
  CHECK(value("subspan", {"v1"}, "v17", true) == Some(0.0));
}

TEST_CASE("em: the whole reply counts; a minus sign in front of a number stays", "[scoring][em]") {
  CHECK(value("em", {"be ca do"}, " be ca do.") == Some(1.0));
  CHECK(value("em", {"be ca do"}, "be ca do do") == Some(0.0));
  CHECK(value("em", {"1"}, "-1") == Some(0.0));
  CHECK(value("em", {"-1"}, "-1") == Some(1.0));
  CHECK(value("em", {"+"}, "-", true) == Some(0.0));
  CHECK(value("em", {"-"}, " -", true) == Some(1.0));
}

TEST_CASE("token_f1: words in common, counted with repetitions", "[scoring][token_f1]") {
  // 2 * 2 / (3 + 2)
  CHECK(std::abs(value("token_f1", {"salt mining"}, "mining of salt").value() - 0.8) <= 1e-12);  // a few operations
  CHECK(value("token_f1", {"x", "salt mining"}, "salt mining") == Some(1.0));
  // 2 * 1 / (2 + 1)
  CHECK(std::abs(value("token_f1", {"salt"}, "salt salt").value() - 2.0 / 3) <= 1e-12);
  CHECK(value("token_f1", {"salt"}, "pepper") == Some(0.0));
}

TEST_CASE("token_accuracy: words in their places, a longer reply divided by its own length",
          "[scoring][token_accuracy]") {
  CHECK(value("token_accuracy", {"be ca do fu"}, "be ca xx fu") == Some(0.75));
  CHECK(value("token_accuracy", {"be ca"}, "be ca be ca") == Some(0.5));
  CHECK(value("token_accuracy", {"be ca"}, "ca be") == Some(0.0));
}

TEST_CASE("extra: wrong values of the right form", "[scoring][extra]") {
  CHECK(value("extra", {"111", "222"}, "111, 333, 333 and 444") == Some(2.0));
  CHECK(value("extra", {"111"}, "111 1234") == Some(0.0));
  CHECK(value("extra", {"blue tile"}, "red tile") == std::nullopt);
}

TEST_CASE("label: the first label of the first sentence decides", "[scoring][label]") {
  task::Sample sample;
  sample.references = {"chapel"};
  sample.metric = task::TaskMetric::kLabel;
  sample.labels = {"chapel", "old chapel", "depot", "stable"};
  lm::Completion completion;
  const auto label = [&](const std::string& reply) {
    scoring::ScoredReply scored;
    scored.sample = &sample;
    scored.completion = &completion;
    scored.reply_text = reply;
    return scoring::scorers().at("label").make()->score(scored).value;
  };
  CHECK(label(" the Chapel, not the depot.") == Some(1.0));
  CHECK(label("the depot, not the chapel") == Some(0.0));
  CHECK(label("Unstable weather at the chapel.") == Some(1.0));
  CHECK(label("I do not know. The chapel?") == Some(0.0));
  CHECK(label("the old chapel") == Some(0.0));
  CHECK(label("") == Some(0.0));
  sample.labels.clear();
  CHECK(label("chapel") == std::nullopt);
}

TEST_CASE("scorers: of a reply only the first line counts where the sample says so", "[scoring]") {
  task::Sample sample;
  sample.references = {"ham"};
  sample.first_line = true;
  CHECK(scoring::judged_reply(sample, "\n egg\nham") == "egg");
  sample.first_line = false;
  CHECK(scoring::judged_reply(sample, "\n egg\nham") == "egg\nham");
}
