#include "harness/checkpoint/safetensors_shards.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "harness/checkpoint/json_reader.h"
#include "harness/checkpoint/mapped_file.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

constexpr int kSafetensorsIndexMaxDepth = 2;

/// A plain name: an index from elsewhere must not reach other folders.
void check_shard_name(const JsonObject& map, const std::string& tensor, const std::string& name) {
  const bool plain = name.find('/') == std::string::npos && name.find('\\') == std::string::npos &&
                     name.find('\0') == std::string::npos && ends_with(name, ".safetensors");
  if (!plain) {
    map.fail(tensor, fmt::format("= '{}' is not the name of a .safetensors file in the same folder", name));
  }
}

/// What a folder holds instead of weights that are read, for messages; empty if nothing looks like weights.
std::string other_weights_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    for (const char* end : {".safetensors", ".bin", ".pt", ".pth", ".gguf"}) {
      if (ends_with(name, end)) names.insert(name);
    }
  }
  return names.empty() ? "" : *names.begin();
}

[[noreturn]] void fail_without_weights(const std::string& folder) {
  const std::string other = other_weights_in(folder);
  const std::string needed =
      fmt::format("model: {} has neither model.safetensors nor model.safetensors.index.json", folder);
  if (other.empty()) throw ModelError(needed);
  if (ends_with(other, ".gguf"))
    throw ModelError(fmt::format("{}; give the file itself: {}/{}", needed, folder, other));
  if (ends_with(other, ".safetensors")) {
    throw ModelError(fmt::format(
        "{}, but {}; the index says which file holds which tensor: put the published one beside them", needed, other));
  }
  throw ModelError(fmt::format("{}, but {}; only safetensors and GGUF are read", needed, other));
}

}  // namespace

SafetensorsShards SafetensorsShards::open(const std::string& folder) {
  SafetensorsShards shards;
  const std::string single = folder + "/model.safetensors";
  const std::string index = single + ".index.json";
  if (std::filesystem::exists(single)) {
    shards.files_.push_back(SafetensorsFile::open(single));
  } else if (std::filesystem::exists(index)) {
    shards.open_indexed(folder, index);
  } else {
    fail_without_weights(folder);
  }
  return shards;
}

void SafetensorsShards::open_indexed(const std::string& folder, const std::string& index_path) {
  index_text_ = read_text_file(index_path);
  const JsonObject index = JsonObject::parse(index_text_, index_path, kSafetensorsIndexMaxDepth);
  const auto map = index.object("weight_map");
  if (!map) index.fail("weight_map", "is missing: it says which file holds which tensor");
  std::map<std::string, std::string> file_of;  // by tensor
  std::set<std::string> names;
  for (const std::string& tensor : map->keys()) {
    const std::string name = map->required_text(tensor);
    check_shard_name(*map, tensor, name);
    file_of[tensor] = name;
    names.insert(name);
  }
  if (names.empty()) index.fail("weight_map", "names no tensor");
  const auto shard_path = [&folder](const std::string& name) { return fmt::format("{}/{}", folder, name); };
  for (const std::string& name : names) {
    if (std::filesystem::exists(shard_path(name))) continue;
    throw ModelError(fmt::format("model: {}/{} is missing: {} names {} files; put all of them into the folder", folder,
                                 name, index_path, names.size()));
  }
  for (const std::string& name : names) {
    files_.push_back(SafetensorsFile::open(shard_path(name)));
    for (const SafetensorsTensor& tensor : files_.back().tensors()) {
      const auto entry = file_of.find(tensor.name);
      if (entry == file_of.end() || entry->second != name) {
        throw ModelError(fmt::format("model: {}/{} holds tensor '{}', which {} {}", folder, name, tensor.name,
                                     index_path,
                                     entry == file_of.end() ? "does not name" : "puts into " + entry->second));
      }
      file_of.erase(entry);
    }
  }
  if (!file_of.empty()) {
    throw ModelError(fmt::format("model: {}/{} lacks tensor '{}', which {} puts there", folder, file_of.begin()->second,
                                 file_of.begin()->first, index_path));
  }
}

std::vector<const SafetensorsTensor*> SafetensorsShards::tensors() const {
  std::vector<const SafetensorsTensor*> all;
  for (const SafetensorsFile& file : files_) {
    for (const SafetensorsTensor& tensor : file.tensors()) all.push_back(&tensor);
  }
  return all;
}

std::vector<std::string_view> SafetensorsShards::parts() const {
  std::vector<std::string_view> parts;
  if (!index_text_.empty()) parts.push_back(index_text_);
  for (const SafetensorsFile& file : files_) parts.push_back(file.bytes());
  return parts;
}

}  // namespace fathom::checkpoint
