#include "reports/format.h"

#include "tests/support/catch.h"

namespace fathom::reports {

TEST_CASE("format: lengths are integers, with K where it is exact", "[reports][format]") {
  CHECK(format_tokens(2048) == "2048");
  CHECK(k_form(2048) == "2K");
  CHECK(k_form(131072) == "128K");
  CHECK(k_form(1048576) == "1M");
  CHECK(k_form(512).empty());
  CHECK(k_form(1500).empty());
  CHECK(format_tokens_short(1536) == "1536");
  CHECK(format_tokens_short(4096) == "4K");
}

TEST_CASE("format: percents have no more digits than the number of values supports", "[reports][format]") {
  CHECK(format_percent(0.9, 10) == "90");
  CHECK(format_percent(2.0 / 3, 30) == "67");
  CHECK(format_percent(0.91234, 1000) == "91.2");
  CHECK(format_percent(1, 10) == "100");
  CHECK(format_percent(0, 10000) == "0");
  // What is not perfect must not look it.
  CHECK(format_percent(0.996, 500) == "99.6");
  CHECK(format_percent(0.9999, 10000) == "99.99");
  CHECK(format_percent(0.004, 500) == "0.4");
  CHECK(format_percent(0.9999999, 10000000) == ">99.99");
  CHECK(format_percent_range(0.596, 0.982, 10) == "60–98");
}

TEST_CASE("format: effective values keep their censoring", "[reports][format]") {
  using analysis::Censoring;
  analysis::EffectiveValue exact;
  exact.kind = Censoring::kExact;
  exact.tokens = 512;
  exact.first_tested = 128;
  analysis::EffectiveValue right = exact;
  right.kind = Censoring::kRight;
  right.tokens = 2048;
  analysis::EffectiveValue left = exact;
  left.kind = Censoring::kLeft;
  left.tokens.reset();
  CHECK(format_effective_text(exact) == "512");
  CHECK(format_effective_text(right) == "≥2048");
  CHECK(format_effective_text(left) == "<128");
  CHECK(format_effective_text({}) == "–");
  CHECK(format_effective_range(exact, right) == "512–≥2048");
  CHECK(format_effective_range(exact, exact) == "512");
  CHECK(format_effective_range(std::nullopt, exact) == "–");
  CHECK(format_multiple(exact, 256) == "2×");
  CHECK(format_multiple(right, 1024) == "≥2×");
  CHECK(format_multiple(left, 256) == "<0.5×");
  CHECK(format_multiple(exact, 0) == "–");
}

TEST_CASE("format: depths, counts, bytes and seconds", "[reports][format]") {
  CHECK(format_depth(0) == "0");
  CHECK(format_depth(5000) == "50");
  CHECK(format_depth(1250) == "12.5");
  CHECK(format_depth(3333) == "33.33");
  CHECK(format_count(1234567) == "1,234,567");
  CHECK(format_count(-1234) == "-1,234");
  CHECK(format_count(999) == "999");
  CHECK(format_bytes(std::int64_t{200} << 20) == "200 MiB");
  CHECK(format_bytes(std::int64_t{3} << 30) == "3.0 GiB");
  CHECK(format_seconds(1.234) == "1.23 s");
  CHECK(format_seconds(61.5) == "62 s");
  CHECK(format_seconds(600) == "10 min");
}

TEST_CASE("format: what a broken model says cannot break a page or a terminal", "[reports][format]") {
  CHECK(visible_text("a\nb\tc") == "a⏎b c");
  CHECK(visible_text(std::string("\x00\x1b[31m", 6)) == "␀␛[31m");
  CHECK(visible_text("\xff\xc3(") == "\xEF\xBF\xBD\xEF\xBF\xBD(");
  CHECK(visible_text("\xed\xa0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(visible_text("模型 é") == "模型 é");
  // A right-to-left override would turn the rest of the line around.
  CHECK(visible_text("a\xE2\x80\xAE"
                     "b") ==
        "a\xEF\xBF\xBD"
        "b");
  CHECK(escape_html("<b a=\"1\">&'") == "&lt;b a=&quot;1&quot;&gt;&amp;&#39;");
  CHECK(escape_markdown("a|b_c <x>") == "a\\|b\\_c &lt;x>");
}

TEST_CASE("format: columns count what a terminal shows", "[reports][format]") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("模型") == 4);
  CHECK(display_width("e\xCC\x81") == 1);
  CHECK(fit_left("abc", 5) == "abc  ");
  CHECK(fit_right("abc", 5) == "  abc");
  CHECK(fit_left("abcdef", 4) == "abc…");
  // A wide character that does not fit leaves a blank.
  CHECK(fit_left("模型模型", 4) == "模… ");
}

TEST_CASE("format: names are told apart by the words that differ", "[reports]") {
  const DistinctNames scalings = distinct_names({"model.gguf none bf16", "model.gguf ntk factor=2 bf16"});
  CHECK(scalings.names == std::vector<std::string>{"none", "ntk factor=2"});
  CHECK(scalings.shared == "model.gguf … bf16");
  const DistinctNames keeps_one = distinct_names({"rope", "rope rerope"});
  CHECK(keeps_one.names == std::vector<std::string>{"rope", "rope rerope"});
  CHECK(keeps_one.shared.empty());
  const DistinctNames front = distinct_names({"rope base=1", "rope base=2"});
  CHECK(front.names == std::vector<std::string>{"base=1", "base=2"});
  CHECK(front.shared == "rope …");
  const DistinctNames back = distinct_names({"rope f32", "alibi f32"});
  CHECK(back.names == std::vector<std::string>{"rope", "alibi"});
  CHECK(back.shared == "… f32");
  CHECK(distinct_names({"rope float32"}).names == std::vector<std::string>{"rope float32"});
  CHECK(distinct_names({"a b", "a b"}).names == std::vector<std::string>{"b", "b"});
  CHECK(distinct_names({}).names.empty());
}

}  // namespace fathom::reports
