#include "harness/text/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/byte_spelling.h"
#include "harness/text/merge_queue.h"
#include "harness/text/pretokenizer.h"

namespace fathom::text {
namespace {

constexpr std::int32_t kOrdinaryToken = 1;
constexpr std::int32_t kControlToken = 3;
constexpr std::int32_t kUserToken = 4;
constexpr std::int32_t kByteToken = 6;
// Longer words are rare and would only fill the cache.
constexpr std::size_t kLongestCachedWord = 64;

struct BpeMerge {
  std::uint32_t rank;
  TokenId merged;
};

std::uint64_t merge_key(TokenId left, TokenId right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U) | static_cast<std::uint32_t>(right);
}

class BpeTokenizer : public Tokenizer {
 public:
  BpeTokenizer(const BpeVocabulary& vocabulary, const std::string& where);

  TokenIds encode(std::string_view text, SpecialTokens specials) const override;
  std::string decode(const TokenIds& ids) const override;
  std::string piece(TokenId id) const override { return bytes_.at(checked(id)); }
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(bytes_.size()); }
  std::optional<TokenId> bos() const override { return bos_; }
  std::optional<TokenId> eos() const override { return eos_; }
  bool adds_bos() const override { return add_bos_; }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  /// Words seen in this call, by their place in the ids already written.
  using WordCache = std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>>;

  void add_pieces(const BpeVocabulary& vocabulary, const std::string& where);
  void add_merges(const BpeVocabulary& vocabulary, const std::string& where);
  std::size_t checked(TokenId id) const {
    FATHOM_CHECK(id >= 0 && id < vocab_size(), fmt::format("token id {} is outside 0..{}", id, vocab_size() - 1));
    return static_cast<std::size_t>(id);
  }
  const std::string* special_at(std::string_view text, std::size_t at, TokenId& id) const;
  void encode_plain(std::string_view text, WordCache& cache, TokenIds& ids) const;
  void encode_word(std::string_view word, TokenIds& ids) const;

  std::vector<std::string> bytes_;                             // by id
  std::unordered_map<std::string_view, TokenId> id_of_bytes_;  // ordinary tokens; keys point into bytes_
  std::array<TokenId, 256> id_of_byte_{};
  std::unordered_map<std::uint64_t, BpeMerge> merges_;
  std::array<std::vector<TokenId>, 256> specials_;  // by first byte, longest first
  Pretokenizer pretokenizer_;
  std::optional<TokenId> bos_, eos_;
  bool add_bos_;
  std::string fingerprint_;
};

std::string bpe_fingerprint(const BpeVocabulary& vocabulary) {
  StreamingHash hash;
  const auto add = [&hash](std::string_view text) {
    hash.update(fmt::format("{}:", text.size()));
    hash.update(text);
  };
  add("fathom/bpe/1");
  add(vocabulary.pretokenizer);
  add(fmt::format("{} {} {}", vocabulary.bos.value_or(kNoToken), vocabulary.eos.value_or(kNoToken),
                  vocabulary.add_bos ? 1 : 0));
  for (const std::string& piece : vocabulary.pieces) add(piece);
  add("types");
  for (const std::int32_t type : vocabulary.token_types) add(std::to_string(type));
  add("merges");
  for (const std::string& merge : vocabulary.merges) add(merge);
  return to_hex(hash.digest());
}

BpeTokenizer::BpeTokenizer(const BpeVocabulary& vocabulary, const std::string& where)
    : pretokenizer_(vocabulary.pretokenizer, where),
      bos_(vocabulary.bos),
      eos_(vocabulary.eos),
      add_bos_(vocabulary.add_bos) {
  if (vocabulary.pieces.empty()) throw DataError(fmt::format("{}: the tokenizer has no tokens", where));
  if (!vocabulary.token_types.empty() && vocabulary.token_types.size() != vocabulary.pieces.size()) {
    throw DataError(fmt::format("{}: {} token types for {} tokens", where, vocabulary.token_types.size(),
                                vocabulary.pieces.size()));
  }
  for (const auto& [name, id] : {std::pair("BOS", bos_), std::pair("EOS", eos_)}) {
    if (id && (*id < 0 || static_cast<std::size_t>(*id) >= vocabulary.pieces.size())) {
      throw DataError(fmt::format("{}: {} token {} is outside 0..{}", where, name, *id, vocabulary.pieces.size() - 1));
    }
  }
  if (add_bos_ && !bos_) throw DataError(fmt::format("{}: BOS is to be added, but no BOS token is named", where));
  fingerprint_ = bpe_fingerprint(vocabulary);
  add_pieces(vocabulary, where);
  add_merges(vocabulary, where);
}

void BpeTokenizer::add_pieces(const BpeVocabulary& vocabulary, const std::string& where) {
  id_of_byte_.fill(kNoToken);
  bytes_.reserve(vocabulary.pieces.size());  // id_of_bytes_ points into the strings
  for (std::size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    const std::string& piece = vocabulary.pieces[i];
    const auto id = static_cast<TokenId>(i);
    const std::int32_t type = vocabulary.token_types.empty() ? kOrdinaryToken : vocabulary.token_types[i];
    std::optional<std::string> bytes;
    if (type == kOrdinaryToken) bytes = bytes_of_spelling(piece);
    if (type == kByteToken) {
      bytes = byte_of_hex_token(piece);
      if (!bytes) throw DataError(fmt::format("{}: byte token {} is spelled '{}', not '<0xNN>'", where, i, piece));
    }
    // Spelled in other characters, a token is its own text; no merge leads to it.
    bytes_.push_back(bytes.value_or(piece));
    if (bytes && !bytes->empty()) {
      id_of_bytes_.emplace(bytes_.back(), id);
      if (bytes->size() == 1) {
        TokenId& known = id_of_byte_[static_cast<unsigned char>(bytes->front())];
        if (known == kNoToken || type == kOrdinaryToken) known = id;
      }
    }
    if ((type == kControlToken || type == kUserToken) && !piece.empty()) {
      specials_[static_cast<unsigned char>(piece.front())].push_back(id);
    }
  }
  for (std::vector<TokenId>& list : specials_) {
    std::stable_sort(list.begin(), list.end(), [this](TokenId a, TokenId b) {
      return bytes_[static_cast<std::size_t>(a)].size() > bytes_[static_cast<std::size_t>(b)].size();
    });
  }
}

void BpeTokenizer::add_merges(const BpeVocabulary& vocabulary, const std::string& where) {
  merges_.reserve(vocabulary.merges.size());
  for (std::size_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string_view merge = vocabulary.merges[rank];
    const auto blank = merge.find(' ');
    const auto id_of = [&](std::string_view spelling) {
      const auto bytes = bytes_of_spelling(spelling);
      const auto found = bytes ? id_of_bytes_.find(*bytes) : id_of_bytes_.end();
      return found == id_of_bytes_.end() ? kNoToken : found->second;
    };
    if (blank == std::string_view::npos || blank == 0 || blank + 1 == merge.size()) {
      throw DataError(fmt::format("{}: merge {} is '{}', not two pieces with a blank between", where, rank, merge));
    }
    const std::string_view left = merge.substr(0, blank);
    const std::string_view right = merge.substr(blank + 1);
    const BpeMerge entry{static_cast<std::uint32_t>(rank), id_of(std::string(left).append(right))};
    const TokenId left_id = id_of(left);
    const TokenId right_id = id_of(right);
    if (left_id == kNoToken || right_id == kNoToken || entry.merged == kNoToken) {
      throw DataError(fmt::format("{}: merge {} '{}' names a piece that is no token", where, rank, merge));
    }
    merges_.emplace(merge_key(left_id, right_id), entry);
  }
}

const std::string* BpeTokenizer::special_at(std::string_view text, std::size_t at, TokenId& id) const {
  for (const TokenId candidate : specials_[static_cast<unsigned char>(text[at])]) {
    const std::string& spelling = bytes_[static_cast<std::size_t>(candidate)];
    if (text.compare(at, spelling.size(), spelling) != 0) continue;
    id = candidate;
    return &spelling;
  }
  return nullptr;
}

TokenIds BpeTokenizer::encode(std::string_view text, SpecialTokens specials) const {
  TokenIds ids;
  WordCache cache;
  std::size_t begin = 0;
  if (specials == SpecialTokens::kParse) {
    for (std::size_t at = 0; at < text.size();) {
      TokenId id = kNoToken;
      const std::string* spelling = special_at(text, at, id);
      if (spelling == nullptr) {
        ++at;
        continue;
      }
      encode_plain(text.substr(begin, at - begin), cache, ids);
      ids.push_back(id);
      begin = at += spelling->size();
    }
  }
  encode_plain(text.substr(begin), cache, ids);
  return ids;
}

void BpeTokenizer::encode_plain(std::string_view text, WordCache& cache, TokenIds& ids) const {
  if (text.empty()) return;
  for (const std::string_view word : pretokenizer_.split(text)) {
    if (word.size() > kLongestCachedWord) {
      encode_word(word, ids);
      continue;
    }
    const auto [known, is_new] = cache.try_emplace(word, 0, 0);
    if (is_new) {
      const std::size_t first = ids.size();
      encode_word(word, ids);
      known->second = {first, ids.size()};
    } else {
      for (std::size_t i = known->second.first; i < known->second.second; ++i) ids.push_back(ids[i]);
    }
  }
}

void BpeTokenizer::encode_word(std::string_view word, TokenIds& ids) const {
  if (pretokenizer_.takes_whole_words()) {
    const auto found = id_of_bytes_.find(word);
    if (found != id_of_bytes_.end()) {
      ids.push_back(found->second);
      return;
    }
  }
  std::vector<MergeSymbol> symbols;
  symbols.reserve(word.size());
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    if (id_of_byte_[byte] == kNoToken) {
      throw DataError(fmt::format("byte 0x{:02X} of the text '{}' has no token in this model's vocabulary",
                                  static_cast<unsigned>(byte), word));
    }
    append_symbol(symbols, id_of_byte_[byte], i, 1);
  }
  merge_symbols(symbols, [this](const MergeSymbol& left, const MergeSymbol& right) -> std::optional<MergeChoice> {
    const auto found = merges_.find(merge_key(left.token, right.token));
    if (found == merges_.end()) return std::nullopt;
    return MergeChoice{static_cast<double>(found->second.rank), found->second.merged};
  });
  for (std::size_t i = 0; i != kNoSymbol; i = symbols[i].next) ids.push_back(symbols[i].token);
}

std::string BpeTokenizer::decode(const TokenIds& ids) const {
  std::string text;
  for (const TokenId id : ids) text += bytes_[checked(id)];
  return text;
}

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(const BpeVocabulary& vocabulary, const std::string& where) {
  return std::make_unique<BpeTokenizer>(vocabulary, where);
}

}  // namespace fathom::text
