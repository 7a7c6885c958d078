#include "harness/text/token_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/core/error.h"

namespace fathom::text {

PieceIndex::PieceIndex(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
  ids_.reserve(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].empty()) ids_.emplace(pieces_[i], static_cast<TokenId>(i));
  }
}

bool FallbackTokens::has_all_bytes_of(std::string_view text) const {
  return std::all_of(text.begin(), text.end(),
                     [this](char c) { return bytes[static_cast<unsigned char>(c)] != kNoToken; });
}

void FallbackTokens::append(std::string_view character, std::size_t first, std::vector<TokenSpan>& out) const {
  if (has_all_bytes_of(character)) {
    for (const char c : character) out.push_back({bytes[static_cast<unsigned char>(c)], 1});
    return;
  }
  if (!unknown) {
    throw DataError(
        fmt::format("'{}' of the text has no token in this model's vocabulary, nor have its bytes", character));
  }
  const auto size_bytes = static_cast<std::uint32_t>(character.size());
  if (fuses_unknown && out.size() > first && out.back().id == *unknown) {
    out.back().size_bytes += size_bytes;
  } else {
    out.push_back({*unknown, size_bytes});
  }
}

}  // namespace fathom::text
