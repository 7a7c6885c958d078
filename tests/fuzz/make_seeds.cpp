// Writes small valid files for the fuzzers to start from.
//
//   fuzz_seeds FOLDER      makes FOLDER/gguf, safetensors, tokenizer_json, tokenizer_model

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/checkpoint/file_builders.h"

namespace {

std::string base64_bytes(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned value = 0, n_bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    value = (value << 6U) | static_cast<unsigned>(digits.find(c));
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>((value >> n_bits) & 0xFFU);
  }
  return bytes;
}

std::string list_of(std::uint32_t type, const std::string& values, std::uint64_t n) {
  std::string bytes;
  fathom::test::append_number(bytes, type);
  fathom::test::append_number(bytes, n);
  return bytes + values;
}

/// A model with a tokenizer; the tensor holds one block of every quantised type.
std::string gguf_seed(const std::string& tokenizer) {
  fathom::test::TinyLlama llama;
  fathom::test::GgufBuilder& builder = llama.metadata();
  builder.text("tokenizer.ggml.model", tokenizer)
      .text("tokenizer.ggml.pre", "gpt-2")
      .text_list("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>", "<0x0A>"})
      .text_list("tokenizer.ggml.merges", {"a b"})
      .uint32_list("tokenizer.ggml.token_type", {1, 1, 1, 3, 6})
      .raw("tokenizer.ggml.scores", 9, list_of(6, std::string(20, '\0'), 5))
      .raw("tokenizer.ggml.precompiled_charsmap", 9, list_of(0, std::string("\4\0\0\0\0\0\0\0a", 10), 10))
      .uint32("tokenizer.ggml.bos_token_id", 3)
      .float32("llama.rope.scaling.factor", 4)
      .text("llama.rope.scaling.type", "yarn")
      .flag("tokenizer.ggml.add_space_prefix", 1);
  fathom::test::GgufBuilder& whole = llama.tensors();
  const struct {
    std::uint32_t type;
    std::uint64_t values;
    std::size_t bytes;
  } kTypes[] = {{2, 32, 18},    {3, 32, 20},    {6, 32, 22},    {7, 32, 24},    {8, 32, 34}, {10, 256, 84},
                {11, 256, 110}, {12, 256, 144}, {13, 256, 176}, {14, 256, 210}, {1, 1, 2},   {30, 1, 2}};
  for (const auto& type : kTypes) {
    whole.tensor("q" + std::to_string(type.type), {type.values}, type.type, std::string(type.bytes, '\x35'));
  }
  return whole.bytes();
}

void write_seed(const std::string& folder, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  for (const char* tokenizer : {"gpt2", "llama", "t5"}) write_seed(folder + "/gguf", tokenizer, gguf_seed(tokenizer));
  write_seed(folder + "/safetensors", "two",
             fathom::test::safetensors_bytes(
                 R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                 R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}})",
                 22));
  std::ifstream in(std::string(FATHOM_TEST_DIR) + "/golden/tokenizers.json");
  const nlohmann::json golden = nlohmann::json::parse(in);
  for (const nlohmann::json& entry : golden["tokenizers"]) {
    const std::string name = entry["name"];
    if (entry["kind"] == "model") {
      write_seed(folder + "/tokenizer_model", name, base64_bytes(entry["model_base64"]));
      continue;
    }
    // A few merges are enough: small seeds are changed in the places that matter.
    nlohmann::json json = nlohmann::json::parse(entry["json"].get<std::string>());
    if (json["model"].contains("merges")) {
      auto& merges = json["model"]["merges"];
      while (merges.size() > 8) merges.erase(merges.size() - 1);
    }
    write_seed(folder + "/tokenizer_json", name, json.dump());
  }
  return 0;
}
