// Damaged files: whatever byte is missing or changed, the answer is an error or a valid file, never a crash.

#include <algorithm>
#include <filesystem>

#include "harness/checkpoint/checkpoint.h"
#include "harness/checkpoint/gguf_file.h"
#include "harness/checkpoint/inspect.h"
#include "harness/checkpoint/safetensors_file.h"
#include "harness/core/random.h"
#include "tests/checkpoint/config_builders.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/shared_dir.h"

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
        if (tensor.type->dequantize == nullptr) continue;
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

/// Values that a hand or a converter may leave in a config.json.
nlohmann::json odd_value(RngStream& random) {
  const std::vector<nlohmann::json> values = {nullptr,
                                              true,
                                              false,
                                              0,
                                              -1,
                                              1,
                                              2,
                                              3,
                                              63,
                                              1e300,
                                              -0.5,
                                              "",
                                              "8",
                                              "yarn",
                                              {},
                                              nlohmann::json::array(),
                                              {1, 0, 1},
                                              {"full_attention"},
                                              nlohmann::json::object(),
                                              INT64_MAX,
                                              INT64_MIN,
                                              1e-30};
  return values[random.uniform_index(values.size())];
}

/// Changes one to three values, some of them inside a nested object.
nlohmann::json spoil_config(nlohmann::json config, RngStream& random) {
  const std::uint64_t n = 1 + random.uniform_index(3);
  for (std::uint64_t i = 0; i < n; ++i) {
    nlohmann::json* object = &config;
    for (int depth = 0; depth < 3 && !object->empty(); ++depth) {
      auto entry = object->begin();
      std::advance(entry, static_cast<std::ptrdiff_t>(random.uniform_index(object->size())));
      if (entry->is_object() && random.uniform_index(4) != 0) {
        object = &*entry;
        continue;
      }
      if (random.uniform_index(5) == 0) {
        object->erase(entry);
      } else {
        *entry = odd_value(random);
      }
      break;
    }
  }
  return config;
}

TEST_CASE("hf positions: a spoiled config.json gives an error of the program or a usable answer",
          "[checkpoint][malformed]") {
  FATHOM_NEEDS_SHARED("fixtures/tiny/llama/config.json");
  RngStream random(RngKey("malformed config"));
  int refused = 0, resolved = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::shared_path("fixtures/tiny"))) {
    for (const char* name : {"/config.json", "/config_v4.json"}) {
      const std::string path = entry.path().string() + name;
      if (!std::filesystem::exists(path)) continue;
      const nlohmann::json config = test::read_json_file(path);
      for (int round = 0; round < 150; ++round) {
        const nlohmann::json spoiled = spoil_config(config, random);
        INFO(spoiled.dump());
        try {
          const DecoderConfig got = test::resolve(spoiled);
          inspect_json(got, 1000);
          describe_position(got);
          ++resolved;
        } catch (const ModelError&) {
          ++refused;
        }
      }
    }
  }
  CHECK(refused > 1000);
  CHECK(resolved > 1000);
}

}  // namespace
}  // namespace fathom::checkpoint
