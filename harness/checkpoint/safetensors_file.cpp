#include "harness/checkpoint/safetensors_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "harness/checkpoint/json_reader.h"
#include "harness/core/error.h"

namespace fathom::checkpoint {
namespace {

/// Far above any real header (a thousand tensors take some 100 kB).
constexpr std::uint64_t kSafetensorsMaxHeaderBytes = 100'000'000;
constexpr int kSafetensorsMaxDepth = 3;
/// No tensor can have more values; eight bytes each must stay countable.
constexpr std::int64_t kSafetensorsMaxValues = INT64_MAX / 8;

/// Types that a file may hold beside its weights (masks, positions): their sizes are known, their values are not read.
constexpr StorageType kUnreadTypes[] = {
    {"BOOL", 1, 1, nullptr}, {"U8", 1, 1, nullptr},      {"I8", 1, 1, nullptr},  {"F8_E4M3", 1, 1, nullptr},
    {"U16", 1, 2, nullptr},  {"F8_E5M2", 1, 1, nullptr}, {"I16", 1, 2, nullptr}, {"U32", 1, 4, nullptr},
    {"I32", 1, 4, nullptr},  {"U64", 1, 8, nullptr},     {"I64", 1, 8, nullptr}, {"F64", 1, 8, nullptr},
};

const StorageType* find_safetensors_type(std::string_view name) {
  if (name == "F32" || name == "F16" || name == "BF16") return find_storage_type(name);
  for (const StorageType& type : kUnreadTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

struct PlacedTensor {
  SafetensorsTensor tensor;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

[[noreturn]] void fail_safetensors(const std::string& where, const std::string& problem) {
  throw ModelError(fmt::format("model: {} is damaged: {}", where, problem));
}

PlacedTensor read_safetensors_entry(const JsonObject& entry, const std::string& name) {
  PlacedTensor placed;
  placed.tensor.name = name;
  const std::string dtype = entry.required_text("dtype");
  placed.tensor.type = find_safetensors_type(dtype);
  if (placed.tensor.type == nullptr) {
    entry.fail("dtype", fmt::format("= '{}' is not supported; supported: F32, F16, BF16", dtype));
  }

  const auto shape = entry.integer_list("shape");
  if (!shape) entry.fail("shape", "is missing");
  std::int64_t n_values = 1;
  for (const std::int64_t size : *shape) {
    if (size < 0 || (size > 0 && n_values > kSafetensorsMaxValues / size)) {
      entry.fail("shape", fmt::format("holds {}, which cannot be", size));
    }
    n_values *= size;
  }
  placed.tensor.shape = *shape;

  const auto offsets = entry.integer_list("data_offsets");
  if (!offsets || offsets->size() != 2 || (*offsets)[0] < 0 || (*offsets)[0] > (*offsets)[1]) {
    entry.fail("data_offsets", "must be two rising numbers");
  }
  placed.begin = (*offsets)[0];
  placed.end = (*offsets)[1];
  const std::int64_t size_bytes = n_values * placed.tensor.type->block_bytes;
  if (placed.end - placed.begin != size_bytes) {
    entry.fail("data_offsets", fmt::format("span {} bytes; the shape needs {}", placed.end - placed.begin, size_bytes));
  }
  return placed;
}

std::map<std::string, std::string> read_safetensors_metadata(const JsonObject& entry) {
  std::map<std::string, std::string> metadata;
  for (const std::string& key : entry.keys()) metadata[key] = entry.required_text(key);
  return metadata;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  const auto mapped = std::make_shared<const MappedFile>(path);
  SafetensorsFile file = parse(mapped->bytes(), path);
  file.file_ = mapped;
  return file;
}

SafetensorsFile SafetensorsFile::parse(std::string_view bytes, const std::string& where) {
  if (bytes.size() < 8) fail_safetensors(where, "it is shorter than the 8 bytes of the header's size");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  if (header_bytes > bytes.size() - 8 || header_bytes > kSafetensorsMaxHeaderBytes) {
    fail_safetensors(where, fmt::format("the header claims {} bytes; the file has {}", header_bytes, bytes.size()));
  }
  const JsonObject header = JsonObject::parse(bytes.substr(8, header_bytes), where, kSafetensorsMaxDepth);
  SafetensorsFile file;
  file.bytes_ = bytes;
  file.where_ = where;
  std::vector<PlacedTensor> placed;
  for (const std::string& name : header.keys()) {
    const auto entry = header.object(name);
    if (!entry) header.fail(name, "is null");
    if (name == "__metadata__") {
      file.metadata_ = read_safetensors_metadata(*entry);
    } else {
      placed.push_back(read_safetensors_entry(*entry, name));
    }
  }
  std::sort(placed.begin(), placed.end(), [](const PlacedTensor& a, const PlacedTensor& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  const std::string_view data = bytes.substr(8 + header_bytes);
  const auto data_bytes = static_cast<std::int64_t>(data.size());
  std::int64_t covered = 0;
  for (PlacedTensor& entry : placed) {
    if (entry.begin != covered || entry.end > data_bytes) {
      fail_safetensors(where, fmt::format("tensor '{}' takes bytes {} to {} of {}; the one before ends at {}",
                                          entry.tensor.name, entry.begin, entry.end, data_bytes, covered));
    }
    covered = entry.end;
    entry.tensor.data = reinterpret_cast<const std::uint8_t*>(data.data()) + entry.begin;
    file.tensors_.push_back(std::move(entry.tensor));
  }
  if (covered != data_bytes) {
    fail_safetensors(where, fmt::format("its tensors take {} bytes, the data has {}", covered, data_bytes));
  }
  return file;
}

}  // namespace fathom::checkpoint
