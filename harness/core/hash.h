#pragma once
// Stable hashes of canonical text (XXH3). The values are stored in databases and never change.

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  bool operator==(const Hash128& other) const { return high == other.high && low == other.low; }
  bool operator!=(const Hash128& other) const { return !(*this == other); }
};

std::uint64_t hash64(std::string_view bytes);
Hash128 hash128(std::string_view bytes);

/// 32 lower-case hexadecimal digits.
std::string to_hex(const Hash128& hash);
/// `to_hex(hash128(bytes))`: the form in which hashes are stored.
std::string hash_hex(std::string_view bytes);

/// Hash of something too large to hold at once (a weight file, a text folder): the same value as hash128 of the
/// concatenated pieces.
class StreamingHash {
 public:
  StreamingHash();
  ~StreamingHash();
  StreamingHash(const StreamingHash&) = delete;
  StreamingHash& operator=(const StreamingHash&) = delete;
  void update(std::string_view bytes);
  Hash128 digest() const;

 private:
  void* state_;
};

}  // namespace fathom
