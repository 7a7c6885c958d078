#pragma once
// Which of some texts another one begins with.

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fathom::text {

/// Moves, but does not copy: its table refers to its texts.
class PrefixIndex {
 public:
  PrefixIndex() = default;
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;
  PrefixIndex(PrefixIndex&&) = default;
  PrefixIndex& operator=(PrefixIndex&&) = default;
  ~PrefixIndex() = default;

  struct Found {
    std::size_t size_bytes = 0;  ///< 0 = none
    std::size_t value = 0;
  };

  /// Of equal texts the first counts; one of no size is never found.
  void add(std::string text, std::size_t value) {
    if (text.empty()) return;
    std::vector<std::size_t>& sizes = sizes_[static_cast<unsigned char>(text.front())];
    const auto place = std::lower_bound(sizes.begin(), sizes.end(), text.size(), std::greater<>());
    if (place == sizes.end() || *place != text.size()) sizes.insert(place, text.size());
    values_.emplace(texts_.emplace_back(std::move(text)), value);
  }
  bool empty() const { return values_.empty(); }

  /// The longest one that stands at `at`, which is inside the text, and whose value `accepts`.
  template <typename Accepts>
  Found longest(std::string_view text, std::size_t at, Accepts accepts) const {
    for (const std::size_t size : sizes_[static_cast<unsigned char>(text[at])]) {
      if (size > text.size() - at) continue;
      const auto found = values_.find(text.substr(at, size));
      if (found != values_.end() && accepts(found->second)) return {size, found->second};
    }
    return {};
  }
  Found longest(std::string_view text, std::size_t at) const {
    return longest(text, at, [](std::size_t) { return true; });
  }

 private:
  std::deque<std::string> texts_;  // stay where they are
  std::unordered_map<std::string_view, std::size_t> values_;
  std::array<std::vector<std::size_t>, 256> sizes_;  // of the texts by first byte, longest first
};

}  // namespace fathom::text
