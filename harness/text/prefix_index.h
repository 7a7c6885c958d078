#pragma once
// Which of some texts another one begins with.

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fathom::text {

class PrefixIndex {
 public:
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
    values_.emplace(std::move(text), value);
  }
  bool empty() const { return values_.empty(); }

  /// The longest one that stands at `at`, which is inside the text, and whose value `accepts`.
  template <typename Accepts>
  Found longest(std::string_view text, std::size_t at, Accepts accepts) const {
    for (const std::size_t size : sizes_[static_cast<unsigned char>(text[at])]) {
      if (size > text.size() - at) continue;
      const auto found = values_.find(std::string(text.substr(at, size)));
      if (found != values_.end() && accepts(found->second)) return {size, found->second};
    }
    return {};
  }
  Found longest(std::string_view text, std::size_t at) const {
    return longest(text, at, [](std::size_t) { return true; });
  }

 private:
  std::unordered_map<std::string, std::size_t> values_;
  std::array<std::vector<std::size_t>, 256> sizes_;  // of the texts by first byte, longest first
};

}  // namespace fathom::text
