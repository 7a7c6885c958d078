#include "harness/checkpoint/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr std::uint32_t kGgufMaxDimensions = 4;
constexpr std::uint64_t kGgufDefaultAlignment = 32;
constexpr std::uint64_t kGgufMaxAlignment = std::uint64_t{1} << 30;

enum class GgufType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12
};

/// Bytes that one value takes at least: a text has its length in front. 0 for an unknown type or an array.
std::uint64_t gguf_min_size(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kString:
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

std::string_view gguf_kind(const GgufValue& value) {
  constexpr std::string_view kKinds[] = {"an integer",         "a number",          "a flag",         "a text",
                                         "a list of integers", "a list of numbers", "a list of texts"};
  return kKinds[value.index()];
}

}  // namespace

/// Reads front to back; every read is bounded by the file's size.
class GgufParser {
 public:
  GgufParser(std::string_view bytes, const std::string& where) {
    file_.bytes_ = bytes;
    file_.parts_ = {bytes};
    file_.where_ = where;
  }

  GgufFile parse() {
    read_header();
    for (std::uint64_t i = 0; i < n_metadata_; ++i) read_metadata();
    for (std::uint64_t i = 0; i < n_tensors_; ++i) read_tensor();
    place_tensors();
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw ModelError(fmt::format("model: {} is damaged at byte {}: {}", file_.where_, position_, problem));
  }

  std::uint64_t left() const { return file_.bytes_.size() - position_; }

  template <typename Number>
  Number number(std::string_view what) {
    if (left() < sizeof(Number)) fail(fmt::format("the file ends inside {}", what));
    Number value{};
    std::memcpy(&value, file_.bytes_.data() + position_, sizeof(Number));
    position_ += sizeof(Number);
    return value;
  }

  std::string_view text(std::string_view what) {
    const auto length = number<std::uint64_t>(what);
    if (length > left()) fail(fmt::format("{} claims {} bytes, {} are left", what, length, left()));
    const std::string_view value = file_.bytes_.substr(position_, length);
    position_ += length;
    return value;
  }

  void read_header() {
    if (file_.bytes_.substr(0, 4) != "GGUF") {
      throw ModelError(fmt::format("model: {} is not a GGUF file: it does not begin with 'GGUF'", file_.where_));
    }
    position_ = 4;
    file_.version_ = number<std::uint32_t>("the version");
    if (file_.version_ != 2 && file_.version_ != 3) {
      const bool swapped = (file_.version_ & 0xffffu) == 0 && file_.version_ != 0;
      throw ModelError(fmt::format("model: {} has GGUF version {}{}; versions 2 and 3 are supported", file_.where_,
                                   file_.version_, swapped ? " (a big-endian file)" : ""));
    }
    n_tensors_ = number<std::uint64_t>("the number of tensors");
    n_metadata_ = number<std::uint64_t>("the number of metadata entries");
    // A tensor takes at least 8 + 4 + 8 + 4 + 8 bytes, a metadata entry 8 + 4 + 1.
    if (n_tensors_ > left() / 32) fail(fmt::format("{} tensors do not fit into {} bytes", n_tensors_, left()));
    if (n_metadata_ > left() / 13) {
      fail(fmt::format("{} metadata entries do not fit into {} bytes", n_metadata_, left()));
    }
  }

  void read_metadata() {
    const std::string key(text("a metadata key"));
    const auto type = static_cast<GgufType>(number<std::uint32_t>("a metadata type"));
    GgufValue value = read_value(key, type);
    if (!file_.metadata_.emplace(key, std::move(value)).second) fail(fmt::format("key '{}' stands twice", key));
  }

  GgufValue read_value(const std::string& key, GgufType type) {
    switch (type) {
      case GgufType::kFloat32:
        return static_cast<double>(number<float>(key));
      case GgufType::kFloat64:
        return number<double>(key);
      case GgufType::kBool:
        return read_bool(key);
      case GgufType::kString:
        return text(key);
      case GgufType::kArray:
        return read_array(key);
      default:
        return read_integer(key, type);
    }
  }

  bool read_bool(const std::string& key) {
    const auto value = number<std::uint8_t>(key);
    if (value > 1) fail(fmt::format("{} is a flag and holds {}", key, value));
    return value == 1;
  }

  std::int64_t read_integer(const std::string& key, GgufType type) {
    switch (type) {
      case GgufType::kUint8:
        return number<std::uint8_t>(key);
      case GgufType::kInt8:
        return number<std::int8_t>(key);
      case GgufType::kUint16:
        return number<std::uint16_t>(key);
      case GgufType::kInt16:
        return number<std::int16_t>(key);
      case GgufType::kUint32:
        return number<std::uint32_t>(key);
      case GgufType::kInt32:
        return number<std::int32_t>(key);
      case GgufType::kInt64:
        return number<std::int64_t>(key);
      case GgufType::kUint64: {
        const auto value = number<std::uint64_t>(key);
        if (value > INT64_MAX) fail(fmt::format("{} = {} is too large", key, value));
        return static_cast<std::int64_t>(value);
      }
      case GgufType::kFloat32:
      case GgufType::kFloat64:
      case GgufType::kBool:
      case GgufType::kString:
      case GgufType::kArray:
        break;
    }
    fail(fmt::format("{} has unknown type {}", key, static_cast<std::uint32_t>(type)));
  }

  GgufValue read_array(const std::string& key) {
    const auto type = static_cast<GgufType>(number<std::uint32_t>(key));
    const auto count = number<std::uint64_t>(key);
    const std::uint64_t least = gguf_min_size(type);
    if (least == 0) fail(fmt::format("{} is a list of unknown type {}", key, static_cast<std::uint32_t>(type)));
    if (count > left() / least) fail(fmt::format("{} claims {} entries, {} bytes are left", key, count, left()));
    if (type == GgufType::kString) {
      std::vector<std::string_view> values;
      values.reserve(count);
      for (std::uint64_t i = 0; i < count; ++i) values.push_back(text(key));
      return values;
    }
    if (type == GgufType::kFloat32 || type == GgufType::kFloat64) {
      std::vector<double> values;
      values.reserve(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        values.push_back(type == GgufType::kFloat32 ? static_cast<double>(number<float>(key)) : number<double>(key));
      }
      return values;
    }
    std::vector<std::int64_t> values;
    values.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      values.push_back(type == GgufType::kBool ? static_cast<std::int64_t>(read_bool(key)) : read_integer(key, type));
    }
    return values;
  }

  void read_tensor() {
    GgufTensor tensor;
    tensor.name = text("a tensor name");
    const auto n_dimensions = number<std::uint32_t>("a tensor's dimensions");
    if (n_dimensions < 1 || n_dimensions > kGgufMaxDimensions) {
      fail(fmt::format("tensor '{}' has {} dimensions; 1 to {} are allowed", tensor.name, n_dimensions,
                       kGgufMaxDimensions));
    }
    std::uint64_t n_values = 1;
    for (std::uint32_t i = 0; i < n_dimensions; ++i) {
      const auto size = number<std::uint64_t>("a tensor's dimensions");
      if (size == 0 || size > static_cast<std::uint64_t>(INT64_MAX) / n_values) {
        fail(fmt::format("tensor '{}' has dimension {} = {}, which cannot be", tensor.name, i, size));
      }
      n_values *= size;
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
    }
    const auto type_id = number<std::uint32_t>("a tensor's type");
    tensor.type = find_ggml_type(type_id);
    if (tensor.type == nullptr) fail(fmt::format("tensor '{}' has unknown type {}", tensor.name, type_id));
    tensor.offset = number<std::uint64_t>("a tensor's offset");
    tensor.size_bytes = size_of(tensor, n_values);
    if (!file_.tensor_index_.emplace(tensor.name, file_.tensors_.size()).second) {
      fail(fmt::format("tensor '{}' stands twice", tensor.name));
    }
    file_.tensors_.push_back(std::move(tensor));
  }

  std::uint64_t size_of(const GgufTensor& tensor, std::uint64_t n_values) const {
    const StorageType& type = *tensor.type;
    if (type.dequantize == nullptr) {
      throw ModelError(fmt::format("model: {}: tensor '{}' has type {}, which is not supported; supported: {}",
                                   file_.where_, tensor.name, type.name, join(supported_storage_types(), ", ")));
    }
    if (tensor.shape.back() % type.block_values != 0) {
      fail(fmt::format("tensor '{}' has rows of {} values; {} stores blocks of {}", tensor.name, tensor.shape.back(),
                       type.name, type.block_values));
    }
    const auto n_blocks = n_values / static_cast<std::uint64_t>(type.block_values);
    if (n_blocks > file_.bytes_.size() / static_cast<std::uint64_t>(type.block_bytes)) {
      fail(fmt::format("tensor '{}' of {} values is larger than the file", tensor.name, n_values));
    }
    return n_blocks * static_cast<std::uint64_t>(type.block_bytes);
  }

  std::uint64_t alignment() const {
    const auto given = file_.integer("general.alignment");
    if (!given) return kGgufDefaultAlignment;
    const auto value = static_cast<std::uint64_t>(*given);
    if (*given < 8 || value > kGgufMaxAlignment || (value & (value - 1)) != 0) {
      file_.fail("general.alignment", fmt::format("= {} must be a power of two of at least 8", *given));
    }
    return value;
  }

  /// The data section begins at the first aligned byte after the tensor list.
  void place_tensors() {
    const std::uint64_t align = alignment();
    const std::uint64_t size = file_.bytes_.size();
    const std::uint64_t begin = (position_ + align - 1) / align * align;
    const std::uint64_t available = begin < size ? size - begin : 0;
    std::vector<std::size_t> order(file_.tensors_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [this](std::size_t a, std::size_t b) { return file_.tensors_[a].offset < file_.tensors_[b].offset; });
    std::uint64_t last_end = 0;
    for (const std::size_t index : order) {
      GgufTensor& tensor = file_.tensors_[index];
      if (tensor.offset % align != 0) {
        fail(
            fmt::format("tensor '{}' has offset {}, which is not a multiple of {}", tensor.name, tensor.offset, align));
      }
      if (tensor.offset > available || tensor.size_bytes > available - tensor.offset) {
        fail(fmt::format("tensor '{}' takes bytes {} to {} of the data; the file holds {}", tensor.name, tensor.offset,
                         static_cast<long double>(tensor.offset) + static_cast<long double>(tensor.size_bytes),
                         available));
      }
      if (tensor.offset < last_end) fail(fmt::format("tensor '{}' overlaps another one", tensor.name));
      last_end = tensor.offset + tensor.size_bytes;
      tensor.data = reinterpret_cast<const std::uint8_t*>(file_.bytes_.data()) + begin + tensor.offset;
    }
  }

  GgufFile file_;
  std::uint64_t position_ = 0;
  std::uint64_t n_tensors_ = 0;
  std::uint64_t n_metadata_ = 0;
};

GgufFile GgufFile::parse(std::string_view bytes, const std::string& where) {
  return GgufParser(bytes, where).parse();
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

void GgufFile::fail(std::string_view key, const std::string& problem) const {
  throw ModelError(fmt::format("model: {}: {} {}", where_, key, problem));
}

template <typename Value>
std::optional<Value> GgufFile::lookup(std::string_view key, std::string_view kind) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return std::nullopt;
  const Value* value = std::get_if<Value>(&found->second);
  if (value == nullptr) fail(key, fmt::format("is {}, not {}", gguf_kind(found->second), kind));
  return *value;
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  return lookup<std::int64_t>(key, "an integer");
}

std::optional<double> GgufFile::real(std::string_view key) const {
  const auto found = metadata_.find(key);
  if (found != metadata_.end()) {
    if (const auto* whole = std::get_if<std::int64_t>(&found->second)) return static_cast<double>(*whole);
  }
  return lookup<double>(key, "a number");
}

std::optional<bool> GgufFile::flag(std::string_view key) const {
  return lookup<bool>(key, "a flag");
}

std::optional<std::string_view> GgufFile::text(std::string_view key) const {
  return lookup<std::string_view>(key, "a text");
}

std::optional<std::vector<std::int64_t>> GgufFile::integer_list(std::string_view key) const {
  return lookup<std::vector<std::int64_t>>(key, "a list of integers");
}

std::optional<std::vector<double>> GgufFile::real_list(std::string_view key) const {
  return lookup<std::vector<double>>(key, "a list of numbers");
}

std::optional<std::vector<std::string_view>> GgufFile::text_list(std::string_view key) const {
  return lookup<std::vector<std::string_view>>(key, "a list of texts");
}

}  // namespace fathom::checkpoint
