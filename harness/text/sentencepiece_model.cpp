// The protocol buffer of a tokenizer.model, of which four messages and a dozen fields matter.

#include <fmt/format.h>

#include <cstring>

#include "harness/core/error.h"
#include "harness/text/sentencepiece_tokenizer.h"

namespace fathom::text {
namespace {

struct ProtoField {
  std::uint32_t number = 0;
  std::uint32_t wire = 0;
  std::uint64_t value = 0;  ///< of wire types 0, 1 and 5
  std::string_view bytes;   ///< of wire type 2
};

/// Reads the fields of one message; never past its end.
class ProtoReader {
 public:
  ProtoReader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  bool next(ProtoField& field) {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t tag = varint();
    field = {static_cast<std::uint32_t>(tag >> 3U), static_cast<std::uint32_t>(tag & 7U), 0, {}};
    if (tag >> 3U == 0 || tag >> 32U != 0) fail(fmt::format("a field has number {}", tag >> 3U));
    switch (field.wire) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.value = fixed(8);
        break;
      case 2: {
        const std::uint64_t size = varint();
        if (size > bytes_.size() - at_) {
          fail(fmt::format("field {} claims {} bytes, {} are left", field.number, size, bytes_.size() - at_));
        }
        field.bytes = bytes_.substr(at_, size);
        at_ += size;
        break;
      }
      case 5:
        field.value = fixed(4);
        break;
      default:
        fail(fmt::format("field {} has wire type {}", field.number, field.wire));
    }
    return true;
  }

  /// \throws DataError  unless the field is of that wire type.
  void expect(const ProtoField& field, std::uint32_t wire, std::string_view name) const {
    if (field.wire != wire) fail(fmt::format("{} has wire type {}, not {}", name, field.wire, wire));
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw DataError(fmt::format("{}: not a SentencePiece model: {}", where_, problem));
  }

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail("it ends inside a number");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    fail("a number has more than ten bytes");
  }

  std::uint64_t fixed(std::size_t size) {
    if (size > bytes_.size() - at_) fail("it ends inside a number");
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, size);  // little-endian, as this program's files are
    at_ += size;
    return value;
  }

  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
};

void read_piece(std::string_view bytes, const std::string& where, SentencePieceVocabulary& vocabulary) {
  ProtoReader reader(bytes, where);
  std::string piece;
  float score = 0;
  std::int32_t type = 1;
  for (ProtoField field; reader.next(field);) {
    if (field.number == 1) {
      reader.expect(field, 2, "a piece's text");
      piece = std::string(field.bytes);
    } else if (field.number == 2) {
      reader.expect(field, 5, "a piece's score");
      const auto bits = static_cast<std::uint32_t>(field.value);
      std::memcpy(&score, &bits, sizeof(score));
    } else if (field.number == 3) {
      reader.expect(field, 0, "a piece's type");
      if (field.value < 1 || field.value > 6) reader.fail(fmt::format("a piece has type {}", field.value));
      type = static_cast<std::int32_t>(field.value);
    }
  }
  if (piece.empty()) reader.fail(fmt::format("piece {} has no text", vocabulary.pieces.size()));
  vocabulary.pieces.push_back(std::move(piece));
  vocabulary.scores.push_back(score);
  vocabulary.types.push_back(type);
}

/// Ids of special tokens; -1 = none, and the defaults of the format where a field is absent.
struct TrainerIds {
  std::int64_t unknown = 0, bos = 1, eos = 2;
};

void read_trainer(std::string_view bytes, const std::string& where, SentencePieceVocabulary& vocabulary,
                  TrainerIds& ids) {
  ProtoReader reader(bytes, where);
  const auto signed_id = [](std::uint64_t value) {
    return static_cast<std::int64_t>(static_cast<std::int32_t>(value));
  };
  for (ProtoField field; reader.next(field);) {
    switch (field.number) {
      case 3:
        reader.expect(field, 0, "trainer_spec.model_type");
        if (field.value != 1 && field.value != 2) {
          reader.fail(fmt::format("trainer_spec.model_type = {} is not supported; supported: 1 (unigram), 2 (BPE)",
                                  field.value));
        }
        vocabulary.kind =
            field.value == 1 ? SentencePieceVocabulary::Kind::kUnigram : SentencePieceVocabulary::Kind::kBpe;
        break;
      case 24:
        if (field.value != 0) reader.fail("trainer_spec.treat_whitespace_as_suffix is not supported");
        break;
      case 40:
        ids.unknown = signed_id(field.value);
        break;
      case 41:
        ids.bos = signed_id(field.value);
        break;
      case 42:
        ids.eos = signed_id(field.value);
        break;
      default:
        break;
    }
  }
}

void read_normalizer(std::string_view bytes, const std::string& where, SentencePieceVocabulary& vocabulary) {
  ProtoReader reader(bytes, where);
  for (ProtoField field; reader.next(field);) {
    switch (field.number) {
      case 2:
        reader.expect(field, 2, "normalizer_spec.precompiled_charsmap");
        vocabulary.charsmap = std::string(field.bytes);
        break;
      case 3:
        if (field.value == 0) vocabulary.blank_prefix = std::nullopt;
        break;
      case 4:
        vocabulary.collapses_blanks = field.value != 0;
        break;
      case 5:
        if (field.value == 0) reader.fail("normalizer_spec.escape_whitespaces = false is not supported");
        break;
      default:
        break;
    }
  }
}

std::optional<TokenId> named_id(std::int64_t id, std::int32_t type, const SentencePieceVocabulary& vocabulary) {
  if (id < 0 || static_cast<std::size_t>(id) >= vocabulary.pieces.size()) return std::nullopt;
  if (vocabulary.types[static_cast<std::size_t>(id)] != type) return std::nullopt;
  return static_cast<TokenId>(id);
}

}  // namespace

SentencePieceVocabulary read_sentencepiece_model(std::string_view bytes, const std::string& where) {
  SentencePieceVocabulary vocabulary;
  vocabulary.kind = SentencePieceVocabulary::Kind::kUnigram;  // the format's defaults
  vocabulary.collapses_blanks = true;
  vocabulary.blank_prefix = PrefixPlace::kTextAndAfterSpecial;
  vocabulary.finds_user_pieces_late = true;
  TrainerIds ids;
  ProtoReader reader(bytes, where);
  for (ProtoField field; reader.next(field);) {
    if (field.number > 3) continue;
    reader.expect(field, 2, "a message of the model");
    if (field.number == 1) read_piece(field.bytes, where, vocabulary);
    if (field.number == 2) read_trainer(field.bytes, where, vocabulary, ids);
    if (field.number == 3) read_normalizer(field.bytes, where, vocabulary);
  }
  if (vocabulary.pieces.empty()) reader.fail("it holds no pieces");
  vocabulary.unknown = named_id(ids.unknown, 2, vocabulary);
  vocabulary.bos = named_id(ids.bos, 3, vocabulary);
  vocabulary.eos = named_id(ids.eos, 3, vocabulary);
  return vocabulary;
}

}  // namespace fathom::text
