// Damaged files: whatever byte is missing or changed, the answer is an error or a valid file, never a crash.

#include <algorithm>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/gguf_file.h"
#include "harness/checkpoint/safetensors_file.h"
#include "harness/core/random.h"
#include "tests/checkpoint/file_builders.h"
#include "tests/support/catch.h"

namespace fathom::checkpoint {
namespace {

std::string valid_gguf() {
  test::TinyLlama llama;
  llama.metadata().text("general.name", "tiny").text_list("tokenizer.ggml.tokens", {"a", "b"}).flag("x", 1);
  return llama.tensors().bytes();
}

std::string valid_safetensors() {
  return test::safetensors_bytes(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("b":{"dtype":"F16","shape":[3],"data_offsets":[16,22]}})",
      22);
}

TEST_CASE("gguf: a file cut at any byte is a ModelError", "[checkpoint][malformed]") {
  const std::string bytes = valid_gguf();
  REQUIRE_NOTHROW(GgufFile::parse(bytes, "cut.gguf"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    INFO("cut at " << size << " of " << bytes.size());
    // A copy without spare bytes, so that a sanitizer sees the first read past the end.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE_THROWS_AS(GgufFile::parse({cut.data(), cut.size()}, "cut.gguf"), ModelError);
  }
}

TEST_CASE("safetensors: a file cut at any byte is a ModelError", "[checkpoint][malformed]") {
  const std::string bytes = valid_safetensors();
  REQUIRE_NOTHROW(SafetensorsFile::parse(bytes, "cut.safetensors"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    INFO("cut at " << size << " of " << bytes.size());
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE_THROWS_AS(SafetensorsFile::parse({cut.data(), cut.size()}, "cut.safetensors"), ModelError);
  }
}

/// Parses a spoiled copy and, where it still parses, reads every tensor.
template <typename File>
int count_refused(const std::string& bytes, std::uint64_t n_changes) {
  RngStream random(RngKey("malformed 1"));
  int refused = 0;
  for (std::uint64_t round = 0; round < n_changes; ++round) {
    std::vector<char> spoiled(bytes.begin(), bytes.end());
    const std::uint64_t n_bytes = 1 + random.uniform_index(3);
    for (std::uint64_t i = 0; i < n_bytes; ++i) {
      spoiled[random.uniform_index(spoiled.size())] = static_cast<char>(random.uniform_index(256));
    }
    try {
      const File file = File::parse({spoiled.data(), spoiled.size()}, "spoiled");
      for (const auto& tensor : file.tensors()) {
        std::int64_t n = 1;
        for (const std::int64_t size : tensor.shape) n *= size;
        std::vector<float> values(static_cast<std::size_t>(n));
        dequantize_range(*tensor.type, tensor.data, 0, n, values.data());
      }
    } catch (const ModelError&) {
      ++refused;
    }
  }
  return refused;
}

TEST_CASE("gguf: changed bytes are refused or still read inside the file", "[checkpoint][malformed]") {
  CHECK(count_refused<GgufFile>(valid_gguf(), 4000) > 100);
}

TEST_CASE("safetensors: changed bytes are refused or still read inside the file", "[checkpoint][malformed]") {
  CHECK(count_refused<SafetensorsFile>(valid_safetensors(), 4000) > 100);
}

TEST_CASE("open_checkpoint: a spoiled GGUF on disk gives an error of the program, nothing else",
          "[checkpoint][malformed]") {
  const test::TemporaryFolder folder("spoiled");
  const std::string bytes = valid_gguf();
  RngStream random(RngKey("malformed 2"));
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string spoiled = bytes;
    // The head of the file: metadata and tensor list.
    spoiled[random.uniform_index(std::min<std::uint64_t>(bytes.size(), 900))] =
        static_cast<char>(random.uniform_index(256));
    const std::string path = folder.write("m.gguf", spoiled);
    try {
      const auto checkpoint = open_checkpoint(path);
      for (const TensorInfo& tensor : checkpoint->tensors()) {
        std::int64_t n = 1;
        for (const std::int64_t size : tensor.shape) n *= size;
        std::vector<float> values(static_cast<std::size_t>(n));
        checkpoint->read_float32(tensor.name, 0, tensor.shape.front(), values.data());
      }
    } catch (const ModelError&) {
      ++refused;
    }
  }
  CHECK(refused > 30);
}

}  // namespace
}  // namespace fathom::checkpoint
