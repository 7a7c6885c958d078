#include "harness/checkpoint/json_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

using nlohmann::json;

const json& as_json(const void* value) {
  return *static_cast<const json*>(value);
}

/// Long values would bury the message.
std::string shown_json(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

json parse_json_document(std::string_view text, const std::string& where, int max_depth) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > max_depth) throw ModelError(fmt::format("model: {} is nested deeper than {}", where, max_depth));
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw ModelError(fmt::format("model: {} has key '{}' twice", where, parsed.get<std::string>()));
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& error) {
    throw ModelError(fmt::format("model: {} is not valid JSON: {}", where, error.what()));
  }
}

}  // namespace

struct JsonObject::Document {
  json root;
};

JsonObject::JsonObject(std::shared_ptr<const Document> document, const void* object, std::string where,
                       std::string prefix)
    : document_(std::move(document)), object_(object), where_(std::move(where)), prefix_(std::move(prefix)) {
  if (as_json(object_).is_object()) return;
  throw ModelError(prefix_.empty()
                       ? fmt::format("model: {} is not a JSON object", where_)
                       : fmt::format("model: {}: {} is not an object", where_, prefix_.substr(0, prefix_.size() - 1)));
}

JsonObject JsonObject::parse(std::string_view text, const std::string& where, int max_depth) {
  auto document = std::make_shared<Document>();
  document->root = parse_json_document(text, where, max_depth);
  const void* root = &document->root;
  return JsonObject(std::move(document), root, where, "");
}

void JsonObject::fail(std::string_view key, const std::string& problem) const {
  throw ModelError(fmt::format("model: {}: {}{} {}", where_, prefix_, stored_name(key), problem));
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> out;
  for (const auto& entry : as_json(object_).items()) out.push_back(entry.key());
  return out;
}

std::vector<std::string> JsonObject::unread_keys() const {
  std::vector<std::string> out;
  for (const std::string& key : keys()) {
    if (read_.count(key) == 0 && defaulted_.count(key) == 0) out.push_back(key);
  }
  return out;
}

std::string JsonObject::dump() const {
  return as_json(object_).dump();
}

std::string JsonObject::stored_name(std::string_view key) const {
  const auto renamed = names_.find(key);
  const bool under_own_name = as_json(object_).contains(std::string(key)) && defaulted_.count(key) == 0;
  return renamed == names_.end() || under_own_name ? std::string(key) : renamed->second;
}

JsonObject JsonObject::with_names(std::map<std::string, std::string, std::less<>> names) const {
  JsonObject out = *this;
  out.names_ = std::move(names);
  return out;
}

JsonObject JsonObject::with_defaults(const JsonObject& defaults) const {
  auto document = std::make_shared<Document>();
  document->root = as_json(object_);
  JsonObject out = *this;
  for (const auto& entry : as_json(defaults.object_).items()) {
    if (document->root.contains(entry.key()) || document->root.contains(stored_name(entry.key()))) continue;
    document->root[entry.key()] = entry.value();
    out.defaulted_.insert(entry.key());
  }
  out.object_ = &document->root;
  out.document_ = std::move(document);
  return out;
}

const void* JsonObject::find(std::string_view key) const {
  const json& object = as_json(object_);
  const std::string stored = is_default(key) ? std::string(key) : stored_name(key);
  read_.insert(stored);
  const auto found = object.find(stored);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const void* JsonObject::find_list(std::string_view key) const {
  const void* value = find(key);
  if (value != nullptr && !as_json(value).is_array()) {
    fail(key, fmt::format("= {} is not a list", shown_json(as_json(value))));
  }
  return value;
}

namespace {

std::optional<std::int64_t> json_integer(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  return value.get<std::int64_t>();
}

std::optional<double> json_real(const json& value) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

std::optional<std::string> json_text(const json& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

}  // namespace

std::optional<std::int64_t> JsonObject::integer(std::string_view key) const {
  const void* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = json_integer(as_json(value));
  if (!number) fail(key, fmt::format("= {} is not a 64-bit integer", shown_json(as_json(value))));
  return number;
}

std::optional<double> JsonObject::real(std::string_view key) const {
  const void* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = json_real(as_json(value));
  if (!number) fail(key, fmt::format("= {} is not a finite number", shown_json(as_json(value))));
  return number;
}

std::optional<bool> JsonObject::flag(std::string_view key) const {
  const void* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!as_json(value).is_boolean()) fail(key, fmt::format("= {} must be true or false", shown_json(as_json(value))));
  return as_json(value).get<bool>();
}

std::optional<std::string> JsonObject::text(std::string_view key) const {
  const void* value = find(key);
  if (value == nullptr) return std::nullopt;
  auto text = json_text(as_json(value));
  if (!text) fail(key, fmt::format("= {} is not a text", shown_json(as_json(value))));
  return text;
}

std::optional<std::vector<std::int64_t>> JsonObject::integer_list(std::string_view key) const {
  const void* list = find_list(key);
  if (list == nullptr) return std::nullopt;
  std::vector<std::int64_t> out;
  for (const json& entry : as_json(list)) {
    const auto value = json_integer(entry);
    if (!value) fail(key, fmt::format("holds {}, which is not a 64-bit integer", shown_json(entry)));
    out.push_back(*value);
  }
  return out;
}

std::optional<std::vector<double>> JsonObject::real_list(std::string_view key) const {
  const void* list = find_list(key);
  if (list == nullptr) return std::nullopt;
  std::vector<double> out;
  for (const json& entry : as_json(list)) {
    const auto value = json_real(entry);
    if (!value) fail(key, fmt::format("holds {}, which is not a finite number", shown_json(entry)));
    out.push_back(*value);
  }
  return out;
}

std::optional<std::vector<std::string>> JsonObject::text_list(std::string_view key) const {
  const void* list = find_list(key);
  if (list == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (const json& entry : as_json(list)) {
    auto value = json_text(entry);
    if (!value) fail(key, fmt::format("holds {}, which is not a text", shown_json(entry)));
    out.push_back(std::move(*value));
  }
  return out;
}

std::optional<JsonObject> JsonObject::object(std::string_view key) const {
  const void* value = find(key);
  if (value == nullptr) return std::nullopt;
  return JsonObject(document_, value, where_, fmt::format("{}{}.", prefix_, key));
}

std::optional<std::vector<JsonObject>> JsonObject::object_list(std::string_view key) const {
  const void* list = find_list(key);
  if (list == nullptr) return std::nullopt;
  std::vector<JsonObject> out;
  for (const json& entry : as_json(list)) {
    out.push_back(JsonObject(document_, &entry, where_, fmt::format("{}{}[{}].", prefix_, key, out.size())));
  }
  return out;
}

bool JsonObject::is_object(std::string_view key) const {
  const json& object = as_json(object_);
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_object();
}

bool JsonObject::is_integer(std::string_view key) const {
  const json& object = as_json(object_);
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_number_integer();
}

bool JsonObject::is_text(std::string_view key) const {
  const json& object = as_json(object_);
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_string();
}

bool JsonObject::is_off(std::string_view key) const {
  const json& object = as_json(object_);
  const auto found = object.find(std::string(key));
  if (found == object.end() || found->is_null()) return true;
  if (found->is_boolean()) return !found->get<bool>();
  if (found->is_number()) return found->get<double>() == 0;
  return (found->is_structured() || found->is_string()) && found->empty();
}

std::int64_t JsonObject::required_integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  if (!has(key)) fail(key, fmt::format("is missing; an integer in {}..{} is needed", low, high));
  return integer_or(key, low, low, high);
}

std::int64_t JsonObject::integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                                    std::int64_t high) const {
  const std::int64_t value = integer(key).value_or(fallback);
  if (value < low || value > high) fail(key, fmt::format("= {} is outside {}..{}", value, low, high));
  return value;
}

double JsonObject::required_positive(std::string_view key) const {
  if (!has(key)) fail(key, "is missing; a number above 0 is needed");
  return positive_or(key, 1);
}

double JsonObject::positive_or(std::string_view key, double fallback) const {
  const double value = real(key).value_or(fallback);
  if (!(value > 0)) fail(key, fmt::format("= {} must be above 0", format_double(value)));
  return value;
}

std::string JsonObject::required_text(std::string_view key) const {
  auto value = text(key);
  if (!value) fail(key, "is missing; a text is needed");
  return std::move(*value);
}

}  // namespace fathom::checkpoint
