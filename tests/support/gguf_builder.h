#pragma once
// GGUF files made byte by byte.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::test {

template <typename Number>
void append_number(std::string& out, Number value) {
  char bytes[sizeof(Number)];
  std::memcpy(bytes, &value, sizeof(Number));
  out.append(bytes, sizeof(Number));
}

/// Writes GGUF version 3 unless told otherwise. Numbers may be claimed that do not fit what follows.
class GgufBuilder {
 public:
  GgufBuilder& version(std::uint32_t value) {
    version_ = value;
    return *this;
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    begin(key, 8);
    put_text(metadata_, value);
    return *this;
  }
  GgufBuilder& uint32(std::string_view key, std::uint32_t value) {
    begin(key, 4);
    append_number(metadata_, value);
    return *this;
  }
  GgufBuilder& float32(std::string_view key, float value) {
    begin(key, 6);
    append_number(metadata_, value);
    return *this;
  }
  GgufBuilder& flag(std::string_view key, std::uint8_t value) {
    begin(key, 7);
    append_number(metadata_, value);
    return *this;
  }
  GgufBuilder& uint32_list(std::string_view key, const std::vector<std::uint32_t>& values) {
    begin(key, 9);
    append_number<std::uint32_t>(metadata_, 4);
    append_number<std::uint64_t>(metadata_, values.size());
    for (const std::uint32_t value : values) append_number(metadata_, value);
    return *this;
  }
  GgufBuilder& text_list(std::string_view key, const std::vector<std::string>& values) {
    begin(key, 9);
    append_number<std::uint32_t>(metadata_, 8);
    append_number<std::uint64_t>(metadata_, values.size());
    for (const std::string& value : values) put_text(metadata_, value);
    return *this;
  }
  GgufBuilder& uint16(std::string_view key, std::uint16_t value) {
    begin(key, 2);
    append_number(metadata_, value);
    return *this;
  }
  /// Any metadata entry: the value's bytes as given.
  GgufBuilder& raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
    begin(key, type);
    metadata_ += bytes;
    return *this;
  }
  /// \param dimensions  in the file's order: the contiguous one first.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                      std::string_view data) {
    const std::uint64_t offset = (data_.size() + 31) / 32 * 32;
    data_.resize(offset, '\0');
    data_ += data;
    return tensor_at(name, dimensions, type, offset);
  }
  GgufBuilder& tensor_at(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                         std::uint64_t offset) {
    put_text(infos_, name);
    append_number<std::uint32_t>(infos_, static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions) append_number(infos_, dimension);
    append_number(infos_, type);
    append_number(infos_, offset);
    ++n_tensors_;
    return *this;
  }
  GgufBuilder& floats(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                      const std::vector<float>& values) {
    std::string data;
    for (const float value : values) append_number(data, value);
    return tensor(name, dimensions, 0, data);
  }
  GgufBuilder& claim_tensors(std::uint64_t n) {
    n_tensors_ = n;
    return *this;
  }
  GgufBuilder& claim_metadata(std::uint64_t n) {
    n_metadata_ = n;
    return *this;
  }

  std::string bytes() const {
    std::string out = "GGUF";
    append_number(out, version_);
    append_number(out, n_tensors_);
    append_number(out, n_metadata_);
    out += metadata_ + infos_;
    out.resize((out.size() + 31) / 32 * 32, '\0');
    return out + data_;
  }

 private:
  static void put_text(std::string& out, std::string_view value) {
    append_number<std::uint64_t>(out, value.size());
    out += value;
  }
  void begin(std::string_view key, std::uint32_t type) {
    put_text(metadata_, key);
    append_number(metadata_, type);
    ++n_metadata_;
  }

  std::uint32_t version_ = 3;
  std::uint64_t n_tensors_ = 0;
  std::uint64_t n_metadata_ = 0;
  std::string metadata_, infos_, data_;
};

}  // namespace fathom::test
