#include "tasks/pair_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"

namespace fathom::tasks {
namespace {

using nlohmann::json;

PairFile::Object object_of(const json& line) {
  const KeyValue asked = {line.at("key").get<std::string>(), line.at("value").get<std::string>()};
  PairFile::Object object;
  object.pairs = {asked};
  std::set<std::string> keys;
  bool found = false;
  for (const json& record : line.at("ordered_kv_records")) {
    const KeyValue pair = {record.at(0).get<std::string>(), record.at(1).get<std::string>()};
    if (!keys.insert(pair.first).second) throw DataError(fmt::format("the key '{}' twice", pair.first));
    if (pair == asked) {
      found = true;
    } else {
      object.pairs.push_back(pair);
    }
  }
  if (!found) throw DataError(fmt::format("'{}' with its value is none of ordered_kv_records", asked.first));
  if (object.pairs.size() < 2) throw DataError("fewer than two pairs");
  return object;
}

class PairFileHaystack : public PairHaystack {
 public:
  PairFileHaystack(std::shared_ptr<const PairFile> file, std::int64_t index, std::string separator,
                   std::function<std::string(const std::string&, const std::string&)> render)
      : file_(std::move(file)),
        object_(file_->object(index)),
        separator_(std::move(separator)),
        render_(std::move(render)) {}

  std::vector<task::HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    std::vector<task::HaystackUnit> out;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [key, value] = pair(i);
      out.push_back({separator_, render_(key, value), true});
    }
    return out;
  }
  std::optional<std::int64_t> size() const override { return static_cast<std::int64_t>(object_.pairs.size()); }
  std::string limit_reason() const override {
    return fmt::format("a line of '{}' has {} pairs", file_->path(), object_.pairs.size());
  }
  std::pair<std::string, std::string> pair(std::int64_t i) const override {
    return object_.pairs[static_cast<std::size_t>(i)];
  }

 private:
  std::shared_ptr<const PairFile> file_;
  const PairFile::Object& object_;
  std::string separator_;
  std::function<std::string(const std::string&, const std::string&)> render_;
};

}  // namespace

std::shared_ptr<const PairFile> PairFile::load(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (text.empty()) throw DataError(fmt::format("file of pairs '{}' is empty or cannot be read", path));
  auto file = std::make_shared<PairFile>();
  file->path_ = path;
  file->fingerprint_ = hash_hex(text);
  std::int64_t number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    try {
      file->objects_.push_back(object_of(json::parse(line)));
    } catch (const json::exception& error) {
      throw DataError(fmt::format("{}:{}: {}; a line has ordered_kv_records [[key, value], …], key and value", path,
                                  number, error.what()));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (file->objects_.empty()) throw DataError(fmt::format("file of pairs '{}' has no line", path));
  return file;
}

std::shared_ptr<const PairHaystack> make_pair_file_haystack(
    std::shared_ptr<const PairFile> file, std::int64_t index, std::string separator,
    std::function<std::string(const std::string& key, const std::string& value)> render) {
  return std::make_shared<const PairFileHaystack>(std::move(file), index, std::move(separator), std::move(render));
}

}  // namespace fathom::tasks
