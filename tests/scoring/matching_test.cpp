#include "harness/scoring/matching.h"

#include "tests/support/catch.h"

namespace {

using namespace fathom;
using scoring::AnswerForm;
using scoring::WordMatch;

using Values = std::vector<std::string>;

task::Sample sample_with(const Values& references, bool whole_words) {
  task::Sample sample;
  sample.references = references;
  sample.whole_words = whole_words;
  return sample;
}

}  // namespace

TEST_CASE("matching: clean-up trims, and control bytes become newlines", "[scoring][matching]") {
  CHECK(scoring::clean_reply("  a\tb \n") == "a\nb");
  CHECK(scoring::clean_reply(std::string("\x01 x\0y", 5)) == "x\ny");
  CHECK(scoring::clean_reply("").empty());
  CHECK(scoring::clean_reply(" \n\t ").empty());
}

TEST_CASE("matching: thinking text does not count", "[scoring][matching]") {
  CHECK(scoring::clean_reply("<think>is it 5?</think> 7") == "7");
  CHECK(scoring::clean_reply("is it 5?</think>7") == "7");
  CHECK(scoring::clean_reply("<think>still at it: 5").empty());
  CHECK(scoring::clean_reply("<think>a</think>b<think>c</think>d") == "d");
}

TEST_CASE("matching: lower-casing reaches beyond ASCII, full-width digits become plain ones", "[scoring][matching]") {
  CHECK(scoring::fold_case("AbC xyz") == "abc xyz");
  CHECK(scoring::fold_case("ÀÖØÞ×ß÷ÿ") == "àöøþ×ß÷ÿ");
  CHECK(scoring::fold_case("ĀĆŁŃŽŸ") == "āćłńžÿ");
  CHECK(scoring::fold_case("ΑΒΓΔΩΣ ΆΈΉΊΌΎΏ") == "αβγδωσ άέήίόύώ");
  CHECK(scoring::fold_case("АБВЯ ЁЄ") == "абвя ёє");
  CHECK(scoring::fold_case("１２３０９") == "12309");
  CHECK(scoring::fold_case("ＡＺ") == "ａｚ");
  CHECK(scoring::fold_case("登记编号") == "登记编号");
  CHECK(scoring::fold_case("a\xff\xc3") == "a\xff\xc3");  // not UTF-8: kept
}

TEST_CASE("matching: a reference matches as a substring, or as whole words in a closed vocabulary",
          "[scoring][matching]") {
  CHECK(scoring::contains_reference("The number is 1234567.", "1234567", WordMatch::kSubstring));
  CHECK(scoring::contains_reference("x91234567x", "1234567", WordMatch::kSubstring));
  CHECK(scoring::contains_reference("ABCDE", "abcde", WordMatch::kSubstring));
  CHECK_FALSE(scoring::contains_reference("", "1", WordMatch::kSubstring));

  CHECK(scoring::contains_reference("v17 v1", "v1", WordMatch::kWholeWords));
  CHECK_FALSE(scoring::contains_reference("v17", "v1", WordMatch::kWholeWords));
  CHECK_FALSE(scoring::contains_reference("v1", "v17", WordMatch::kWholeWords));
  CHECK(scoring::contains_reference("a v1  v2\nv3 v4", "v2 v3", WordMatch::kWholeWords));
  CHECK_FALSE(scoring::contains_reference("v2 x v3", "v2 v3", WordMatch::kWholeWords));
}

TEST_CASE("matching: the form of an answer is read off the references", "[scoring][matching]") {
  const auto digits = scoring::infer_answer_form(sample_with({"1234567", "7654321"}, false));
  REQUIRE(digits.has_value());
  CHECK(digits->kind == AnswerForm::Kind::kDigits);
  CHECK(digits->size == 7);
  const auto capitals = scoring::infer_answer_form(sample_with({"ABCDE"}, false));
  REQUIRE(capitals.has_value());
  CHECK(capitals->kind == AnswerForm::Kind::kCapitals);
  const auto uuid = scoring::infer_answer_form(sample_with({"00000000-aaaa-4bbb-8ccc-0123456789ab"}, false));
  REQUIRE(uuid.has_value());
  CHECK(uuid->kind == AnswerForm::Kind::kUuid);
  const auto pool = scoring::infer_answer_form(sample_with({"v1 v2 v3 v4"}, true));
  REQUIRE(pool.has_value());
  CHECK(pool->kind == AnswerForm::Kind::kPoolWords);
  CHECK(pool->size == 4);
  CHECK(pool->pool == 'v');

  CHECK_FALSE(scoring::infer_answer_form(sample_with({"under the sundial"}, false)).has_value());
  CHECK_FALSE(scoring::infer_answer_form(sample_with({"12345", "123"}, false)).has_value());
  CHECK_FALSE(scoring::infer_answer_form(sample_with({"v1 k2"}, true)).has_value());
  CHECK_FALSE(scoring::infer_answer_form(sample_with({}, false)).has_value());
}

TEST_CASE("matching: values are parsed leniently, whatever stands between them", "[scoring][matching]") {
  const AnswerForm digits{AnswerForm::Kind::kDigits, 3, 0};
  CHECK(scoring::parse_values("123, 456 and 789.", digits) == Values{"123", "456", "789"});
  CHECK(scoring::parse_values("1234 12 x123 １２３", digits) == Values{"123"});
  CHECK(scoring::parse_values("编号是123。", digits) == Values{"123"});
  const AnswerForm capitals{AnswerForm::Kind::kCapitals, 3, 0};
  CHECK(scoring::parse_values("ABC, DEF and GHI; not ABCD or Abc", capitals) == Values{"abc", "def", "ghi"});
  const AnswerForm uuid{AnswerForm::Kind::kUuid, 36, 0};
  CHECK(scoring::parse_values("\"00000000-AAAA-4bbb-8ccc-0123456789ab\", x", uuid) ==
        Values{"00000000-aaaa-4bbb-8ccc-0123456789ab"});
  CHECK(scoring::parse_values("a00000000-aaaa-4bbb-8ccc-0123456789ab", uuid).empty());
  const AnswerForm one{AnswerForm::Kind::kPoolWords, 1, 'k'};
  CHECK(scoring::parse_values("k1 v2 k17 next k1", one) == Values{"k1", "k17", "k1"});
  const AnswerForm four{AnswerForm::Kind::kPoolWords, 2, 'v'};
  CHECK(scoring::parse_values("v1 v2 v3 ask v4 v5", four) == Values{"v1 v2", "v4 v5"});
}
