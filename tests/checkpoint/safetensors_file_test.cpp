#include "harness/checkpoint/safetensors_file.h"

#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

using test::contains;
using test::model_error;
using test::safetensors_bytes;

std::string parse_error(std::string_view header, std::size_t data_bytes) {
  const std::string bytes = safetensors_bytes(header, data_bytes);
  return model_error([&] { SafetensorsFile::parse(bytes, "m.safetensors"); });
}

TEST_CASE("safetensors: tensors and metadata are read", "[checkpoint][safetensors]") {
  const std::string bytes = safetensors_bytes(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,1],"data_offsets":[4,8]},)"
      R"("a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"s":{"dtype":"F32","shape":[],"data_offsets":[8,12]}}  )",
      12);
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "m.safetensors");
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.tensors()[1].name == "b");
  CHECK(file.tensors()[1].shape == std::vector<std::int64_t>{2, 1});
  CHECK(file.tensors()[1].type->name == "BF16");
  CHECK(file.tensors()[1].data[0] == 4);
  CHECK(file.tensors()[2].shape.empty());
  CHECK(file.metadata().at("format") == "pt");
}

TEST_CASE("safetensors: masks and positions may stand beside the weights", "[checkpoint][safetensors]") {
  const std::string bytes = test::safetensors_bytes(
      R"({"mask":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},"w":{"dtype":"F16","shape":[1],"data_offsets":[3,5]}})",
      5);
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "m.safetensors");
  CHECK(file.tensors()[0].type->name == "BOOL");
  CHECK(file.tensors()[0].type->dequantize == nullptr);
}

TEST_CASE("safetensors: the header must fit into the file", "[checkpoint][safetensors][errors]") {
  CHECK(model_error([] { SafetensorsFile::parse("1234567", "m"); }) ==
        "model: m is damaged: it is shorter than the 8 bytes of the header's size");
  std::string bytes;
  test::append_number<std::uint64_t>(bytes, UINT64_MAX);
  bytes += "{}";
  CHECK(model_error([&] { SafetensorsFile::parse(bytes, "m"); }) ==
        "model: m is damaged: the header claims 18446744073709551615 bytes; the file has 10");
}

TEST_CASE("safetensors: the header must be the right JSON", "[checkpoint][safetensors][errors]") {
  CHECK(contains(parse_error("{", 0), "m.safetensors is not valid JSON"));
  CHECK(contains(parse_error("[]", 0), "m.safetensors is not a JSON object"));
  CHECK(contains(parse_error(R"({"a":1})", 0), "m.safetensors: a is not an object"));
  CHECK(contains(parse_error(R"({"a":null})", 0), "m.safetensors: a is null"));
  const std::string tensor = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  CHECK(contains(parse_error("{" + tensor + "," + tensor + "}", 4), "has key 'a' twice"));
  CHECK(contains(parse_error(std::string(200000, '['), 0), "is nested deeper than"));
  CHECK(contains(parse_error(R"({"__metadata__":{"a":1}})", 0), "__metadata__.a = 1 is not a text"));
  CHECK(contains(parse_error("{\"a\xff\":1}", 0), "is not valid JSON"));
}

TEST_CASE("safetensors: type, shape and place of a tensor are checked", "[checkpoint][safetensors][errors]") {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  CHECK(contains(parse_error(tensor("\"C64\"", "[1]", "[0,8]"), 8), "w.dtype = 'C64' is not supported"));
  CHECK(contains(parse_error(tensor("\"I64\"", "[1]", "[0,4]"), 4), "w.data_offsets span 4 bytes; the shape needs 8"));
  CHECK(contains(parse_error(tensor("3", "[1]", "[0,4]"), 4), "w.dtype = 3 is not a text"));
  CHECK(contains(parse_error(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4), "w.dtype is missing"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[-1]", "[0,4]"), 4), "w.shape holds -1, which cannot be"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[1.5]", "[0,4]"), 4), "w.shape holds 1.5"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[4294967296,4294967296]", "[0,4]"), 4), "w.shape holds 4294967296"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[18446744073709551615]", "[0,4]"), 4), "w.shape holds"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[1]", "[4,0]"), 4), "w.data_offsets must be two rising numbers"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[1]", "[0]"), 4), "w.data_offsets must be two rising numbers"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[2]", "[0,4]"), 4), "w.data_offsets span 4 bytes; the shape needs 8"));
  CHECK(
      contains(parse_error(tensor("\"F32\"", "[1]", "[4,8]"), 8), "takes bytes 4 to 8 of 8; the one before ends at 0"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[2]", "[0,8]"), 7), "takes bytes 0 to 8 of 7"));
  CHECK(contains(parse_error(tensor("\"F32\"", "[1]", "[0,4]"), 9), "its tensors take 4 bytes, the data has 9"));
  CHECK(contains(parse_error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                             8),
                 "tensor 'b' takes bytes 4 to 8 of 8; the one before ends at 8"));
}

}  // namespace
}  // namespace fathom::checkpoint
