#include "harness/checkpoint/tokenizer_source.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/checkpoint/json_reader.h"
#include "harness/checkpoint/mapped_file.h"
#include "harness/core/error.h"
#include "harness/text/bpe_tokenizer.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::checkpoint {
namespace {

constexpr int kTokenizerConfigMaxDepth = 16;

std::vector<std::string> owned_texts(const std::vector<std::string_view>& views) {
  return {views.begin(), views.end()};
}

std::optional<TokenId> gguf_special_token(const GgufFile& file, const std::string& key, std::size_t n_tokens) {
  const auto id = file.integer(key);
  if (!id) return std::nullopt;
  if (*id < 0 || static_cast<std::size_t>(*id) >= n_tokens) {
    file.fail(key, fmt::format("= {} is outside the {} tokens", *id, n_tokens));
  }
  return static_cast<TokenId>(*id);
}

/// llama.cpp puts BOS in front of byte-level BPE only if the file says so or the pre-tokenizer is Llama 3's.
bool gguf_adds_bos(const GgufFile& file, std::string_view pretokenizer) {
  return file.flag("tokenizer.ggml.add_bos_token")
      .value_or(pretokenizer == "llama-bpe" || pretokenizer == "llama3" || pretokenizer == "llama-v3");
}

}  // namespace

std::unique_ptr<text::Tokenizer> make_gguf_tokenizer(const GgufFile& file) {
  const auto model = file.text("tokenizer.ggml.model");
  if (!model) file.fail("tokenizer.ggml.model", "is missing: the file holds no tokenizer");
  if (*model != "gpt2") {
    file.fail("tokenizer.ggml.model", fmt::format("= '{}' is not supported; supported: gpt2 (byte-level BPE)", *model));
  }
  const auto tokens = file.text_list("tokenizer.ggml.tokens");
  const auto merges = file.text_list("tokenizer.ggml.merges");
  if (!tokens) file.fail("tokenizer.ggml.tokens", "is missing");
  if (!merges) file.fail("tokenizer.ggml.merges", "is missing");
  const auto types = file.integer_list("tokenizer.ggml.token_type");
  if (types && types->size() != tokens->size()) {
    file.fail("tokenizer.ggml.token_type", fmt::format("has {} entries for {} tokens", types->size(), tokens->size()));
  }
  text::BpeVocabulary vocabulary;
  vocabulary.pieces = owned_texts(*tokens);
  vocabulary.merges = owned_texts(*merges);
  if (types) {
    for (const std::int64_t type : *types) vocabulary.token_types.push_back(static_cast<std::int32_t>(type));
  } else {
    vocabulary.token_types.assign(tokens->size(), 1);
  }
  vocabulary.pretokenizer = std::string(file.text("tokenizer.ggml.pre").value_or("default"));
  vocabulary.bos = gguf_special_token(file, "tokenizer.ggml.bos_token_id", tokens->size());
  vocabulary.eos = gguf_special_token(file, "tokenizer.ggml.eos_token_id", tokens->size());
  vocabulary.add_bos = gguf_adds_bos(file, vocabulary.pretokenizer);
  return text::make_bpe_tokenizer(std::move(vocabulary), file.where());
}

std::optional<text::ChatTemplate> gguf_chat_template(const GgufFile& file) {
  const auto jinja = file.text("tokenizer.chat_template");
  return jinja ? text::detect_chat_template(*jinja) : std::nullopt;
}

std::unique_ptr<text::Tokenizer> make_folder_tokenizer(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  return text::WordTokenizer::from_json(read_text_file(path), path);
}

std::optional<text::ChatTemplate> folder_chat_template(const std::string& folder) {
  const std::string jinja_path = folder + "/chat_template.jinja";
  if (std::filesystem::exists(jinja_path)) return text::detect_chat_template(read_text_file(jinja_path));
  const std::string config_path = folder + "/tokenizer_config.json";
  if (!std::filesystem::exists(config_path)) return std::nullopt;
  const JsonObject config = JsonObject::parse(read_text_file(config_path), config_path, kTokenizerConfigMaxDepth);
  // A list of named templates is not looked into: which of them a run means is not known here.
  if (!config.is_text("chat_template")) return std::nullopt;
  return text::detect_chat_template(*config.text("chat_template"));
}

}  // namespace fathom::checkpoint
