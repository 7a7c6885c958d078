#include "harness/cli/predictions.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

using nlohmann::json;

/// Finds the prompt that a prediction answers.
class PromptNames {
 public:
  explicit PromptNames(const std::vector<PromptLineName>& names) {
    for (const PromptLineName& name : names) {
      keys_.emplace(name.key, 0);
      by_index_.emplace(name.index, name.key);
    }
  }

  /// \throws DataError without a place: the caller knows it.
  const std::string& key_of(const json& object) const {
    if (object.contains("key")) {
      if (!object["key"].is_string()) throw DataError("\"key\" must be a string");
      const auto found = keys_.find(object["key"].get<std::string>());
      if (found == keys_.end()) {
        throw DataError(
            fmt::format("key '{}' is that of none of the {} prompts", object["key"].get<std::string>(), keys_.size()));
      }
      return found->first;
    }
    if (!object.contains("index")) throw DataError("neither \"key\" nor \"index\" says which prompt this answers");
    if (!object["index"].is_number_integer()) throw DataError("\"index\" must be an integer");
    const auto index = object["index"].get<std::int64_t>();
    const auto count = by_index_.count(index);
    if (count == 0) throw DataError(fmt::format("index {} is that of none of the {} prompts", index, keys_.size()));
    if (count > 1) {
      throw DataError(fmt::format("index {} stands for {} prompts; give \"key\" instead", index, count));
    }
    return by_index_.find(index)->second;
  }

 private:
  std::map<std::string, int> keys_;
  std::multimap<std::int64_t, std::string> by_index_;
};

Prediction prediction_of(const json& object) {
  Prediction prediction;
  if (object.contains("error") && object["error"].is_string()) prediction.error = object["error"].get<std::string>();
  if (!object.contains("pred")) {
    if (!prediction.error.empty()) return prediction;
    throw DataError("\"pred\" is missing: the generated text, without the prompt");
  }
  if (object["pred"].is_null()) return prediction;
  if (!object["pred"].is_string()) throw DataError("\"pred\" must be a string, or null where the engine failed");
  prediction.text = object["pred"].get<std::string>();
  return prediction;
}

}  // namespace

std::map<std::string, Prediction> read_predictions(const std::string& path, const std::vector<PromptLineName>& names) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(fmt::format("score: predictions '{}' cannot be read", path));
  const PromptNames prompts(names);
  std::map<std::string, Prediction> out;
  std::string text;
  for (std::int64_t number = 1; std::getline(file, text); ++number) {
    if (trim(text).empty()) continue;
    try {
      const json object = json::parse(text);
      if (!object.is_object()) throw DataError("a JSON object is expected");
      Prediction prediction = prediction_of(object);
      prediction.line = number;
      const auto [place, fresh] = out.emplace(prompts.key_of(object), std::move(prediction));
      if (!fresh)
        throw DataError(
            fmt::format("a second prediction of '{}'; the first is in line {}", place->first, place->second.line));
    } catch (const json::exception& error) {
      throw DataError(fmt::format("{}:{}: not JSON: {}", path, number, error.what()));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (file.bad()) throw DataError(fmt::format("score: predictions '{}' cannot be read to the end", path));
  return out;
}

}  // namespace fathom::cli
