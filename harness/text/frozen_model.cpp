// Pieces that are found before anything is merged, and never merged themselves: SentencePiece's user-defined symbols.

#include <utility>

#include "harness/text/prefix_index.h"
#include "harness/text/token_model.h"

namespace fathom::text {
namespace {

class FrozenModel : public TokenModel {
 public:
  FrozenModel(const std::vector<std::pair<std::string, TokenId>>& frozen, std::unique_ptr<TokenModel> rest)
      : rest_(std::move(rest)) {
    for (const auto& [piece, id] : frozen) pieces_.add(piece, static_cast<std::size_t>(id));
  }

  void encode(std::string_view text, std::vector<TokenSpan>& out) const override {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
      const PrefixIndex::Found found = pieces_.longest(text, at);
      if (found.size_bytes == 0) {
        ++at;
        continue;
      }
      if (at > begin) rest_->encode(text.substr(begin, at - begin), out);
      out.push_back({static_cast<TokenId>(found.value), static_cast<std::uint32_t>(found.size_bytes)});
      begin = at += found.size_bytes;
    }
    if (begin < text.size()) rest_->encode(text.substr(begin), out);
  }

 private:
  std::unique_ptr<TokenModel> rest_;
  PrefixIndex pieces_;  // values are ids
};

}  // namespace

std::unique_ptr<TokenModel> make_frozen_model(const std::vector<std::pair<std::string, TokenId>>& frozen,
                                              std::unique_ptr<TokenModel> rest) {
  if (frozen.empty()) return rest;
  return std::make_unique<FrozenModel>(frozen, std::move(rest));
}

}  // namespace fathom::text
