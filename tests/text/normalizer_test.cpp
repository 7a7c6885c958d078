#include "harness/text/normalizer.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace fathom::text {
namespace {

NormalizedText apply(std::vector<NormalizerStep> steps, const std::string& text, const SegmentPlace& place = {}) {
  return Normalizer(std::move(steps)).apply(text, place, Normalizer::Origins::kKeep);
}

using Ends = std::vector<std::size_t>;

TEST_CASE("normalizer: a replacement ends where the text it stands for ends", "[text][normalizer]") {
  const NormalizedText got = apply({normalize::replace(" ", "__")}, "a b");
  CHECK(got.text == "a__b");
  CHECK(got.ends == Ends{1, 2, 2, 3});
}

TEST_CASE("normalizer: what is put in front stands for nothing", "[text][normalizer]") {
  const NormalizedText got = apply({normalize::prepend("_", PrefixPlace::kTextOnly)}, "ab");
  CHECK(got.text == "_ab");
  CHECK(got.ends == Ends{0, 1, 2});
  CHECK(apply({normalize::prepend("_", PrefixPlace::kEverySegment)}, "").text.empty());
  const SegmentPlace inside{false, false};
  CHECK(apply({normalize::prepend("_", PrefixPlace::kTextOnly)}, "a", inside).text == "a");
  CHECK(apply({normalize::prepend("_", PrefixPlace::kEverySegment)}, "_a", inside).text == "__a");
  CHECK(apply({normalize::prepend_unless_there("_", PrefixPlace::kEverySegment)}, "_a", inside).text == "_a");
}

TEST_CASE("normalizer: composition keeps track of what it joins", "[text][normalizer]") {
  const NormalizedText got = apply({normalize::nfc()}, "xe\u0301 \u212B");  // Angstrom sign becomes A with ring
  CHECK(got.text == "x\u00E9 \u00C5");
  CHECK(got.ends == Ends{1, 4, 4, 5, 8, 8});
  CHECK(apply({normalize::nfkc()}, "\uFB01\u00BD").text == "fi1\u20442");
  CHECK(apply({normalize::nfc()}, "\uFB01").text == "\uFB01");
  CHECK(apply({normalize::nfc()},
              "\xFF"
              "e\u0301\xC3")
            .text == "\xFF\u00E9\xC3");  // stray bytes stay
}

TEST_CASE("normalizer: blanks are collapsed, shortened or stripped", "[text][normalizer]") {
  const NormalizedText got = apply({normalize::collapse_blanks()}, "  a  b ");
  CHECK(got.text == "a b");
  CHECK(got.ends == Ends{3, 4, 6});
  CHECK(apply({normalize::collapse_space()}, "\u3000a\t\n b\u00A0").text == "a b");
  CHECK(apply({normalize::shorten_blanks(" ")}, " a   b  ").text == " a b ");
  CHECK(apply({normalize::strip(true, false)}, " \n a ").text == "a ");
  CHECK(apply({normalize::strip(false, true)}, " a \u2028").text == " a");
  for (const auto& step : {normalize::collapse_blanks(), normalize::collapse_space(), normalize::strip(true, true)}) {
    CHECK(apply({step}, "   ").text.empty());
    CHECK(apply({step}, "").text.empty());
  }
}

/// "A" becomes "bc": the root's offset is 0x80, 0x80 ^ 'A' = 0xC1 is its child, whose offset 3 leads to the value 0 at
/// 0xC2.
std::string one_rule_table() {
  std::vector<std::uint32_t> units(0xC3, 0);
  units[0] = 0x80U << 10U;
  units[0xC1] = (3U << 10U) | 0x100U | 'A';
  units[0xC2] = 0x80000000U;
  std::string table(4 + 4 * units.size(), '\0');
  const auto size = static_cast<std::uint32_t>(4 * units.size());
  std::memcpy(table.data(), &size, 4);
  std::memcpy(table.data() + 4, units.data(), 4 * units.size());
  return table + std::string("bc\0", 3);
}

TEST_CASE("normalizer: SentencePiece's table of replacements", "[text][normalizer]") {
  const NormalizedText got = apply({normalize::charsmap(one_rule_table(), "t")}, "xAA\u00E9");
  CHECK(got.text == "xbcbc\u00E9");
  CHECK(got.ends == Ends{1, 2, 2, 3, 3, 4, 5});
  CHECK(apply({normalize::charsmap(one_rule_table(), "t")}, "\xFF").text == "\uFFFD");
}

TEST_CASE("normalizer: tokenizer.json's table is read one user-perceived character at a time", "[text][normalizer]") {
  const auto by_graphemes = [](const std::string& text) {
    return apply({normalize::charsmap_by_graphemes(one_rule_table(), "t")}, text);
  };
  // The accent goes with its letter, unless the two are too long to be looked up as one.
  const NormalizedText got = by_graphemes("xA\u0301A");
  CHECK(got.text == "xbcbc");
  CHECK(got.ends == Ends{1, 4, 4, 5, 5});
  CHECK(by_graphemes("A\u0301\u0302\u0303").text == "bc\u0301\u0302\u0303");
  CHECK(by_graphemes("\xFF"
                     "A")
            .text ==
        "\uFFFD"
        "bc");
  CHECK(by_graphemes("").text.empty());
}

TEST_CASE("normalizer: SentencePiece leaves user-defined pieces as they are", "[text][normalizer]") {
  normalize::SentencePieceRules rules{one_rule_table(), {"AA", "  "}, true, PrefixPlace::kTextOnly, "_"};
  const NormalizedText got = apply({normalize::sentencepiece(rules, "t")}, " AAA  b ");
  CHECK(got.text == "_AAbc__b");
  CHECK(got.ends == Ends{1, 2, 3, 4, 4, 6, 6, 7});
  rules.shielded.clear();
  CHECK(apply({normalize::sentencepiece(rules, "t")}, " AAA  b ").text == "_bcbcbc_b");
  CHECK(apply({normalize::sentencepiece(rules, "t")}, "   ").text.empty());
}

TEST_CASE("normalizer: a table that points outside itself replaces nothing", "[text][normalizer]") {
  const std::string good = one_rule_table();
  for (std::size_t i = 4; i + 3 < good.size(); i += 4) {
    std::string spoiled = good;
    spoiled.replace(i, 3, "\xFF\xFF\xFF");
    CHECK_NOTHROW(apply({normalize::charsmap(spoiled, "t")}, "AxA\u00E9"));
  }
  CHECK_THROWS_AS(normalize::charsmap("", "t"), DataError);
  CHECK_THROWS_AS(normalize::charsmap(std::string(8, '\xFF'), "t"), DataError);
}

}  // namespace
}  // namespace fathom::text
