#include "harness/text/word_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "harness/core/error.h"
#include "harness/core/hash.h"

namespace fathom::text {
namespace {

constexpr std::string_view kWordSeparators = " \t\r\n";
constexpr const char* kWordTokenizerType = "fathom_words";
constexpr std::int64_t kWordTokenizerVersion = 1;

constexpr const char* kSpecialWords[] = {"<pad>", "<bos>", "<eos>", "."};

// The order is part of every trained model; new markers go to the end of the pools, not here.
constexpr const char* kMarkerWords[] = {
    "note",   "ask",  "set",  "code",  "doc",   "by",   "from",  "in",   "of",    "at",  "to",   "get",  "put",
    "before", "next", "most", "copy",  "back",  "long", "sort",  "sum",  "last",  "odd", "even", "poly", "x",
    "is",     "do",   "left", "right", "round", "two",  "three", "then", "after", "+",   "-",    "/",    ";"};

struct WordPool {
  char letter;
  const char* option;  // the name in messages and in tokenizer.json
  std::int64_t VocabularySpec::*size;
  std::int64_t most;
};

// Numbers stand behind the letter, except for digits, which are their own words.
constexpr char kDigitPool = 'd';
constexpr std::array<WordPool, 7> kWordPools{{{'k', "keys", &VocabularySpec::n_keys, 1000000},
                                              {'v', "values", &VocabularySpec::n_values, 1000000},
                                              {'f', "fillers", &VocabularySpec::n_fillers, 1000000},
                                              {'e', "names", &VocabularySpec::n_names, 1000000},
                                              {'c', "cues", &VocabularySpec::n_cues, 1000000},
                                              {'t', "targets", &VocabularySpec::n_targets, 1000000},
                                              {kDigitPool, "digits", &VocabularySpec::n_digits, 10}}};

const WordPool& word_pool(char letter) {
  for (const WordPool& pool : kWordPools) {
    if (pool.letter == letter) return pool;
  }
  FATHOM_CHECK(false, fmt::format("the closed vocabulary has no pool '{}'", letter));
}

// Calls visit(word, end offset) for each word of the text.
template <typename Visit>
void for_each_word(std::string_view text, Visit visit) {
  std::size_t begin = text.find_first_not_of(kWordSeparators);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kWordSeparators, begin), text.size());
    visit(text.substr(begin, end - begin), end);
    begin = text.find_first_not_of(kWordSeparators, end);
  }
}

}  // namespace

WordTokenizer::WordTokenizer(const VocabularySpec& spec, bool add_bos) : spec_(spec), add_bos_(add_bos) {
  for (const char* word : kSpecialWords) words_.emplace_back(word);
  for (const char* word : kMarkerWords) words_.emplace_back(word);
  for (const WordPool& pool : kWordPools) {
    const std::int64_t size = spec.*pool.size;
    if (size < 0 || size > pool.most) {
      throw ConfigError(fmt::format("vocabulary: {} = {} is outside 0..{}", pool.option, size, pool.most));
    }
    for (std::int64_t i = 0; i < size; ++i) {
      words_.push_back(pool.letter == kDigitPool ? std::to_string(i) : pool.letter + std::to_string(i));
    }
  }
  ids_.reserve(words_.size());
  for (std::size_t i = 0; i < words_.size(); ++i) ids_.emplace(words_[i], static_cast<TokenId>(i));
  FATHOM_CHECK(ids_.size() == words_.size(), "two words of the closed vocabulary are the same");
}

std::unique_ptr<WordTokenizer> WordTokenizer::from_json(std::string_view json, const std::string& where) {
  VocabularySpec spec;
  bool add_bos = false;
  std::vector<std::string> words;
  try {
    const auto root = nlohmann::json::parse(json.begin(), json.end());
    const auto type = root.at("type").get<std::string>();
    if (type != kWordTokenizerType) {
      throw DataError(fmt::format("{}: tokenizer type '{}' is not '{}'", where, type, kWordTokenizerType));
    }
    const auto version = root.at("version").get<std::int64_t>();
    if (version != kWordTokenizerVersion) {
      throw DataError(fmt::format("{}: tokenizer version {} is unknown; this build reads {}", where, version,
                                  kWordTokenizerVersion));
    }
    add_bos = root.at("add_bos").get<bool>();
    for (const WordPool& pool : kWordPools) spec.*pool.size = root.at("pools").at(pool.option).get<std::int64_t>();
    words = root.at("words").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: not a word tokenizer: {}", where, error.what()));
  }
  std::unique_ptr<WordTokenizer> tokenizer;
  try {
    tokenizer = std::make_unique<WordTokenizer>(spec, add_bos);
  } catch (const ConfigError& error) {
    throw DataError(fmt::format("{}: {}", where, error.what()));
  }
  if (words != tokenizer->words_) {
    throw DataError(fmt::format("{}: the word list ({} words) is not the one its pool sizes make ({} words)", where,
                                words.size(), tokenizer->words_.size()));
  }
  return tokenizer;
}

bool WordTokenizer::is_word_json(std::string_view json) {
  return json.substr(0, 256).find(kWordTokenizerType) != std::string_view::npos;
}

std::string WordTokenizer::to_json() const {
  nlohmann::ordered_json root;
  root["type"] = kWordTokenizerType;
  root["version"] = kWordTokenizerVersion;
  root["add_bos"] = add_bos_;
  for (const WordPool& pool : kWordPools) root["pools"][pool.option] = spec_.*pool.size;
  root["words"] = words_;
  return root.dump(1) + "\n";
}

TokenIds WordTokenizer::encode(std::string_view text, SpecialTokens specials) const {
  TokenIds ids;
  for_each_word(text, [&](std::string_view word, std::size_t) {
    const TokenId token = id(word);
    if (specials == SpecialTokens::kPlainText && token <= kEos) {
      throw DataError(
          fmt::format("word '{}' is a special token and cannot be plain text in the closed vocabulary", word));
    }
    ids.push_back(token);
  });
  return ids;
}

std::string WordTokenizer::decode(const TokenIds& ids) const {
  std::string text;
  for (const TokenId token : ids) {
    if (!text.empty()) text += ' ';
    text += piece(token);
  }
  return text;
}

std::string WordTokenizer::piece(TokenId id) const {
  FATHOM_CHECK(id >= 0 && id < vocab_size(), fmt::format("token id {} is outside 0..{}", id, vocab_size() - 1));
  return words_[static_cast<std::size_t>(id)];
}

std::vector<std::size_t> WordTokenizer::token_end_offsets(std::string_view text, const TokenIds& ids) const {
  std::vector<std::size_t> ends;
  ends.reserve(ids.size());
  for_each_word(text, [&](std::string_view word, std::size_t end) {
    FATHOM_CHECK(ends.size() < ids.size() && piece(ids[ends.size()]) == word, "the tokens do not spell the text");
    ends.push_back(end);
  });
  FATHOM_CHECK(ends.size() == ids.size(), "the tokens do not spell the text");
  return ends;
}

std::string WordTokenizer::fingerprint() const {
  return hash_hex(to_json());
}

TokenId WordTokenizer::id(std::string_view word) const {
  const auto found = ids_.find(std::string(word));
  if (found == ids_.end()) {
    throw DataError(fmt::format("word '{}' is not in the closed vocabulary of {} words", word, words_.size()));
  }
  return found->second;
}

TokenId WordTokenizer::pool_begin(char pool) const {
  const char wanted = word_pool(pool).letter;
  std::size_t begin = std::size(kSpecialWords) + std::size(kMarkerWords);
  for (const WordPool& each : kWordPools) {
    if (each.letter == wanted) break;
    begin += static_cast<std::size_t>(spec_.*each.size);
  }
  return static_cast<TokenId>(begin);
}

std::int64_t WordTokenizer::pool_size(char pool) const {
  return spec_.*word_pool(pool).size;
}

}  // namespace fathom::text
