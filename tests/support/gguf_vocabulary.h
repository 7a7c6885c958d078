#pragma once
// The tokenizer of a GGUF file, read by code that shares nothing with the library's own reader.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/text/bpe_tokenizer.h"
#include "tests/support/catch.h"

namespace fathom::test {

/// Path of a model file in the folder that the environment variable FATHOM_MODELS names.
inline std::string model_path(const std::string& file) {
  const char* folder = std::getenv("FATHOM_MODELS");
  return std::string(folder == nullptr ? "" : folder) + "/" + file;
}

inline bool model_missing(const std::string& file) {
  if (std::filesystem::exists(model_path(file))) return false;
  WARN("SKIPPED: needs " << file << "; set FATHOM_MODELS to its folder");
  return true;
}

/// All metadata as JSON.
class GgufMetadata {
 public:
  explicit GgufMetadata(const std::string& path) : file_(path, std::ios::binary) {
    if (number<std::uint32_t>() != 0x46554747U) throw std::runtime_error("not a GGUF file");
    number<std::uint32_t>();
    number<std::uint64_t>();
    const auto n = number<std::uint64_t>();
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::string key = text();
      values_[key] = value(number<std::uint32_t>());
    }
  }
  const nlohmann::json& at(const std::string& key) const { return values_.at(key); }

  text::BpeVocabulary vocabulary() const {
    text::BpeVocabulary out;
    out.pieces = at("tokenizer.ggml.tokens").get<std::vector<std::string>>();
    out.merges = at("tokenizer.ggml.merges").get<std::vector<std::string>>();
    out.token_types = at("tokenizer.ggml.token_type").get<std::vector<std::int32_t>>();
    out.pretokenizer = at("tokenizer.ggml.pre").get<std::string>();
    out.bos = at("tokenizer.ggml.bos_token_id").get<TokenId>();
    out.eos = at("tokenizer.ggml.eos_token_id").get<TokenId>();
    out.add_bos = at("tokenizer.ggml.add_bos_token").get<bool>();
    return out;
  }

 private:
  template <typename T>
  T number() {
    T out{};
    file_.read(reinterpret_cast<char*>(&out), sizeof(out));
    if (!file_) throw std::runtime_error("GGUF file ends early");
    return out;
  }
  std::string text() {
    std::string out(number<std::uint64_t>(), '\0');
    file_.read(out.data(), static_cast<std::streamsize>(out.size()));
    return out;
  }
  nlohmann::json value(std::uint32_t type) {
    switch (type) {
      case 0:
        return number<std::uint8_t>();
      case 1:
        return number<std::int8_t>();
      case 2:
        return number<std::uint16_t>();
      case 3:
        return number<std::int16_t>();
      case 4:
        return number<std::uint32_t>();
      case 5:
        return number<std::int32_t>();
      case 6:
        return number<float>();
      case 7:
        return number<std::uint8_t>() != 0;
      case 8:
        return text();
      case 9: {
        const auto item = number<std::uint32_t>();
        const auto n = number<std::uint64_t>();
        nlohmann::json items = nlohmann::json::array();
        for (std::uint64_t i = 0; i < n; ++i) items.push_back(value(item));
        return items;
      }
      case 10:
        return number<std::uint64_t>();
      case 11:
        return number<std::int64_t>();
      case 12:
        return number<double>();
      default:
        throw std::runtime_error("unknown GGUF type");
    }
  }

  std::ifstream file_;
  nlohmann::json values_;
};

}  // namespace fathom::test
