#include "harness/core/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "harness/core/error.h"

namespace fathom {

std::uint64_t hash64(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Hash128 hash128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::string to_hex(const Hash128& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

std::string hash_hex(std::string_view bytes) {
  return to_hex(hash128(bytes));
}

StreamingHash::StreamingHash() : state_(XXH3_createState()) {
  FATHOM_CHECK(state_ != nullptr, "XXH3_createState");
  XXH3_128bits_reset(static_cast<XXH3_state_t*>(state_));
}

StreamingHash::~StreamingHash() {
  XXH3_freeState(static_cast<XXH3_state_t*>(state_));
}

void StreamingHash::update(std::string_view bytes) {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}

Hash128 StreamingHash::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(static_cast<const XXH3_state_t*>(state_));
  return {hash.high64, hash.low64};
}

}  // namespace fathom
