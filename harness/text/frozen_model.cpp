// Pieces that are found before anything is merged, and never merged themselves: SentencePiece's user-defined symbols.

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "harness/text/token_model.h"

namespace fathom::text {
namespace {

class FrozenModel : public TokenModel {
 public:
  FrozenModel(const std::vector<std::pair<std::string, TokenId>>& frozen, std::unique_ptr<TokenModel> rest)
      : rest_(std::move(rest)) {
    for (const auto& [piece, id] : frozen) {
      sizes_[static_cast<unsigned char>(piece.front())].push_back(piece.size());
      ids_.emplace(piece, id);
    }
    for (std::vector<std::size_t>& sizes : sizes_) {
      std::sort(sizes.begin(), sizes.end(), std::greater<>());
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    }
  }

  void encode(std::string_view text, std::vector<TokenSpan>& out) const override {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const TokenSpan found = frozen_at(text, at);
      if (found.size_bytes == 0) {
        ++at;
        continue;
      }
      if (at > begin) rest_->encode(text.substr(begin, at - begin), out);
      out.push_back(found);
      begin = at += found.size_bytes;
    }
    if (begin < text.size()) rest_->encode(text.substr(begin), out);
  }

 private:
  /// The longest one that begins at `at`; of no size if there is none.
  TokenSpan frozen_at(std::string_view text, std::size_t at) const {
    for (const std::size_t size : sizes_[static_cast<unsigned char>(text[at])]) {
      if (size > text.size() - at) continue;
      const auto found = ids_.find(std::string(text.substr(at, size)));
      if (found != ids_.end()) return {found->second, static_cast<std::uint32_t>(size)};
    }
    return {kNoToken, 0};
  }

  std::unique_ptr<TokenModel> rest_;
  std::unordered_map<std::string, TokenId> ids_;
  std::array<std::vector<std::size_t>, 256> sizes_;  // by first byte, longest first
};

}  // namespace

std::unique_ptr<TokenModel> make_frozen_model(const std::vector<std::pair<std::string, TokenId>>& frozen,
                                              std::unique_ptr<TokenModel> rest) {
  if (frozen.empty()) return rest;
  return std::make_unique<FrozenModel>(frozen, std::move(rest));
}

}  // namespace fathom::text
