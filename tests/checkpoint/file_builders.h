#pragma once
// Small checkpoint files made byte by byte, so that a test can spoil any part of them.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/error.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_builder.h"

namespace fathom::test {

/// The message of the ModelError that an action throws; a mark if it throws none.
template <typename Action>
std::string model_error(Action action) {
  try {
    action();
  } catch (const ModelError& error) {
    return error.what();
  }
  return "no ModelError";
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("fathom_test_" + name + "_XXXXXX")) {
    std::string pattern = path_.string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string write(const std::string& name, std::string_view content) const {
    const std::string path = (path_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::filesystem::path path_;
};

inline std::string safetensors_bytes(std::string_view header, std::size_t data_bytes) {
  std::string out;
  append_number<std::uint64_t>(out, header.size());
  out += header;
  for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
  return out;
}

/// A llama of one layer: width 4, 2 heads of 2, 1 KV head, feed-forward 3, 5 tokens. Every value is its place in the
/// file.
class TinyLlama {
 public:
  /// Metadata that every test needs; more may be added before tensors().
  GgufBuilder& metadata() {
    return builder_.text("general.architecture", "llama")
        .uint32("llama.block_count", 1)
        .uint32("llama.context_length", 64)
        .uint32("llama.embedding_length", 4)
        .uint32("llama.feed_forward_length", 3)
        .uint32("llama.attention.head_count", 2)
        .uint32("llama.attention.head_count_kv", 1)
        .float32("llama.attention.layer_norm_rms_epsilon", 0.5f)
        .float32("llama.rope.freq_base", 16.0f);
  }
  GgufBuilder& tensors() {
    add("token_embd.weight", {4, 5});
    add("output_norm.weight", {4});
    add("blk.0.attn_norm.weight", {4});
    add("blk.0.attn_q.weight", {4, 4});
    add("blk.0.attn_k.weight", {4, 2});
    add("blk.0.attn_v.weight", {4, 2});
    add("blk.0.attn_output.weight", {4, 4});
    add("blk.0.ffn_norm.weight", {4});
    add("blk.0.ffn_gate.weight", {4, 3});
    add("blk.0.ffn_up.weight", {4, 3});
    add("blk.0.ffn_down.weight", {3, 4});
    return builder_;
  }
  GgufBuilder& whole() {
    metadata();
    return tensors();
  }
  GgufBuilder& builder() { return builder_; }

 private:
  void add(std::string_view name, const std::vector<std::uint64_t>& dimensions) {
    std::uint64_t n = 1;
    for (const std::uint64_t dimension : dimensions) n *= dimension;
    std::vector<float> values;
    for (std::uint64_t i = 0; i < n; ++i) values.push_back(next_++);
    builder_.floats(name, dimensions, values);
  }

  GgufBuilder builder_;
  float next_ = 0;
};

}  // namespace fathom::test
