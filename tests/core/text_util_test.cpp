#include "harness/core/text_util.h"

#include "harness/core/hash.h"
#include "tests/support/catch.h"

TEST_CASE("parse_int and parse_double: whole texts only", "[core][text_util]") {
  CHECK(fathom::parse_int("-12") == -12);
  CHECK_FALSE(fathom::parse_int("12 ").has_value());
  CHECK_FALSE(fathom::parse_int("9223372036854775808").has_value());
  CHECK_FALSE(fathom::parse_int("").has_value());
  CHECK_FALSE(fathom::parse_int("+").has_value());
  CHECK(fathom::parse_double("1e5") == 100000.0);
  CHECK_FALSE(fathom::parse_double("inf").has_value());
  CHECK_FALSE(fathom::parse_double("0x10").has_value());
  CHECK(fathom::format_double(0.1) == "0.1");
}

TEST_CASE("is_valid_utf8: accepts well-formed text, refuses overlong forms, surrogates and cut sequences",
          "[core][text_util]") {
  CHECK(fathom::is_valid_utf8("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"));
  CHECK_FALSE(fathom::is_valid_utf8("\xC0\xAF"));
  CHECK_FALSE(fathom::is_valid_utf8("\xE0\x80\xAF"));
  CHECK_FALSE(fathom::is_valid_utf8("\xED\xA0\x80"));
  CHECK_FALSE(fathom::is_valid_utf8("\xF4\x90\x80\x80"));
  CHECK_FALSE(fathom::is_valid_utf8("\xE4\xB8"));
}

TEST_CASE("nearest_name: a plausible misspelling, nothing for a stranger", "[core][text_util]") {
  CHECK(fathom::edit_distance("ab", "ba") == 1);
  CHECK(fathom::edit_distance("kitten", "sitting") == 3);
  CHECK(fathom::nearest_name("sclaing", {"scaling", "seed"}) == std::optional<std::string>("scaling"));
  CHECK_FALSE(fathom::nearest_name("qqqqqqqq", {"scaling", "seed"}).has_value());
}

TEST_CASE("hash: stable values, streaming equals one piece", "[core][hash]") {
  CHECK(fathom::hash_hex("") == "99aa06d3014798d86001c324468d497f");  // XXH3's published 128-bit hash of no bytes
  fathom::StreamingHash streaming;
  streaming.update("fat");
  streaming.update("hom");
  CHECK(streaming.digest() == fathom::hash128("fathom"));
}
