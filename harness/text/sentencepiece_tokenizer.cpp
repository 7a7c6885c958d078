#include "harness/text/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/byte_spelling.h"
#include "harness/text/pipeline_tokenizer.h"

namespace fathom::text {
namespace {

constexpr std::string_view kBlankMark = "\xE2\x96\x81";  // "▁"

enum PieceType : std::int32_t { kOrdinary = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

void check_lists(const SentencePieceVocabulary& vocabulary, const std::string& where) {
  const std::size_t n = vocabulary.pieces.size();
  if (vocabulary.scores.size() != n || vocabulary.types.size() != n) {
    throw DataError(fmt::format("{}: {} scores and {} types for {} tokens", where, vocabulary.scores.size(),
                                vocabulary.types.size(), n));
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(vocabulary.scores[i])) {
      throw DataError(fmt::format("{}: token {} has score {}, which is no number", where, i, vocabulary.scores[i]));
    }
    if (vocabulary.types[i] < kOrdinary || vocabulary.types[i] > kByte) {
      throw DataError(fmt::format("{}: token {} has type {}; known are 1 to 6", where, i, vocabulary.types[i]));
    }
  }
  if (vocabulary.unknown && (*vocabulary.unknown < 0 || static_cast<std::size_t>(*vocabulary.unknown) >= n)) {
    throw DataError(fmt::format("{}: the unknown token {} is outside the {} tokens", where, *vocabulary.unknown, n));
  }
}

/// Sorts the pieces by what finds them: the model, the search for added tokens, or the fallback.
struct SortedPieces {
  ScoredVocabulary model;
  std::vector<AddedToken> added;
  std::vector<std::pair<std::string, TokenId>> frozen;
  std::vector<std::string> texts;
  std::optional<TokenId> first_unknown;
};

SortedPieces sort_pieces(const SentencePieceVocabulary& vocabulary, const std::string& where) {
  SortedPieces out;
  const std::size_t n = vocabulary.pieces.size();
  out.model.pieces.resize(n);
  out.model.scores.assign(vocabulary.scores.begin(), vocabulary.scores.end());
  out.model.sums = vocabulary.finds_user_pieces_late ? ScoreSums::kFloat : ScoreSums::kDouble;
  out.model.unused.resize(n, false);
  out.model.user_defined.resize(n, false);
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string& piece = vocabulary.pieces[i];
    out.texts.push_back(replace_all(piece, kBlankMark, " "));
    switch (vocabulary.types[i]) {
      case kControl:
        out.texts.back() = piece;
        out.added.push_back({id, piece, true, false, false, false, false});
        break;
      case kUserDefined:
        if (vocabulary.finds_user_pieces_late && vocabulary.kind == SentencePieceVocabulary::Kind::kUnigram) {
          out.model.user_defined[i] = true;
          out.model.pieces[i] = piece;
        } else if (vocabulary.finds_user_pieces_late && !piece.empty()) {
          out.frozen.emplace_back(piece, id);
        } else {
          out.added.push_back({id, out.texts.back(), false, false, false, false, false});
        }
        break;
      case kByte: {
        const auto byte = byte_of_hex_token(piece);
        if (!byte) throw DataError(fmt::format("{}: byte token {} is spelled '{}', not '<0xNN>'", where, i, piece));
        out.model.fallback.bytes[static_cast<unsigned char>(byte->front())] = id;
        out.texts.back() = *byte;
        break;
      }
      case kUnknown:
        if (!out.first_unknown) out.first_unknown = id;
        break;
      default:
        out.model.unused[i] = vocabulary.types[i] == kUnused;
        out.model.pieces[i] = piece;
    }
  }
  return out;
}

Normalizer make_normalizer(const SentencePieceVocabulary& vocabulary, const std::string& where) {
  if (vocabulary.finds_user_pieces_late) {
    normalize::SentencePieceRules rules{
        vocabulary.charsmap, {}, vocabulary.collapses_blanks, vocabulary.blank_prefix, std::string(kBlankMark)};
    for (std::size_t i = 0; i < vocabulary.pieces.size(); ++i) {
      if (vocabulary.types[i] == kUserDefined) rules.shielded.push_back(vocabulary.pieces[i]);
    }
    return Normalizer({normalize::sentencepiece(std::move(rules), where)});
  }
  std::vector<NormalizerStep> steps;
  if (!vocabulary.charsmap.empty()) steps.push_back(normalize::charsmap(vocabulary.charsmap, where));
  if (vocabulary.collapses_blanks) steps.push_back(normalize::collapse_blanks());
  if (vocabulary.blank_prefix) steps.push_back(normalize::prepend(" ", *vocabulary.blank_prefix));
  steps.push_back(normalize::replace(" ", std::string(kBlankMark)));
  return Normalizer(std::move(steps));
}

std::string canonical_vocabulary(const SentencePieceVocabulary& vocabulary) {
  std::string text = vocabulary.kind == SentencePieceVocabulary::Kind::kBpe ? "bpe" : "unigram";
  text += fmt::format(" unknown {} late {}\n", vocabulary.unknown.value_or(kNoToken),
                      vocabulary.finds_user_pieces_late ? 1 : 0);
  for (std::size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    text += fmt::format("{} {} {}:{}\n", vocabulary.types[i], vocabulary.scores[i], vocabulary.pieces[i].size(),
                        vocabulary.pieces[i]);
  }
  return text;
}

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const SentencePieceVocabulary& vocabulary,
                                                        const std::string& where) {
  check_lists(vocabulary, where);
  SortedPieces sorted = sort_pieces(vocabulary, where);
  sorted.model.fallback.unknown = vocabulary.unknown ? vocabulary.unknown : sorted.first_unknown;
  const bool bpe = vocabulary.kind == SentencePieceVocabulary::Kind::kBpe;
  auto model = bpe ? make_score_model(std::move(sorted.model)) : make_unigram_model(std::move(sorted.model));
  PipelineParts parts{std::move(sorted.added),
                      make_normalizer(vocabulary, where),
                      Normalizer(),
                      Pretokenizer(std::vector<SplitStep>(), where),
                      make_frozen_model(sorted.frozen, std::move(model)),
                      std::move(sorted.texts),
                      vocabulary.blank_prefix,
                      vocabulary.bos,
                      vocabulary.eos,
                      vocabulary.add_bos,
                      vocabulary.add_eos,
                      canonical_vocabulary(vocabulary),
                      bpe && !vocabulary.finds_user_pieces_late ? 1 : 2};
  return make_pipeline_tokenizer(std::move(parts), where);
}

}  // namespace fathom::text
