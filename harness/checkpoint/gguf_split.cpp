// Opening of GGUF files, one or several that belong together.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "harness/checkpoint/gguf_file.h"
#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

constexpr std::int64_t kGgufMostShards = 99999;  // their names hold five digits

/// "…/name-00002-of-00005.gguf"
struct GgufShardName {
  std::string prefix;
  std::int64_t number;  ///< from 1
  std::int64_t count;
};

std::optional<GgufShardName> parse_shard_name(const std::string& path) {
  constexpr std::string_view kShape = "-00000-of-00000.gguf";  // 0: any digit
  if (path.size() < kShape.size()) return std::nullopt;
  const std::string tail = path.substr(path.size() - kShape.size());
  const bool fits = std::equal(tail.begin(), tail.end(), kShape.begin(), [](char character, char shape) {
    return shape == '0' ? character >= '0' && character <= '9' : character == shape;
  });
  if (!fits) return std::nullopt;
  return GgufShardName{path.substr(0, path.size() - kShape.size()), std::stoll(tail.substr(1, 5)),
                       std::stoll(tail.substr(10, 5))};
}

std::string shard_path(const std::string& prefix, std::int64_t number, std::int64_t count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number, count);
}

GgufShardName shard_name_of(const GgufFile& first, std::int64_t count) {
  if (count > kGgufMostShards) {
    first.fail("split.count", fmt::format("= {} is outside 1..{}", count, kGgufMostShards));
  }
  const auto name = parse_shard_name(first.where());
  if (!name || name->count != count) {
    first.fail("split.count", fmt::format("= {}: the file must be called 'NAME-00001-of-{:05}.gguf'; give it and the "
                                          "others the names that they were published with",
                                          count, count));
  }
  const std::int64_t number = first.integer("split.no").value_or(0);
  if (number != 0 || name->number != 1) {
    first.fail("split.no", fmt::format("= {}: the configuration stands in the first of {} files; open {}", number,
                                       count, shard_path(name->prefix, 1, count)));
  }
  return *name;
}

void check_shard(const GgufFile& shard, const GgufFile& first, std::int64_t number, std::int64_t count) {
  const auto claimed_number = shard.integer("split.no");
  const auto claimed_count = shard.integer("split.count");
  if (!claimed_number || *claimed_number != number - 1) {
    shard.fail("split.no",
               fmt::format("= {}; file {} of {} must have {}", claimed_number.value_or(-1), number, count, number - 1));
  }
  if (!claimed_count || *claimed_count != count) {
    shard.fail("split.count", fmt::format("= {}; {} says {}", claimed_count.value_or(-1), first.where(), count));
  }
}

}  // namespace

GgufFile GgufFile::open_single(const std::string& path) {
  const auto mapped = std::make_shared<const MappedFile>(path);
  GgufFile file = parse(mapped->bytes(), path);
  file.files_ = {mapped};
  return file;
}

GgufFile GgufFile::open(const std::string& path) {
  GgufFile file = open_single(path);
  const std::int64_t count = file.integer("split.count").value_or(0);
  if (count < 0) file.fail("split.count", fmt::format("= {} is outside 1..{}", count, kGgufMostShards));
  if (count > 1) file.add_shards(count);
  return file;
}

void GgufFile::add_shards(std::int64_t count) {
  const GgufShardName name = shard_name_of(*this, count);
  // Their presence first: a missing one is told before gigabytes are mapped.
  for (std::int64_t number = 2; number <= count; ++number) {
    const std::string path = shard_path(name.prefix, number, count);
    if (std::filesystem::exists(path)) continue;
    throw ModelError(
        fmt::format("model: {} is missing: {} says that its weights are in {} files; put all of them into "
                    "one folder",
                    path, where_, count));
  }
  for (std::int64_t number = 2; number <= count; ++number) {
    GgufFile shard = open_single(shard_path(name.prefix, number, count));
    check_shard(shard, *this, number, count);
    for (GgufTensor& tensor : shard.tensors_) {
      if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
        throw ModelError(
            fmt::format("model: {}: tensor '{}' stands in an earlier file too", shard.where_, tensor.name));
      }
      tensors_.push_back(std::move(tensor));
    }
    parts_.push_back(shard.bytes());
    files_.push_back(shard.files_.front());
  }
  const auto n_tensors = integer("split.tensors.count");
  if (n_tensors && *n_tensors != static_cast<std::int64_t>(tensors_.size())) {
    fail("split.tensors.count", fmt::format("= {}; the {} files hold {}", *n_tensors, count, tensors_.size()));
  }
}

}  // namespace fathom::checkpoint
