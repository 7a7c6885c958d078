#include "harness/text/pipeline_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

// Longer words are rare and would only fill the cache.
constexpr std::size_t kLongestKeptWord = 64;

/// A stretch of the text: an added token, or plain text.
struct TextSegment {
  TokenId added;  ///< kNoToken = plain text
  std::size_t begin, end;
};

bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
         (byte >= 'a' && byte <= 'z');
}

bool is_blank_byte(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

class PipelineTokenizer : public Tokenizer {
 public:
  PipelineTokenizer(PipelineParts parts, const std::string& where);

  TokenIds encode(std::string_view text, SpecialTokens specials) const override;
  std::string decode(const TokenIds& ids) const override;
  std::string piece(TokenId id) const override { return parts_.texts.at(checked(id)); }
  std::vector<std::size_t> token_end_offsets(std::string_view text, const TokenIds& ids) const override;
  std::int64_t vocab_size() const override { return static_cast<std::int64_t>(parts_.texts.size()); }
  std::optional<TokenId> bos() const override { return parts_.bos; }
  std::optional<TokenId> eos() const override { return parts_.eos; }
  bool adds_bos() const override { return parts_.add_bos; }
  bool adds_eos() const override { return parts_.add_eos; }
  std::string fingerprint() const override { return fingerprint_; }

 private:
  struct Encoded {
    TokenIds ids;
    std::vector<std::size_t> ends;  ///< empty unless asked for
  };

  std::size_t checked(TokenId id) const {
    FATHOM_CHECK(id >= 0 && id < vocab_size(), fmt::format("token id {} is outside 0..{}", id, vocab_size() - 1));
    return static_cast<std::size_t>(id);
  }
  void check_ids(const std::string& where) const;
  const AddedToken* added_at(std::string_view text, std::size_t at, SpecialTokens specials) const;
  std::vector<TextSegment> cut(std::string_view text, SpecialTokens specials) const;
  Encoded encode_all(std::string_view text, SpecialTokens specials, Normalizer::Origins origins) const;
  void encode_plain(std::string_view text, std::size_t begin, const SegmentPlace& place, Normalizer::Origins origins,
                    Encoded& out) const;
  std::string make_fingerprint() const;

  PipelineParts parts_;
  std::unordered_map<std::string_view, std::size_t> added_by_content_;  // places in parts_.added
  std::array<std::vector<std::size_t>, 256> added_sizes_;               // of contents by first byte, longest first
  std::set<TokenId> added_ids_;
  std::set<TokenId> special_ids_;
  std::string fingerprint_;
};

PipelineTokenizer::PipelineTokenizer(PipelineParts parts, const std::string& where) : parts_(std::move(parts)) {
  check_ids(where);
  for (std::size_t i = 0; i < parts_.added.size(); ++i) {
    const AddedToken& token = parts_.added[i];
    added_ids_.insert(token.id);
    if (token.special) special_ids_.insert(token.id);
    if (token.content.empty() || !added_by_content_.emplace(token.content, i).second) continue;
    added_sizes_[static_cast<unsigned char>(token.content.front())].push_back(token.content.size());
  }
  for (std::vector<std::size_t>& sizes : added_sizes_) {
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  }
  fingerprint_ = make_fingerprint();
}

void PipelineTokenizer::check_ids(const std::string& where) const {
  if (parts_.texts.empty()) throw DataError(fmt::format("{}: the tokenizer has no tokens", where));
  const auto check = [&](const std::string& what, TokenId id) {
    if (id >= 0 && id < vocab_size()) return;
    throw DataError(fmt::format("{}: {} has id {}, which is outside 0..{}", where, what, id, vocab_size() - 1));
  };
  for (const AddedToken& token : parts_.added) check(fmt::format("added token '{}'", token.content), token.id);
  if (parts_.bos) check("the BOS token", *parts_.bos);
  if (parts_.eos) check("the EOS token", *parts_.eos);
  if (parts_.add_bos && !parts_.bos) {
    throw DataError(fmt::format("{}: BOS is to be added, but no BOS token is named", where));
  }
}

std::string PipelineTokenizer::make_fingerprint() const {
  StreamingHash hash;
  const auto add = [&hash](std::string_view text) {
    hash.update(fmt::format("{}:", text.size()));
    hash.update(text);
  };
  add("fathom/pipeline/1");
  add(parts_.canonical);
  add(parts_.normalizer.canonical());
  add(fmt::format("{} {} {} {}", parts_.bos.value_or(kNoToken), parts_.eos.value_or(kNoToken), parts_.add_bos ? 1 : 0,
                  parts_.add_eos ? 1 : 0));
  for (const AddedToken& token : parts_.added) {
    add(token.content);
    add(fmt::format("{} {} {} {} {}", token.id, token.special ? 1 : 0, token.strips_left ? 1 : 0,
                    token.strips_right ? 1 : 0, token.single_word ? 1 : 0));
  }
  add("texts");
  for (const std::string& text : parts_.texts) add(text);
  return to_hex(hash.digest());
}

const AddedToken* PipelineTokenizer::added_at(std::string_view text, std::size_t at, SpecialTokens specials) const {
  for (const std::size_t size : added_sizes_[static_cast<unsigned char>(text[at])]) {
    if (size > text.size() - at) continue;
    const auto found = added_by_content_.find(text.substr(at, size));
    if (found == added_by_content_.end()) continue;
    const AddedToken& token = parts_.added[found->second];
    if (token.special && specials == SpecialTokens::kPlainText) continue;
    const std::size_t end = at + size;
    if (token.single_word &&
        ((at > 0 && is_word_byte(text[at - 1])) || (end < text.size() && is_word_byte(text[end])))) {
      continue;
    }
    return &token;
  }
  return nullptr;
}

std::vector<TextSegment> PipelineTokenizer::cut(std::string_view text, SpecialTokens specials) const {
  std::vector<TextSegment> segments;
  std::size_t plain = 0;  // where plain text begins that no segment holds yet
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = added_at(text, at, specials);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + token->content.size();
    while (token->strips_left && begin > plain && is_blank_byte(text[begin - 1])) --begin;
    while (token->strips_right && end < text.size() && is_blank_byte(text[end])) ++end;
    if (begin > plain) segments.push_back({kNoToken, plain, begin});
    segments.push_back({token->id, begin, end});
    plain = at = end;
  }
  if (plain < text.size()) segments.push_back({kNoToken, plain, text.size()});
  return segments;
}

PipelineTokenizer::Encoded PipelineTokenizer::encode_all(std::string_view text, SpecialTokens specials,
                                                         Normalizer::Origins origins) const {
  Encoded out;
  SegmentPlace place;
  for (const TextSegment& segment : cut(text, specials)) {
    if (segment.added != kNoToken) {
      out.ids.push_back(segment.added);
      if (origins == Normalizer::Origins::kKeep) out.ends.push_back(segment.end);
      place = {false, special_ids_.count(segment.added) != 0};
      continue;
    }
    encode_plain(text.substr(segment.begin, segment.end - segment.begin), segment.begin, place, origins, out);
    place = {false, false};
  }
  return out;
}

void PipelineTokenizer::encode_plain(std::string_view text, std::size_t begin, const SegmentPlace& place,
                                     Normalizer::Origins origins, Encoded& out) const {
  const NormalizedText normalized = parts_.normalizer.apply(text, place, origins);
  std::vector<TokenSpan> spans;
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known;  // words by their place in spans
  for (const std::string_view word : parts_.pretokenizer.split(normalized.text)) {
    const std::size_t first = spans.size();
    const bool keep = word.size() <= kLongestKeptWord;
    const auto found = keep ? known.find(word) : known.end();
    if (found == known.end()) {
      parts_.model->encode(word, spans);
      if (keep) known.emplace(word, std::pair(first, spans.size()));
    } else {
      for (std::size_t i = found->second.first; i < found->second.second; ++i) {
        const TokenSpan span = spans[i];
        spans.push_back(span);
      }
    }
    if (origins == Normalizer::Origins::kForget) continue;
    auto at = static_cast<std::size_t>(word.data() - normalized.text.data());
    for (std::size_t i = first; i < spans.size(); ++i) {
      at += spans[i].size_bytes;
      out.ends.push_back(begin + (at == 0 ? 0 : normalized.ends[at - 1]));
    }
  }
  for (const TokenSpan& span : spans) out.ids.push_back(span.id);
}

TokenIds PipelineTokenizer::encode(std::string_view text, SpecialTokens specials) const {
  return encode_all(text, specials, Normalizer::Origins::kForget).ids;
}

std::vector<std::size_t> PipelineTokenizer::token_end_offsets(std::string_view text, const TokenIds& ids) const {
  // The ids do not say how special tokens in the text were read.
  for (const SpecialTokens specials : {SpecialTokens::kParse, SpecialTokens::kPlainText}) {
    Encoded encoded = encode_all(text, specials, Normalizer::Origins::kKeep);
    if (encoded.ids == ids) return std::move(encoded.ends);
  }
  FATHOM_CHECK(false, "the tokens do not spell the text");
}

std::string PipelineTokenizer::decode(const TokenIds& ids) const {
  std::string text;
  SegmentPlace place;
  bool begins_segment = true;
  for (const TokenId id : ids) {
    const std::string& piece = parts_.texts[checked(id)];
    const bool added = added_ids_.count(id) != 0;
    const bool drop = parts_.blank_prefix && begins_segment && !added && starts_with(piece, " ") &&
                      place_holds(*parts_.blank_prefix, place);
    text += drop ? piece.substr(1) : piece;
    begins_segment = added;
    place = {false, special_ids_.count(id) != 0};
  }
  return text;
}

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(PipelineParts parts, const std::string& where) {
  return std::make_unique<PipelineTokenizer>(std::move(parts), where);
}

}  // namespace fathom::text
