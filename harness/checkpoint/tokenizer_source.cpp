#include "harness/checkpoint/tokenizer_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "harness/checkpoint/json_reader.h"
#include "harness/checkpoint/mapped_file.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/bpe_tokenizer.h"
#include "harness/text/sentencepiece_tokenizer.h"
#include "harness/text/tokenizer_json.h"
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

/// llama.cpp puts BOS in front of byte-level BPE only if the file says so, or for Llama 3 and Tekken.
bool gguf_adds_bos(const GgufFile& file, std::string_view pretokenizer) {
  return file.flag("tokenizer.ggml.add_bos_token")
      .value_or(pretokenizer == "llama-bpe" || pretokenizer == "llama3" || pretokenizer == "llama-v3" ||
                pretokenizer == "tekken");
}

std::vector<std::string> gguf_tokens(const GgufFile& file) {
  const auto tokens = file.text_list("tokenizer.ggml.tokens");
  if (!tokens) file.fail("tokenizer.ggml.tokens", "is missing");
  return owned_texts(*tokens);
}

/// One a token; all ordinary if the file lists none.
std::vector<std::int32_t> gguf_token_types(const GgufFile& file, std::size_t n_tokens) {
  const auto types = file.integer_list("tokenizer.ggml.token_type");
  if (!types) return std::vector<std::int32_t>(n_tokens, 1);
  if (types->size() != n_tokens) {
    file.fail("tokenizer.ggml.token_type", fmt::format("has {} entries for {} tokens", types->size(), n_tokens));
  }
  std::vector<std::int32_t> out;
  for (const std::int64_t type : *types) {
    if (type < 0 || type > 100) file.fail("tokenizer.ggml.token_type", fmt::format("holds {}", type));
    out.push_back(static_cast<std::int32_t>(type));
  }
  return out;
}

std::unique_ptr<text::Tokenizer> make_gguf_bpe(const GgufFile& file) {
  text::BpeVocabulary vocabulary;
  vocabulary.pieces = gguf_tokens(file);
  const auto merges = file.text_list("tokenizer.ggml.merges");
  if (!merges) file.fail("tokenizer.ggml.merges", "is missing");
  const std::size_t n = vocabulary.pieces.size();
  vocabulary.merges = owned_texts(*merges);
  vocabulary.token_types = gguf_token_types(file, n);
  vocabulary.pretokenizer = std::string(file.text("tokenizer.ggml.pre").value_or("default"));
  vocabulary.bos = gguf_special_token(file, "tokenizer.ggml.bos_token_id", n);
  vocabulary.eos = gguf_special_token(file, "tokenizer.ggml.eos_token_id", n);
  vocabulary.add_bos = gguf_adds_bos(file, vocabulary.pretokenizer);
  return text::make_bpe_tokenizer(vocabulary, file.where());
}

/// The bytes of a list of integers, as a table of replacements is stored.
std::string gguf_bytes(const GgufFile& file, std::string_view key) {
  const auto values = file.integer_list(key);
  std::string bytes;
  for (const std::int64_t value : values.value_or(std::vector<std::int64_t>())) {
    if (value < -128 || value > 255) file.fail(key, fmt::format("holds {}, which is no byte", value));
    bytes += static_cast<char>(value);
  }
  return bytes;
}

/// "llama" is SentencePiece's BPE, "t5" its unigram model. What a file leaves open is as llama.cpp has it.
std::unique_ptr<text::Tokenizer> make_gguf_sentencepiece(const GgufFile& file, bool unigram) {
  text::SentencePieceVocabulary vocabulary;
  vocabulary.kind = unigram ? text::SentencePieceVocabulary::Kind::kUnigram : text::SentencePieceVocabulary::Kind::kBpe;
  vocabulary.pieces = gguf_tokens(file);
  const std::size_t n = vocabulary.pieces.size();
  const auto scores = file.real_list("tokenizer.ggml.scores");
  if (!scores) file.fail("tokenizer.ggml.scores", "is missing");
  if (scores->size() != n) {
    file.fail("tokenizer.ggml.scores", fmt::format("has {} entries for {} tokens", scores->size(), n));
  }
  for (const double score : *scores) vocabulary.scores.push_back(static_cast<float>(score));
  vocabulary.types = gguf_token_types(file, n);
  vocabulary.charsmap = gguf_bytes(file, "tokenizer.ggml.precompiled_charsmap");
  vocabulary.collapses_blanks = file.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  if (file.flag("tokenizer.ggml.add_space_prefix").value_or(true)) {
    vocabulary.blank_prefix = text::PrefixPlace::kEverySegment;
  }
  vocabulary.unknown = gguf_special_token(file, "tokenizer.ggml.unknown_token_id", n);
  vocabulary.bos = gguf_special_token(file, "tokenizer.ggml.bos_token_id", n);
  vocabulary.eos = gguf_special_token(file, "tokenizer.ggml.eos_token_id", n);
  vocabulary.add_bos = file.flag("tokenizer.ggml.add_bos_token").value_or(!unigram && vocabulary.bos.has_value());
  vocabulary.add_eos = file.flag("tokenizer.ggml.add_eos_token").value_or(unigram);
  return text::make_sentencepiece_tokenizer(vocabulary, file.where());
}

}  // namespace

std::unique_ptr<text::Tokenizer> make_gguf_tokenizer(const GgufFile& file) {
  const auto model = file.text("tokenizer.ggml.model");
  if (!model) file.fail("tokenizer.ggml.model", "is missing: the file holds no tokenizer");
  if (*model == "gpt2") return make_gguf_bpe(file);
  if (*model == "llama") return make_gguf_sentencepiece(file, false);
  if (*model == "t5") return make_gguf_sentencepiece(file, true);
  file.fail("tokenizer.ggml.model",
            fmt::format("= '{}' is not supported; supported: gpt2 (byte-level BPE), llama (SentencePiece BPE), t5 "
                        "(SentencePiece unigram)",
                        *model));
}

std::optional<text::ChatTemplate> gguf_chat_template(const GgufFile& file) {
  const auto jinja = file.text("tokenizer.chat_template");
  return jinja ? text::detect_chat_template(*jinja) : std::nullopt;
}

namespace {

/// A special token in tokenizer_config.json: a text, or an object with its content. An empty one is none.
std::optional<std::string> config_token(const JsonObject& config, const char* key) {
  std::optional<std::string> token;
  if (config.is_object(key)) token = config.object(key)->text("content");
  if (config.is_text(key)) token = config.text(key);
  return token && token->empty() ? std::nullopt : token;
}

/// Python writes a number without bounds as Infinity, which is no JSON; none of them is read here.
std::string without_infinities(std::string_view json) {
  std::string out;
  bool in_text = false;
  for (std::size_t at = 0; at < json.size();) {
    const std::string_view rest = json.substr(at);
    std::size_t size = 1;
    if (in_text) {
      if (rest.front() == '\\') size = std::min<std::size_t>(2, rest.size());
      in_text = rest.front() != '"';
    } else {
      in_text = rest.front() == '"';
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"}) {
        if (!starts_with(rest, word)) continue;
        out += "null";
        size = 0;
        at += word.size();
        break;
      }
    }
    out += rest.substr(0, size);
    at += size;
  }
  return out;
}

JsonObject read_tokenizer_config(const std::string& path) {
  return JsonObject::parse(without_infinities(read_text_file(path)), path, kTokenizerConfigMaxDepth);
}

/// added_tokens_decoder: objects by id.
std::vector<text::AddedToken> config_added_tokens(const JsonObject& config) {
  std::vector<text::AddedToken> tokens;
  if (!config.is_object("added_tokens_decoder")) return tokens;
  const JsonObject list = *config.object("added_tokens_decoder");
  for (const std::string& key : list.keys()) {
    const bool is_id = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!is_id) list.fail(key, "is no token id");
    if (!list.is_object(key)) list.fail(key, "is not an object");
    const JsonObject entry = *list.object(key);
    text::AddedToken token;
    token.id = std::stoi(key);
    token.content = entry.required_text("content");
    token.special = entry.flag("special").value_or(false);
    token.strips_left = entry.flag("lstrip").value_or(false);
    token.strips_right = entry.flag("rstrip").value_or(false);
    token.single_word = entry.flag("single_word").value_or(false);
    token.normalized = entry.flag("normalized").value_or(!token.special);
    tokens.push_back(std::move(token));
  }
  // Keys come sorted as texts. The order of ids decides which of two tokens has a text that both have.
  std::sort(tokens.begin(), tokens.end(),
            [](const text::AddedToken& a, const text::AddedToken& b) { return a.id < b.id; });
  return tokens;
}

/// Classes that build their frame from add_bos_token and add_eos_token.
bool flags_win(const JsonObject& config) {
  if (!config.is_text("tokenizer_class")) return false;
  const std::string name = *config.text("tokenizer_class");
  for (const char* family : {"Llama", "CodeLlama", "Gemma", "Cohere"}) {
    if (starts_with(name, family)) return true;
  }
  return false;
}

/// From tokenizer_config.json, and for the ids from config.json.
text::SpecialTokenPolicy folder_policy(const std::string& folder) {
  text::SpecialTokenPolicy policy;
  const std::string tokenizer_path = folder + "/tokenizer_config.json";
  if (std::filesystem::exists(tokenizer_path)) {
    const JsonObject config = read_tokenizer_config(tokenizer_path);
    policy.bos = config_token(config, "bos_token");
    policy.eos = config_token(config, "eos_token");
    policy.add_bos = config.flag("add_bos_token");
    policy.add_eos = config.flag("add_eos_token");
    policy.flags_win = flags_win(config);
    policy.added = config_added_tokens(config);
  }
  const std::string model_path = folder + "/config.json";
  if (std::filesystem::exists(model_path)) {
    const JsonObject config = JsonObject::parse(read_text_file(model_path), model_path, kTokenizerConfigMaxDepth);
    const auto id = [&config](const char* key) -> std::optional<TokenId> {
      if (!config.is_integer(key)) return std::nullopt;  // a list of several ends of turn is not an EOS
      const std::int64_t value = *config.integer(key);
      return value >= 0 && value <= INT32_MAX ? std::optional(static_cast<TokenId>(value)) : std::nullopt;
    };
    policy.bos_id = id("bos_token_id");
    policy.eos_id = id("eos_token_id");
  }
  return policy;
}

/// The file does not say what is put around a sequence: as Llama's and T5's classes have it unless told otherwise.
std::unique_ptr<text::Tokenizer> make_model_file_tokenizer(const std::string& path,
                                                           const text::SpecialTokenPolicy& policy) {
  text::SentencePieceVocabulary vocabulary = text::read_sentencepiece_model(read_text_file(path), path);
  const bool bpe = vocabulary.kind == text::SentencePieceVocabulary::Kind::kBpe;
  vocabulary.add_bos = policy.add_bos.value_or(bpe && vocabulary.bos.has_value());
  vocabulary.add_eos = policy.add_eos.value_or(!bpe && vocabulary.eos.has_value());
  return text::make_sentencepiece_tokenizer(vocabulary, path);
}

}  // namespace

std::unique_ptr<text::Tokenizer> make_folder_tokenizer(const std::string& folder) {
  const std::string path = folder + "/tokenizer.json";
  const std::string model_path = folder + "/tokenizer.model";
  if (std::filesystem::exists(path)) {
    const std::string json = read_text_file(path);
    if (text::WordTokenizer::is_word_json(json)) return text::WordTokenizer::from_json(json, path);
    return text::read_tokenizer_json(json, folder_policy(folder), path);
  }
  if (std::filesystem::exists(model_path)) return make_model_file_tokenizer(model_path, folder_policy(folder));
  throw ModelError(
      fmt::format("model: {} holds neither tokenizer.json nor tokenizer.model; put the model's own beside "
                  "its weights",
                  folder));
}

std::optional<text::ChatTemplate> folder_chat_template(const std::string& folder) {
  const std::string jinja_path = folder + "/chat_template.jinja";
  if (std::filesystem::exists(jinja_path)) return text::detect_chat_template(read_text_file(jinja_path));
  const std::string config_path = folder + "/tokenizer_config.json";
  if (!std::filesystem::exists(config_path)) return std::nullopt;
  const JsonObject config = read_tokenizer_config(config_path);
  // A list of named templates is not looked into: which of them a run means is not known here.
  if (!config.is_text("chat_template")) return std::nullopt;
  return text::detect_chat_template(*config.text("chat_template"));
}

}  // namespace fathom::checkpoint
