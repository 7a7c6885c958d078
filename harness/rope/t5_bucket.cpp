#include "harness/rope/t5_bucket.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"

namespace fathom::rope {
namespace {

std::int64_t buckets_per_direction(const T5Buckets& buckets) {
  return buckets.direction == BucketDirection::kBidirectional ? buckets.n_buckets / 2 : buckets.n_buckets;
}

std::int64_t bucket_of_distance(std::int64_t distance, std::int64_t n_buckets, std::int64_t max_distance) {
  const std::int64_t exact = n_buckets / 2;
  if (distance < exact) return distance;
  const auto e = static_cast<double>(exact);
  const double octaves = std::log(static_cast<double>(distance) / e) / std::log(static_cast<double>(max_distance) / e);
  const auto beyond = static_cast<std::int64_t>(octaves * static_cast<double>(n_buckets - exact));
  return std::min(exact + beyond, n_buckets - 1);
}

}  // namespace

void check_t5_buckets(const T5Buckets& buckets) {
  const bool both = buckets.direction == BucketDirection::kBidirectional;
  const std::int64_t least = both ? 4 : 2;
  if (buckets.n_buckets < least || (both && buckets.n_buckets % 2 != 0)) {
    throw ConfigError(fmt::format("t5: n_buckets = {} must be {} at least {}", buckets.n_buckets,
                                  both ? "an even number of" : "a number of", least));
  }
  const std::int64_t exact = buckets_per_direction(buckets) / 2;
  if (buckets.max_distance <= exact) {
    throw ConfigError(
        fmt::format("t5: max_distance = {} must be above {}, up to which n_buckets = {} gives every "
                    "distance a bucket of its own",
                    buckets.max_distance, exact, buckets.n_buckets));
  }
}

std::int64_t t5_bucket(std::int64_t relative_position, const T5Buckets& buckets) {
  const std::int64_t n_buckets = buckets_per_direction(buckets);
  if (buckets.direction == BucketDirection::kCausal) {
    return bucket_of_distance(std::max<std::int64_t>(-relative_position, 0), n_buckets, buckets.max_distance);
  }
  const std::int64_t offset = relative_position > 0 ? n_buckets : 0;
  return offset + bucket_of_distance(std::abs(relative_position), n_buckets, buckets.max_distance);
}

std::int64_t t5_resolution_end(const T5Buckets& buckets) {
  const std::int64_t last = buckets_per_direction(buckets) - 1;
  std::int64_t distance = 0;
  while (bucket_of_distance(distance, last + 1, buckets.max_distance) < last) ++distance;
  return distance;
}

}  // namespace fathom::rope
