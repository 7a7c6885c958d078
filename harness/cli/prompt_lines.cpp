#include "harness/cli/prompt_lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// Of the object "fathom"; raised when a reader of the older form would misread the newer one.
constexpr int kPromptFormat = 1;

template <typename T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

template <typename T>
std::optional<T> optional_at(const json& object, const char* key) {
  const json& value = object.at(key);
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

/// The enumerator that prints as `text`.
template <typename Enum>
Enum parse_enum(std::initializer_list<Enum> all, const std::string& text, const char* what) {
  for (const Enum one : all) {
    if (task::to_string(one) == text) return one;
  }
  throw DataError(fmt::format("unknown {} '{}'", what, text));
}

task::TaskVariant parse_variant(const std::string& text) {
  return parse_enum({task::TaskVariant::kBalanced, task::TaskVariant::kRuler}, text, "variant");
}

task::TaskMetric parse_metric(const std::string& text) {
  using task::TaskMetric;
  return parse_enum({TaskMetric::kAll, TaskMetric::kPart, TaskMetric::kSubspan, TaskMetric::kEm, TaskMetric::kLabel,
                     TaskMetric::kTop1},
                    text, "metric");
}

task::Control parse_control(const std::string& text) {
  using task::Control;
  return parse_enum({Control::kNone, Control::kNoNeedle, Control::kNeedleOnly, Control::kWrongKey, Control::kClosedBook,
                     Control::kOracle},
                    text, "control");
}

json needle_json(const task::NeedlePlace& needle) {
  return {needle.gold, optional_json(needle.requested_depth_bp), needle.actual_depth_bp, needle.first_token,
          needle.last_token};
}

task::NeedlePlace read_needle(const json& array) {
  task::NeedlePlace needle;
  needle.gold = array.at(0).get<bool>();
  if (!array.at(1).is_null()) needle.requested_depth_bp = array.at(1).get<std::int32_t>();
  needle.actual_depth_bp = array.at(2).get<std::int32_t>();
  needle.first_token = array.at(3).get<std::int64_t>();
  needle.last_token = array.at(4).get<std::int64_t>();
  return needle;
}

json cell_json(const eval::CellRecord& cell) {
  return {{"task", cell.task.name},
          {"variant", task::to_string(cell.task.variant)},
          {"length", cell.length_tokens},
          {"depth_bp", optional_json(cell.depth_bp)},
          {"status", eval::to_string(cell.status)},
          {"detail", cell.detail},
          {"smallest_length", optional_json(cell.smallest_length_tokens)}};
}

eval::CellRecord read_cell(const json& object) {
  eval::CellRecord cell;
  cell.task = {object.at("task").get<std::string>(), parse_variant(object.at("variant").get<std::string>())};
  cell.length_tokens = object.at("length").get<std::int64_t>();
  cell.depth_bp = optional_at<std::int32_t>(object, "depth_bp");
  cell.status = eval::parse_sample_status(object.at("status").get<std::string>());
  cell.detail = object.at("detail").get<std::string>();
  cell.smallest_length_tokens = optional_at<std::int64_t>(object, "smallest_length");
  return cell;
}

ordered_json head_json(const PromptFileHead& head) {
  json unbuilt = json::array();
  for (const eval::CellRecord& cell : head.unbuilt) unbuilt.push_back(cell_json(cell));
  return ordered_json{{"run", head.run.name},
                      {"model", head.model},
                      {"claimed", head.claimed_context},
                      {"trained", optional_json(head.trained_context)},
                      {"seed", head.run.seed},
                      {"config", head.run.canonical_config},
                      {"config_fingerprint", head.run.config_fingerprint},
                      {"tool_version", head.run.tool_version},
                      {"source_revision", head.run.source_revision},
                      {"unbuilt", std::move(unbuilt)}};
}

/// Parses and reads one line; everything that is wrong with it is a DataError with its place.
template <typename Read>
auto read_line(std::string_view text, const std::string& where, Read&& read) {
  try {
    const json object = json::parse(text);
    if (!object.is_object()) throw DataError("a JSON object is expected");
    return read(object);
  } catch (const json::parse_error& error) {
    throw DataError(fmt::format("{}: not JSON: {}", where, error.what()));
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: not a line of 'fathom generate': {}", where, error.what()));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", where, error.what()));
  }
}

const json& own_part(const json& object) {
  const json& own = object.at("fathom");
  const int format = own.at("format").get<int>();
  if (format > kPromptFormat) {
    throw DataError(
        fmt::format("format {} is newer than this build reads ({}); use a newer build", format, kPromptFormat));
  }
  return own;
}

PromptLine line_of(const json& object) {
  const json& own = own_part(object);
  PromptLine line;
  line.index = object.at("index").get<std::int64_t>();
  task::Sample& sample = line.sample;
  sample.task = object.at("task").get<std::string>();
  sample.variant = parse_variant(object.at("variant").get<std::string>());
  sample.answer_prefix = object.at("answer_prefix").get<std::string>();
  sample.prompt_text = object.at("input").get<std::string>() + sample.answer_prefix;
  sample.references = object.at("outputs").get<std::vector<std::string>>();
  sample.length_tokens = object.at("length").get<std::int64_t>();
  sample.address = object.at("key").get<std::string>();
  if (object.contains("input_ids")) sample.prompt_ids = object.at("input_ids").get<TokenIds>();
  sample.task_version = own.at("task_version").get<std::int32_t>();
  sample.index = own.at("sample").get<std::int64_t>();
  sample.seed = own.at("seed").get<std::uint64_t>();
  sample.key = own.at("sample_key").get<std::string>();
  sample.depth_bp = optional_at<std::int32_t>(own, "depth_bp");
  sample.control = parse_control(own.at("control").get<std::string>());
  sample.unlisted_prompt_tokens = own.at("prompt_tokens").get<std::int64_t>();
  sample.generation_budget = own.at("generation_budget").get<std::int64_t>();
  sample.think_budget = own.at("think_budget").get<std::int64_t>();
  sample.haystack_units = own.at("haystack_units").get<std::int64_t>();
  for (const json& needle : own.at("needles")) sample.needles.push_back(read_needle(needle));
  sample.answer_text = own.at("answer_text").get<std::string>();
  sample.metric = parse_metric(own.at("metric").get<std::string>());
  sample.whole_words = own.at("whole_words").get<bool>();
  sample.first_line = own.at("first_line").get<bool>();
  sample.labels = own.at("labels").get<std::vector<std::string>>();
  line.in_text_guess = own.at("in_text_guess").get<double>();
  line.blind_guess = own.at("blind_guess").get<double>();
  line.own_length = own.at("own_length").get<bool>();
  line.add_bos = own.at("add_bos").get<bool>();
  line.stops = own.at("stop").get<std::vector<std::string>>();
  return line;
}

PromptFileHead head_of(const json& object) {
  const json& own = own_part(object);
  if (!own.contains("head")) {
    throw DataError(
        "the first line does not describe the file; keep the first line that 'fathom generate' wrote first");
  }
  const json& head = own.at("head");
  PromptFileHead out;
  out.run.name = head.at("run").get<std::string>();
  out.run.seed = head.at("seed").get<std::int64_t>();
  out.run.canonical_config = head.at("config").get<std::string>();
  out.run.config_fingerprint = head.at("config_fingerprint").get<std::string>();
  out.run.tool_version = head.at("tool_version").get<std::string>();
  out.run.source_revision = head.at("source_revision").get<std::string>();
  out.model = head.at("model").get<std::string>();
  out.claimed_context = head.at("claimed").get<std::int64_t>();
  out.trained_context = optional_at<std::int64_t>(head, "trained");
  for (const json& cell : head.at("unbuilt")) out.unbuilt.push_back(read_cell(cell));
  return out;
}

}  // namespace

std::string prompt_line_json(const PromptLine& line, PromptIds ids, const PromptFileHead* head) {
  const task::Sample& sample = line.sample;
  const bool prefixed = !sample.answer_prefix.empty() && ends_with(sample.prompt_text, sample.answer_prefix);
  const std::string prefix = prefixed ? sample.answer_prefix : "";
  std::vector<std::int64_t> gold_tokens;
  json needles = json::array();
  for (const task::NeedlePlace& needle : sample.needles) {
    if (needle.gold) gold_tokens.push_back(needle.first_token);
    needles.push_back(needle_json(needle));
  }
  ordered_json own{{"format", kPromptFormat},
                   {"task_version", sample.task_version},
                   {"sample", sample.index},
                   {"seed", sample.seed},
                   {"sample_key", sample.key},
                   {"depth_bp", optional_json(sample.depth_bp)},
                   {"control", task::to_string(sample.control)},
                   {"prompt_tokens", sample.prompt_tokens()},
                   {"generation_budget", sample.generation_budget},
                   {"think_budget", sample.think_budget},
                   {"haystack_units", sample.haystack_units},
                   {"needles", std::move(needles)},
                   {"answer_text", sample.answer_text},
                   {"metric", task::to_string(sample.metric)},
                   {"whole_words", sample.whole_words},
                   {"first_line", sample.first_line},
                   {"labels", sample.labels},
                   {"in_text_guess", line.in_text_guess},
                   {"blind_guess", line.blind_guess},
                   {"own_length", line.own_length},
                   {"add_bos", line.add_bos},
                   {"stop", line.stops}};
  if (head != nullptr) own["head"] = head_json(*head);
  ordered_json object{{"index", line.index},
                      {"task", sample.task},
                      {"variant", task::to_string(sample.variant)},
                      {"input", sample.prompt_text.substr(0, sample.prompt_text.size() - prefix.size())},
                      {"answer_prefix", prefix},
                      {"outputs", sample.references},
                      {"length", sample.length_tokens},
                      {"length_w_model_temp", sample.length_tokens - sample.slack_tokens()},
                      {"max_new_tokens", sample.generation_budget + sample.think_budget},
                      {"depth", sample.depth_bp ? json(static_cast<double>(*sample.depth_bp) / 100) : json(nullptr)},
                      {"token_position_answer", gold_tokens},
                      {"key", sample.address}};
  if (ids == PromptIds::kWrite) object["input_ids"] = sample.prompt_ids;
  object["fathom"] = std::move(own);
  try {
    return object.dump();
  } catch (const json::exception& error) {
    throw DataError(
        fmt::format("generate: {} (sample {}) cannot be written as JSON: {}", sample.task, sample.index, error.what()));
  }
}

PromptLineName read_prompt_name(std::string_view text, const std::string& where) {
  return read_line(text, where, [](const json& object) {
    own_part(object);
    return PromptLineName{object.at("key").get<std::string>(), object.at("index").get<std::int64_t>()};
  });
}

PromptLine read_prompt_line(std::string_view text, const std::string& where) {
  return read_line(text, where, line_of);
}

PromptFileHead read_prompt_head(std::string_view text, const std::string& where) {
  return read_line(text, where, head_of);
}

}  // namespace fathom::cli
