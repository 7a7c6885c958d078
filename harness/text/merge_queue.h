#pragma once
// Byte-pair merging of one word: the best pair first, the leftmost of equals.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "harness/core/types.h"

namespace fathom::text {

constexpr TokenId kNoToken = -1;
constexpr std::size_t kNoSymbol = static_cast<std::size_t>(-1);

/// Part of a word while it is merged: a doubly linked list that begins at index 0.
struct MergeSymbol {
  TokenId token = kNoToken;
  std::size_t begin = 0;
  std::size_t size_bytes = 0;  ///< 0: taken up by its left neighbour
  std::size_t previous = kNoSymbol, next = kNoSymbol;
};

struct MergeChoice {
  double order;  ///< the smallest is merged first: a rank, or a score's negative
  TokenId merged;
};

/// Appends a symbol to a word's list.
inline void append_symbol(std::vector<MergeSymbol>& symbols, TokenId token, std::size_t begin, std::size_t size_bytes) {
  const std::size_t at = symbols.size();
  if (at > 0) symbols.back().next = at;
  symbols.push_back({token, begin, size_bytes, at == 0 ? kNoSymbol : at - 1, kNoSymbol});
}

/// Merges until no pair has a choice. A heap keeps a word of n symbols at n log n: without it one unbroken megabyte
/// would take hours.
///
/// \param choose  (const MergeSymbol& left, const MergeSymbol& right) -> std::optional<MergeChoice>
template <typename Choose>
void merge_symbols(std::vector<MergeSymbol>& symbols, Choose choose) {
  struct Candidate {
    double order;
    std::size_t left;
    std::size_t size_bytes;  ///< of both; a symbol only ever grows, so another size means a stale candidate
    TokenId merged;
    bool operator<(const Candidate& other) const {
      return order != other.order ? order > other.order : left > other.left;
    }
  };
  std::vector<Candidate> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(storage));
  const auto offer = [&](std::size_t left) {
    if (left == kNoSymbol || symbols[left].next == kNoSymbol) return;
    const MergeSymbol& right = symbols[symbols[left].next];
    const std::optional<MergeChoice> choice = choose(symbols[left], right);
    if (choice) queue.push({choice->order, left, symbols[left].size_bytes + right.size_bytes, choice->merged});
  };
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    MergeSymbol& left = symbols[best.left];
    if (left.size_bytes == 0 || left.next == kNoSymbol) continue;
    MergeSymbol& right = symbols[left.next];
    if (left.size_bytes + right.size_bytes != best.size_bytes) continue;
    left.token = best.merged;
    left.size_bytes = best.size_bytes;
    left.next = right.next;
    right.size_bytes = 0;
    if (left.next != kNoSymbol) symbols[left.next].previous = best.left;
    offer(best.left);
    offer(left.previous);
  }
}

}  // namespace fathom::text
