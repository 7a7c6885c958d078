#include "harness/checkpoint/gguf_file.h"

#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

using test::append_number;
using test::contains;
using test::GgufBuilder;
using test::model_error;

std::string parse_error(const GgufBuilder& builder) {
  const std::string bytes = builder.bytes();
  return model_error([&] { GgufFile::parse(bytes, "a.gguf"); });
}

std::string number_bytes(std::uint64_t value) {
  std::string out;
  append_number(out, value);
  return out;
}

TEST_CASE("gguf: metadata of every kind is read", "[checkpoint][gguf]") {
  std::string int8;
  append_number<std::int8_t>(int8, -3);
  std::string float64;
  append_number(float64, 0.125);
  GgufBuilder builder;
  builder.text("t", "hello").uint32("u", 7).float32("f", 0.5f).flag("b", 1).raw("i8", 1, int8).raw("d", 12, float64);
  builder.uint32_list("ul", {1, 2, 3}).text_list("tl", {"a", "", "c"});
  const std::string bytes = builder.bytes();
  const GgufFile file = GgufFile::parse(bytes, "a.gguf");
  CHECK(file.version() == 3);
  CHECK(file.text("t") == "hello");
  CHECK(file.integer("u") == 7);
  CHECK(file.real("u") == 7.0);
  CHECK(file.real("f") == 0.5);
  CHECK(file.flag("b") == true);
  CHECK(file.integer("i8") == -3);
  CHECK(file.real("d") == 0.125);
  CHECK(file.integer_list("ul") == std::vector<std::int64_t>{1, 2, 3});
  CHECK(file.text_list("tl") == std::vector<std::string_view>{"a", "", "c"});
  CHECK(file.integer("absent") == std::nullopt);
  CHECK(file.metadata().size() == 8);
}

TEST_CASE("gguf: version 2 reads like version 3", "[checkpoint][gguf]") {
  GgufBuilder builder;
  const std::string bytes = builder.version(2).uint32("u", 7).floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}).bytes();
  const GgufFile file = GgufFile::parse(bytes, "a.gguf");
  CHECK(file.version() == 2);
  CHECK(file.integer("u") == 7);
  REQUIRE(file.find_tensor("w") != nullptr);
}

TEST_CASE("gguf: tensors have reversed dimensions and lie where their offsets say", "[checkpoint][gguf]") {
  GgufBuilder builder;
  const std::string bytes = builder.floats("a", {3}, {1, 2, 3}).floats("b", {2, 3}, {4, 5, 6, 7, 8, 9}).bytes();
  const GgufFile file = GgufFile::parse(bytes, "a.gguf");
  REQUIRE(file.tensors().size() == 2);
  const GgufTensor& b = *file.find_tensor("b");
  CHECK(b.shape == std::vector<std::int64_t>{3, 2});
  CHECK(b.offset == 32);
  CHECK(b.size_bytes == 24);
  float values[6];
  dequantize_range(*b.type, b.data, 0, 6, values);
  CHECK(values[0] == 4.0f);
  CHECK(values[5] == 9.0f);
  CHECK(file.find_tensor("c") == nullptr);
}

TEST_CASE("gguf: a wrong kind of value names key and kinds", "[checkpoint][gguf][errors]") {
  GgufBuilder builder;
  const std::string bytes = builder.text("t", "x").uint32_list("ul", {1}).bytes();
  const GgufFile file = GgufFile::parse(bytes, "a.gguf");
  CHECK(model_error([&] { file.integer("t"); }) == "model: a.gguf: t is a text, not an integer");
  CHECK(model_error([&] { file.text("ul"); }) == "model: a.gguf: ul is a list of integers, not a text");
}

TEST_CASE("gguf: a file of another kind or version is refused", "[checkpoint][gguf][errors]") {
  CHECK(model_error([] { GgufFile::parse("GGML\x03\0\0\0", "a.gguf"); }) ==
        "model: a.gguf is not a GGUF file: it does not begin with 'GGUF'");
  CHECK(model_error([] { GgufFile::parse("", "a.gguf"); }) ==
        "model: a.gguf is not a GGUF file: it does not begin with 'GGUF'");
  CHECK(parse_error(GgufBuilder().version(1)) == "model: a.gguf has GGUF version 1; versions 2 and 3 are supported");
  CHECK(parse_error(GgufBuilder().version(4)) == "model: a.gguf has GGUF version 4; versions 2 and 3 are supported");
  CHECK(contains(parse_error(GgufBuilder().version(0x03000000)), "(a big-endian file)"));
}

TEST_CASE("gguf: claims that no file can keep are refused before anything is allocated", "[checkpoint][gguf][errors]") {
  const std::uint64_t huge = std::uint64_t{1} << 60;
  CHECK(contains(parse_error(GgufBuilder().claim_tensors(huge)), "1152921504606846976 tensors do not fit into"));
  CHECK(contains(parse_error(GgufBuilder().claim_metadata(huge)),
                 "1152921504606846976 metadata entries do not fit into"));
  CHECK(contains(parse_error(GgufBuilder().raw("t", 8, number_bytes(std::uint64_t{1} << 63))),
                 "t claims 9223372036854775808 bytes"));
  CHECK(
      contains(parse_error(GgufBuilder().raw("t", 8, number_bytes(UINT64_MAX))), "claims 18446744073709551615 bytes"));
  std::string list;
  append_number<std::uint32_t>(list, 8);
  append_number<std::uint64_t>(list, huge);
  CHECK(contains(parse_error(GgufBuilder().raw("l", 9, list)), "l claims 1152921504606846976 entries"));
}

TEST_CASE("gguf: unknown types are refused by number", "[checkpoint][gguf][errors]") {
  CHECK(contains(parse_error(GgufBuilder().raw("k", 13, "abcd")), "k has unknown type 13"));
  std::string nested;
  append_number<std::uint32_t>(nested, 9);
  append_number<std::uint64_t>(nested, 1);
  CHECK(contains(parse_error(GgufBuilder().raw("k", 9, nested)), "k is a list of unknown type 9"));
  CHECK(contains(parse_error(GgufBuilder().flag("k", 2)), "k is a flag and holds 2"));
  CHECK(contains(parse_error(GgufBuilder().raw("k", 10, number_bytes(UINT64_MAX))), "is too large"));
  CHECK(contains(parse_error(GgufBuilder().tensor("w", {4}, 99, "0123456789abcdef")), "'w' has unknown type 99"));
  CHECK(contains(parse_error(GgufBuilder().tensor("w", {256}, 17, std::string(74, 'x'))),
                 "tensor 'w' has type IQ2_XS, which is not supported; supported: F32, F16, Q4_0"));
}

TEST_CASE("gguf: impossible tensors are refused by name", "[checkpoint][gguf][errors]") {
  const std::string data(64, 'x');
  const std::uint64_t huge = std::uint64_t{1} << 40;
  CHECK(contains(parse_error(GgufBuilder().tensor("w", {huge, huge}, 0, data)), "tensor 'w' has dimension 1"));
  CHECK(contains(parse_error(GgufBuilder().tensor("w", {0}, 0, data)), "tensor 'w' has dimension 0 = 0"));
  CHECK(contains(parse_error(GgufBuilder().tensor("w", {huge}, 0, data)), "is larger than the file"));
  CHECK(contains(parse_error(GgufBuilder().tensor("w", {}, 0, data)), "tensor 'w' has 0 dimensions"));
  CHECK(contains(parse_error(GgufBuilder().tensor("w", {1, 1, 1, 1, 1}, 0, data)), "tensor 'w' has 5 dimensions"));
  CHECK(contains(parse_error(GgufBuilder().tensor("w", {16, 2}, 8, data)),
                 "tensor 'w' has rows of 16 values; Q8_0 stores blocks of 32"));
  CHECK(contains(parse_error(GgufBuilder().floats("w", {1}, {1}).floats("w", {1}, {1})), "tensor 'w' stands twice"));
  CHECK(contains(parse_error(GgufBuilder().uint32("k", 1).uint32("k", 2)), "key 'k' stands twice"));
}

TEST_CASE("gguf: offsets must be aligned, inside the file and apart", "[checkpoint][gguf][errors]") {
  const auto with = [](std::uint64_t offset) {
    return parse_error(GgufBuilder().floats("a", {16}, std::vector<float>(16, 1.0f)).tensor_at("w", {8}, 0, offset));
  };
  CHECK(contains(with(4), "tensor 'w' has offset 4, which is not a multiple of 32"));
  CHECK(contains(with(64), "tensor 'w' takes bytes 64 to 96 of the data; the file holds 64"));
  CHECK(contains(with(std::uint64_t{1} << 63), "tensor 'w' takes bytes 9223372036854775808 to"));
  CHECK(contains(with(UINT64_MAX - 31), "tensor 'w' takes bytes 18446744073709551584 to"));
  CHECK(contains(with(32), "overlaps another one"));
}

TEST_CASE("gguf: the alignment must be a power of two", "[checkpoint][gguf][errors]") {
  for (const std::uint32_t alignment : {0u, 1u, 12u, 33u, 0xffffffffu}) {
    INFO(alignment);
    CHECK(contains(parse_error(GgufBuilder().uint32("general.alignment", alignment)),
                   "general.alignment = " + std::to_string(alignment) + " must be a power of two of at least 8"));
  }
  CHECK(contains(parse_error(GgufBuilder().text("general.alignment", "32")), "is a text, not an integer"));
  const std::string aligned = GgufBuilder().uint32("general.alignment", 8).floats("w", {1}, {1}).bytes();
  CHECK_NOTHROW(GgufFile::parse(aligned, "a.gguf"));
}

}  // namespace
}  // namespace fathom::checkpoint
