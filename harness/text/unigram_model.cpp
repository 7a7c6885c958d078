// SentencePiece's unigram model.

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "harness/core/error.h"
#include "harness/text/token_model.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

constexpr double kUnknownPenalty = 10.0;  // below the worst piece, as SentencePiece has it

/// Sorted spellings, narrowed byte by byte to those that a text begins with.
class PrefixSearch {
 public:
  explicit PrefixSearch(const std::vector<std::string>& pieces) : pieces_(pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (!pieces[i].empty()) sorted_.push_back(static_cast<TokenId>(i));
    }
    // Of equal spellings the first id counts: it is sorted first, and later ones are dropped.
    std::stable_sort(sorted_.begin(), sorted_.end(), [this](TokenId a, TokenId b) { return spelled(a) < spelled(b); });
    sorted_.erase(
        std::unique(sorted_.begin(), sorted_.end(), [this](TokenId a, TokenId b) { return spelled(a) == spelled(b); }),
        sorted_.end());
  }

  /// Calls found(id, size) for every piece that `text` begins with, the shortest first.
  template <typename Found>
  void for_each_prefix(std::string_view text, Found found) const {
    auto begin = sorted_.begin();
    auto end = sorted_.end();
    for (std::size_t depth = 0; depth < text.size() && begin != end; ++depth) {
      const auto byte = static_cast<unsigned char>(text[depth]);
      // Spellings in [begin, end) share `depth` bytes; one that is no longer stands first.
      begin = std::lower_bound(begin, end, byte, [&](TokenId id, unsigned char wanted) {
        return spelled(id).size() <= depth || byte_at(id, depth) < wanted;
      });
      end = std::upper_bound(begin, end, byte,
                             [&](unsigned char wanted, TokenId id) { return wanted < byte_at(id, depth); });
      if (begin != end && spelled(*begin).size() == depth + 1) found(*begin, depth + 1);
    }
  }

 private:
  const std::string& spelled(TokenId id) const { return pieces_[static_cast<std::size_t>(id)]; }
  unsigned char byte_at(TokenId id, std::size_t at) const { return static_cast<unsigned char>(spelled(id)[at]); }

  const std::vector<std::string>& pieces_;
  std::vector<TokenId> sorted_;
};

class UnigramModel : public TokenModel {
 public:
  explicit UnigramModel(ScoredVocabulary vocabulary)
      : pieces_(without_unused(std::move(vocabulary.pieces), vocabulary.unused)),
        scores_(std::move(vocabulary.scores)),
        sums_(vocabulary.sums),
        fallback_(vocabulary.fallback),
        search_(pieces_) {
    FATHOM_CHECK(scores_.size() == pieces_.size(), "one score a piece");
    double worst = std::numeric_limits<double>::max();
    double best = 0;  // of scores that are all negative the library takes the smallest float above zero
    const auto is_user_defined = [&](std::size_t i) {
      return i < vocabulary.user_defined.size() && vocabulary.user_defined[i];
    };
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].empty() || is_user_defined(i)) continue;
      worst = std::min(worst, scores_[i]);
      best = std::max(best, scores_[i]);
    }
    unknown_score_ = rounded(worst - kUnknownPenalty);
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      if (is_user_defined(i)) scores_[i] = rounded(static_cast<double>(pieces_[i].size()) * best - 0.1);
    }
  }

  void encode(std::string_view text, std::vector<TokenSpan>& out) const override {
    std::vector<Node> nodes(text.size() + 1);  // by where they end
    nodes[0].reached = true;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t character = decode_utf8(text, at).size_bytes;
      bool has_single = false;
      search_.for_each_prefix(text.substr(at), [&](TokenId id, std::size_t size) {
        offer(nodes, at, size, id, scores_[static_cast<std::size_t>(id)]);
        has_single = has_single || size == character;
      });
      if (!has_single) offer(nodes, at, character, kNoToken, unknown_score_);
      at += character;
    }
    append_best(text, nodes, out);
  }

 private:
  struct Node {
    bool reached = false;
    double score = 0;
    std::size_t begin = 0;
    TokenId id = kNoToken;
  };

  static std::vector<std::string> without_unused(std::vector<std::string> pieces, const std::vector<bool>& unused) {
    for (std::size_t i = 0; i < unused.size() && i < pieces.size(); ++i) {
      if (unused[i]) pieces[i].clear();
    }
    return pieces;
  }

  double rounded(double sum) const {
    return sums_ == ScoreSums::kFloat ? static_cast<double>(static_cast<float>(sum)) : sum;
  }

  /// Rounded before it is compared: of sums that differ by less than a float's last digit the first stays.
  void offer(std::vector<Node>& nodes, std::size_t begin, std::size_t size, TokenId id, double score) const {
    const double sum = rounded(score + nodes[begin].score);
    Node& end = nodes[begin + size];
    if (end.reached && sum <= end.score) return;
    end = {true, sum, begin, id};
  }

  void append_best(std::string_view text, const std::vector<Node>& nodes, std::vector<TokenSpan>& out) const {
    std::vector<std::size_t> ends;
    for (std::size_t end = text.size(); end > 0; end = nodes[end].begin) ends.push_back(end);
    std::reverse(ends.begin(), ends.end());
    const std::size_t first = out.size();
    for (const std::size_t end : ends) {
      const Node& node = nodes[end];
      if (node.id != kNoToken) {
        out.push_back({node.id, static_cast<std::uint32_t>(end - node.begin)});
      } else {
        fallback_.append(text.substr(node.begin, end - node.begin), first, out);
      }
    }
  }

  std::vector<std::string> pieces_;  // by id; empty for those that cannot be found
  std::vector<double> scores_;
  ScoreSums sums_;
  FallbackTokens fallback_;
  PrefixSearch search_;  ///< refers to pieces_
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram_model(ScoredVocabulary vocabulary) {
  return std::make_unique<UnigramModel>(std::move(vocabulary));
}

}  // namespace fathom::text
