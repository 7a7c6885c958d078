#pragma once
// Buckets of T5's relative bias.

#include <cstdint>

namespace fathom::rope {

enum class BucketDirection { kCausal, kBidirectional };

struct T5Buckets {
  std::int64_t n_buckets = 32;
  std::int64_t max_distance = 128;  ///< tokens; farther ones share the last bucket
  BucketDirection direction = BucketDirection::kCausal;
};

/// \throws ConfigError  unless at least two buckets a direction lie below max_distance (causal: n_buckets / 2 <
/// max_distance and n_buckets >= 2; bidirectional: an even n_buckets >= 4, half of each).
void check_t5_buckets(const T5Buckets& buckets);

/// Bucket of a pair (Raffel et al. 2020, section 2.1). With e = n_buckets / 2 and n = max(q - k, 0):
///
///   n                                                              for n < e
///   min(e + floor(ln(n/e) / ln(max_distance/e) (n_buckets - e)), n_buckets - 1)   otherwise
///
/// Bidirectional: half the buckets for each direction, n = |q - k|, the upper half where the key comes after the query.
///
/// \param relative_position  key position - query position.
std::int64_t t5_bucket(std::int64_t relative_position, const T5Buckets& buckets);

/// First distance (query - key) of the last bucket: from there on all distances look alike. 113 for 32 buckets, 128.
std::int64_t t5_resolution_end(const T5Buckets& buckets);

}  // namespace fathom::rope
