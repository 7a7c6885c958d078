// Weights in several files, GGUF and safetensors.

#include <filesystem>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/gguf_file.h"
#include "harness/checkpoint/safetensors_shards.h"
#include "harness/checkpoint/save.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"
#include "tests/support/shared_dir.h"

namespace fathom::checkpoint {
namespace {

using test::contains;
using test::model_error;

std::string uint16_bytes(std::uint16_t value) {
  std::string bytes;
  test::append_number(bytes, value);
  return bytes;
}

/// File `number` (from 0) of `count`, as llama.cpp's splitter writes it: 16-bit numbers, metadata in the first only.
test::GgufBuilder gguf_shard(std::uint16_t number, std::uint16_t count, std::uint32_t n_tensors) {
  test::GgufBuilder builder;
  if (number == 0) builder.text("general.architecture", "llama");
  return builder.raw("split.no", 2, uint16_bytes(number))
      .raw("split.count", 2, uint16_bytes(count))
      .uint32("split.tensors.count", n_tensors);
}

/// Three files with the tensors a, b and c.
class SplitFolder {
 public:
  SplitFolder() : folder("split") {
    write(0, gguf_shard(0, 3, 3).floats("a", {2}, {1, 2}));
    write(1, gguf_shard(1, 3, 3).floats("b", {1}, {3}));
    write(2, gguf_shard(2, 3, 3).floats("c", {1}, {4}));
  }
  void write(int number, const test::GgufBuilder& builder) const { folder.write(name(number), builder.bytes()); }
  std::string path(int number) const { return folder.path() + "/" + name(number); }
  static std::string name(int number) { return "m-0000" + std::to_string(number + 1) + "-of-00003.gguf"; }

  test::TemporaryFolder folder;
};

TEST_CASE("gguf split: the first file brings the tensors of all", "[checkpoint][gguf][split]") {
  const SplitFolder split;
  const GgufFile file = GgufFile::open(split.path(0));
  REQUIRE(file.tensors().size() == 3);
  const GgufTensor* last = file.find_tensor("c");
  REQUIRE(last != nullptr);
  float value = 0;
  dequantize_range(*last->type, last->data, 0, 1, &value);
  CHECK(value == 4.0f);
  CHECK(file.parts().size() == 3);
  CHECK(file.text("general.architecture") == "llama");
}

TEST_CASE("gguf split: what does not belong together is refused with file, value and fix",
          "[checkpoint][gguf][split][errors]") {
  const SplitFolder split;
  SECTION("a first file without tensors, as --no-tensor-first-split makes it, is fine") {
    split.write(0, gguf_shard(0, 3, 2));
    CHECK(GgufFile::open(split.path(0)).tensors().size() == 2);
  }
  SECTION("another file than the first") {
    const std::string error = model_error([&] { GgufFile::open(split.path(1)); });
    CHECK(contains(error, "split.no = 1: the configuration stands in the first of 3 files; open " + split.path(0)));
  }
  SECTION("a missing file") {
    std::filesystem::remove(split.path(2));
    const std::string error = model_error([&] { GgufFile::open(split.path(0)); });
    CHECK(contains(error, split.path(2) + " is missing"));
    CHECK(contains(error, "weights are in 3 files; put all of them into one folder"));
  }
  SECTION("a file of another place") {
    split.write(1, gguf_shard(2, 3, 3).floats("b", {1}, {3}));
    CHECK(contains(model_error([&] { GgufFile::open(split.path(0)); }), "split.no = 2; file 2 of 3 must have 1"));
  }
  SECTION("a file of another model") {
    split.write(1, gguf_shard(1, 4, 3).floats("b", {1}, {3}));
    CHECK(
        contains(model_error([&] { GgufFile::open(split.path(0)); }), "split.count = 4; " + split.path(0) + " says 3"));
  }
  SECTION("a tensor that stands twice") {
    split.write(2, gguf_shard(2, 3, 3).floats("a", {1}, {3}));
    CHECK(contains(model_error([&] { GgufFile::open(split.path(0)); }), "tensor 'a' stands in an earlier file too"));
  }
  SECTION("too few tensors") {
    split.write(0, gguf_shard(0, 3, 4).floats("a", {2}, {1, 2}));
    CHECK(contains(model_error([&] { GgufFile::open(split.path(0)); }), "split.tensors.count = 4; the 3 files hold 3"));
  }
  SECTION("a name without numbers") {
    const std::string path = split.folder.write("m.gguf", gguf_shard(0, 3, 3).floats("a", {1}, {1}).bytes());
    CHECK(contains(model_error([&] { GgufFile::open(path); }), "the file must be called 'NAME-00001-of-00003.gguf'"));
  }
  SECTION("a count that no file name can hold") {
    test::GgufBuilder builder;
    builder.uint32("split.no", 0).uint32("split.count", 4000000000U).floats("a", {1}, {1});
    split.write(0, builder);
    CHECK(
        contains(model_error([&] { GgufFile::open(split.path(0)); }), "split.count = 4000000000 is outside 1..99999"));
  }
}

constexpr const char* kFirst = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
constexpr const char* kSecond = R"({"b":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})";
constexpr const char* kIndex =
    R"({"metadata":{"total_size":10},"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})";

class ShardFolder {
 public:
  ShardFolder() : folder("shards") {
    folder.write("model-1.safetensors", test::safetensors_bytes(kFirst, 8));
    folder.write("model-2.safetensors", test::safetensors_bytes(kSecond, 2));
    index(kIndex);
  }
  void index(const std::string& text) const { folder.write("model.safetensors.index.json", text); }
  std::string error() const {
    return model_error([&] { SafetensorsShards::open(folder.path()); });
  }

  test::TemporaryFolder folder;
};

TEST_CASE("safetensors shards: the index brings the tensors of all files", "[checkpoint][safetensors][split]") {
  const ShardFolder shards;
  const SafetensorsShards opened = SafetensorsShards::open(shards.folder.path());
  REQUIRE(opened.tensors().size() == 2);
  CHECK(opened.tensors()[0]->name == "a");
  CHECK(opened.tensors()[1]->shape == std::vector<std::int64_t>{1});
  CHECK(opened.parts().size() == 3);
}

TEST_CASE("safetensors shards: a model in two files is the model in one", "[checkpoint][safetensors][split]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/model.safetensors");
  const std::string source = test::shared_path("fixtures/tiny/llama");
  const SafetensorsFile whole = SafetensorsFile::open(source + "/model.safetensors");
  std::vector<TensorToSave> halves[2];
  std::string map;
  for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
    const SafetensorsTensor& tensor = whole.tensors()[i];
    REQUIRE(tensor.type->name == "F32");
    halves[i % 2].push_back({tensor.name, tensor.shape, reinterpret_cast<const float*>(tensor.data)});
    map += (map.empty() ? "\"" : ",\"") + tensor.name + "\":\"model-" + std::to_string(i % 2) + ".safetensors\"";
  }
  const test::TemporaryFolder folder("sharded");
  for (int i = 0; i < 2; ++i) {
    write_safetensors(folder.path() + "/model-" + std::to_string(i) + ".safetensors", halves[i]);
  }
  folder.write("model.safetensors.index.json", "{\"weight_map\":{" + map + "}}");
  std::filesystem::copy_file(source + "/config.json", folder.path() + "/config.json");
  const auto one = open_checkpoint(source);
  const auto two = open_checkpoint(folder.path());
  REQUIRE(two->tensors().size() == one->tensors().size());
  for (const TensorInfo& info : one->tensors()) {
    INFO(info.name);
    std::int64_t n = 1;
    for (const std::int64_t size : info.shape) n *= size;
    std::vector<float> a(static_cast<std::size_t>(n)), b(a);
    one->read_float32(info.name, 0, info.shape.front(), a.data());
    two->read_float32(info.name, 0, info.shape.front(), b.data());
    CHECK(a == b);
  }
}

TEST_CASE("checkpoint: weights of a type that is not read are refused", "[checkpoint][open][errors]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/config.json");
  const test::TemporaryFolder folder("integers");
  std::filesystem::copy_file(test::shared_path("fixtures/tiny/llama/config.json"), folder.path() + "/config.json");
  const SafetensorsFile whole = SafetensorsFile::open(test::shared_path("fixtures/tiny/llama/model.safetensors"));
  std::string bytes(whole.bytes());
  const std::size_t at = bytes.find("\"F32\"");
  REQUIRE(at != std::string::npos);
  bytes.replace(at, 5, "\"I32\"");
  folder.write("model.safetensors", bytes);
  CHECK(contains(model_error([&] { open_checkpoint(folder.path()); }), "have type I32, which is not supported"));
}

TEST_CASE("safetensors shards: a single file needs no index, and is taken first", "[checkpoint][safetensors][split]") {
  const ShardFolder shards;
  shards.folder.write("model.safetensors", test::safetensors_bytes(kFirst, 8));
  CHECK(SafetensorsShards::open(shards.folder.path()).tensors().size() == 1);
}

TEST_CASE("safetensors shards: index and files must agree", "[checkpoint][safetensors][split][errors]") {
  const ShardFolder shards;
  SECTION("a missing file") {
    std::filesystem::remove(shards.folder.path() + "/model-2.safetensors");
    CHECK(contains(shards.error(), "/model-2.safetensors is missing"));
  }
  SECTION("a tensor that the file lacks") {
    shards.index(R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-2.safetensors"}})");
    CHECK(contains(shards.error(), "/model-2.safetensors lacks tensor 'c'"));
  }
  SECTION("a tensor that the index lacks") {
    shards.index(R"({"weight_map":{"b":"model-2.safetensors","z":"model-1.safetensors"}})");
    CHECK(contains(shards.error(), "/model-1.safetensors holds tensor 'a', which"));
    CHECK(contains(shards.error(), "does not name"));
  }
  SECTION("a tensor in another file") {
    shards.index(R"({"weight_map":{"a":"model-2.safetensors","b":"model-1.safetensors"}})");
    CHECK(contains(shards.error(), "puts into model-2.safetensors"));
  }
  SECTION("a tensor in two files") {
    shards.folder.write("model-2.safetensors", test::safetensors_bytes(kFirst, 8));
    CHECK(contains(shards.error(), "/model-2.safetensors holds tensor 'a', which"));
  }
  SECTION("a name that leads elsewhere") {
    shards.index(R"({"weight_map":{"a":"../model-1.safetensors"}})");
    CHECK(contains(shards.error(), "weight_map.a = '../model-1.safetensors' is not the name of a .safetensors file"));
  }
  SECTION("neither index nor a single file") {
    std::filesystem::remove(shards.folder.path() + "/model.safetensors.index.json");
    CHECK(contains(shards.error(),
                   "has neither model.safetensors nor model.safetensors.index.json, but "
                   "model-1.safetensors; the index says which file holds which tensor"));
    for (const char* name : {"/model-1.safetensors", "/model-2.safetensors"})
      std::filesystem::remove(shards.folder.path() + name);
    CHECK(contains(shards.error(), "nor model.safetensors.index.json"));
    shards.folder.write("pytorch_model.bin", "x");
    CHECK(contains(shards.error(), "but pytorch_model.bin; only safetensors and GGUF are read"));
    shards.folder.write("a.gguf", "x");
    CHECK(contains(shards.error(), "give the file itself: " + shards.folder.path() + "/a.gguf"));
  }
  SECTION("no map") {
    shards.index(R"({"metadata":{}})");
    CHECK(contains(shards.error(), "weight_map is missing"));
  }
  SECTION("an empty map") {
    shards.index(R"({"weight_map":{}})");
    CHECK(contains(shards.error(), "weight_map names no tensor"));
  }
  SECTION("a number for a name") {
    shards.index(R"({"weight_map":{"a":1}})");
    CHECK(contains(shards.error(), "weight_map.a"));
  }
}

}  // namespace
}  // namespace fathom::checkpoint
