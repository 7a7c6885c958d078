#include "harness/text/pipeline_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/added_token_search.h"

namespace fathom::text {
namespace {

// Longer words are rare and would only fill the cache.
constexpr std::size_t kLongestKeptWord = 64;

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
  Encoded encode_all(std::string_view text, SpecialTokens specials, Normalizer::Origins origins) const;
  SegmentPlace behind(TokenId added) const { return {false, special_ids_.count(added) != 0}; }
  /// What both searches need to know.
  struct EncodeMode {
    SpecialTokens specials;
    Normalizer::Origins origins;
  };
  void append_added(TokenId id, std::size_t end, const EncodeMode& mode, Encoded& out) const;
  void encode_plain(std::string_view text, std::size_t begin, const SegmentPlace& place, const EncodeMode& mode,
                    Encoded& out) const;
  void encode_words(NormalizedText text, std::size_t begin, const SegmentPlace& place, Encoded& out) const;
  std::string make_fingerprint() const;

  PipelineParts parts_;
  AddedTokenSearch in_text_;
  AddedTokenSearch in_normalized_;
  std::set<TokenId> added_ids_;
  std::set<TokenId> special_ids_;
  std::string fingerprint_;
};

PipelineTokenizer::PipelineTokenizer(PipelineParts parts, const std::string& where) : parts_(std::move(parts)) {
  check_ids(where);
  // Normalised, two tokens may be the same text; special ones come first.
  for (const bool special : {true, false}) {
    for (const AddedToken& token : parts_.added) {
      if (token.special != special) continue;
      added_ids_.insert(token.id);
      if (special) special_ids_.insert(token.id);
      if (token.normalized) {
        in_normalized_.add(parts_.normalizer.apply(token.content, {}, Normalizer::Origins::kForget).text, token);
      } else {
        in_text_.add(token.content, token);
      }
    }
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
  const bool first_version = parts_.version == 1;
  add(fmt::format("fathom/pipeline/{}", parts_.version));
  add(parts_.canonical);
  add(parts_.normalizer.canonical());
  if (!first_version) add(parts_.rewriter.canonical());
  add(fmt::format("{} {} {} {}", parts_.bos.value_or(kNoToken), parts_.eos.value_or(kNoToken), parts_.add_bos ? 1 : 0,
                  parts_.add_eos ? 1 : 0));
  for (const AddedToken& token : parts_.added) {
    add(token.content);
    add(fmt::format("{} {} {} {} {}", token.id, token.special ? 1 : 0, token.strips_left ? 1 : 0,
                    token.strips_right ? 1 : 0, token.single_word ? 1 : 0));
    if (!first_version) add(token.normalized ? "normalized" : "as it stands");
  }
  add("texts");
  for (const std::string& text : parts_.texts) add(text);
  return to_hex(hash.digest());
}

void PipelineTokenizer::append_added(TokenId id, std::size_t end, const EncodeMode& mode, Encoded& out) const {
  out.ids.push_back(id);
  if (mode.origins == Normalizer::Origins::kForget) return;
  // A token that stands in white space which the one before it took ends where that one ends.
  out.ends.push_back(out.ends.empty() ? end : std::max(end, out.ends.back()));
}

PipelineTokenizer::Encoded PipelineTokenizer::encode_all(std::string_view text, SpecialTokens specials,
                                                         Normalizer::Origins origins) const {
  Encoded out;
  SegmentPlace place;
  const EncodeMode mode{specials, origins};
  for (const TextSegment& segment : in_text_.cut(text, specials)) {
    if (segment.added != kNoToken) {
      append_added(segment.added, segment.end, mode, out);
      place = behind(segment.added);
      continue;
    }
    encode_plain(text.substr(segment.begin, segment.end - segment.begin), segment.begin, place, mode, out);
    place = {false, false};
  }
  return out;
}

void PipelineTokenizer::encode_plain(std::string_view text, std::size_t begin, const SegmentPlace& place,
                                     const EncodeMode& mode, Encoded& out) const {
  NormalizedText normalized = parts_.normalizer.apply(text, place, mode.origins);
  if (in_normalized_.empty()) {
    encode_words(std::move(normalized), begin, place, out);
    return;
  }
  const auto origin = [&](std::size_t at) {
    return mode.origins == Normalizer::Origins::kKeep ? begin + source_offset(normalized, at) : 0;
  };
  SegmentPlace here = place;
  for (const TextSegment& segment : in_normalized_.cut(normalized.text, mode.specials)) {
    if (segment.added != kNoToken) {
      append_added(segment.added, origin(segment.end), mode, out);
      here = behind(segment.added);
      continue;
    }
    encode_words(slice(normalized, segment.begin, segment.end), origin(segment.begin), here, out);
    here = {false, false};
  }
}

void PipelineTokenizer::encode_words(NormalizedText text, std::size_t begin, const SegmentPlace& place,
                                     Encoded& out) const {
  const bool keeps_origins = !text.ends.empty();
  parts_.rewriter.apply(text, place);
  std::vector<TokenSpan> spans;
  std::unordered_map<std::string_view, std::pair<std::size_t, std::size_t>> known;  // words by their place in spans
  for (const std::string_view word : parts_.pretokenizer.split(text.text)) {
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
    if (!keeps_origins) continue;
    auto at = static_cast<std::size_t>(word.data() - text.text.data());
    for (std::size_t i = first; i < spans.size(); ++i) {
      at += spans[i].size_bytes;
      const std::size_t end = begin + source_offset(text, at);
      out.ends.push_back(out.ends.empty() ? end : std::max(end, out.ends.back()));
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
    place = behind(id);
  }
  return text;
}

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(PipelineParts parts, const std::string& where) {
  return std::make_unique<PipelineTokenizer>(std::move(parts), where);
}

}  // namespace fathom::text
