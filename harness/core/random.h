#pragma once
// Keyed, counter-based randomness: a stream is a pure function of its key, whatever was drawn elsewhere before.
// No <random> distributions and no std::shuffle: their results differ between standard libraries.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/hash.h"

namespace fathom {

/// Names a random stream by text, for example a sample key plus a stream name. Equal text, equal stream, on every
/// platform.
class RngKey {
 public:
  explicit RngKey(std::string_view text) : hash_(hash128(text)), text_(text) {}
  /// Key of `text() + "|" + part`.
  RngKey child(std::string_view part) const;
  RngKey child(std::int64_t number) const { return child(std::to_string(number)); }
  const Hash128& hash() const { return hash_; }
  const std::string& text() const { return text_; }

 private:
  Hash128 hash_;
  std::string text_;
};

/// One block of Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
struct PhiloxBlock {
  std::uint32_t word[4];
};
PhiloxBlock philox4x32(const PhiloxBlock& counter, std::uint64_t key);

/// Uniform draws from one key. Copyable; a copy continues at the same place.
class RngStream {
 public:
  explicit RngStream(const RngKey& key) : key_(key.hash()) {}

  std::uint64_t next_u64();
  /// Uniform in 0..bound-1 by multiply and reject (Lemire 2019): exact for every bound. bound >= 1.
  std::uint64_t uniform_index(std::uint64_t bound);
  /// Uniform in low..high, both included.
  std::int64_t uniform_int(std::int64_t low, std::int64_t high);
  /// Uniform in [0, 1) with 53 bits.
  double uniform_double();
  /// Standard normal by Box-Muller (two uniforms a draw).
  double normal();

  /// Fisher-Yates from the end.
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[uniform_index(i)]);
    }
  }
  /// `count` different indices of 0..n-1 in draw order: the first `count` steps of a Fisher-Yates shuffle from the end,
  /// stored sparsely, so n may be huge. count <= n.
  std::vector<std::uint64_t> sample_without_replacement(std::uint64_t n, std::uint64_t count);

 private:
  Hash128 key_;
  std::uint64_t counter_ = 0;
  std::uint64_t spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace fathom
