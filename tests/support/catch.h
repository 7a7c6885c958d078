#pragma once
// Catch2 version 2 (Debian 12) or 3 (Debian 13); tests stay in the common subset.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>

namespace Catch::Matchers {
/// Version 3's name; there `Contains` is about ranges.
inline auto ContainsSubstring(const std::string& text) {
  return Contains(text);
}
}  // namespace Catch::Matchers
#endif
