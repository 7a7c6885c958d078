// Result JSON of lm-evaluation-harness. Its RULER tasks keep the length in the metric's name ("4096,none") and write -1
// for a length that was not run.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/import/import_format.h"

namespace fathom::import {
namespace {

using nlohmann::json;

/// Its names for RULER's tasks that are not ours.
std::string ruler_task_name(const std::string& name) {
  static const std::map<std::string, std::string> kNames = {{"ruler_vt", "vt"},
                                                            {"ruler_cwe", "cwe"},
                                                            {"ruler_fwe", "fwe"},
                                                            {"ruler_qa_squad", "qa_1"},
                                                            {"ruler_qa_hotpot", "qa_2"}};
  const auto found = kNames.find(name);
  return found == kNames.end() ? name : found->second;
}

/// The length in a metric's name: "4096,none" or "4096".
std::optional<std::int64_t> length_of_metric(std::string_view metric) {
  const auto length = parse_int(metric.substr(0, metric.find(',')));
  return length && *length > 0 ? length : std::nullopt;
}

std::optional<std::int64_t> samples_of(const json& document, const std::string& task) {
  const auto found = document.find("n-samples");
  if (found == document.end() || !found->is_object() || !found->contains(task)) return std::nullopt;
  const json& counts = (*found)[task];
  return counts.is_object() && counts.contains("effective") && counts["effective"].is_number_integer()
             ? std::optional<std::int64_t>(counts["effective"].get<std::int64_t>())
             : std::nullopt;
}

std::string text_at(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

/// "pretrained=NAME,dtype=…" or the stored model name.
std::string model_of(const json& document) {
  std::string name = text_at(document, "model_name");
  if (!name.empty()) return name;
  const json config = document.value("config", json::object());
  for (const std::string& part : split_list(text_at(config, "model_args"))) {
    for (const std::string key : {"pretrained=", "model="}) {
      if (starts_with(part, key)) return part.substr(key.size());
    }
  }
  return text_at(config, "model");
}

store::ImportedSource source_of(const json& document, const ImportRequest& request) {
  const json& results = document.at("results");
  store::ImportedRow row;
  row.model = request.model.value_or(model_of(document));
  if (row.model.empty()) {
    throw ConfigError(fmt::format("import: {} does not name its model; add --model NAME", request.path));
  }
  row.provenance = fmt::format("{} ({})", request.path, hash_hex(request.text));
  for (const char* key : {"git_hash", "lm_eval_version", "transformers_version"}) {
    const std::string text = text_at(document, key);
    if (!text.empty()) row.provenance += fmt::format("; {} {}", key, text);
  }
  const json groups = document.value("groups", json::object());
  std::int64_t n_without_length = 0;
  for (const auto& [task, metrics] : results.items()) {
    if (groups.contains(task) || !metrics.is_object()) continue;
    for (const auto& [metric, value] : metrics.items()) {
      if (!value.is_number() || metric.find("_stderr") != std::string::npos) continue;
      const auto length = length_of_metric(metric);
      if (!length) {
        ++n_without_length;
        continue;
      }
      const double score = value.get<double>();
      if (score < 0) continue;  // not run
      if (score > 1) {
        throw DataError(
            fmt::format("{}: {} at {} is {}; a share of 0 to 1 is expected", request.path, task, metric, score));
      }
      row.scores.push_back({ruler_task_name(task), *length, 100 * score, samples_of(document, task)});
    }
  }
  if (row.scores.empty()) {
    throw DataError(fmt::format(
        "{}: no score is given by length ({} metrics without one); RULER's tasks in lm-evaluation-harness have them",
        request.path, n_without_length));
  }
  if (n_without_length > 0) row.note = fmt::format("{} metrics without a length left out", n_without_length);
  store::ImportedSource source;
  source.name = "lm-evaluation-harness";
  source.format = "lm-eval";
  source.provenance = "its port of RULER differs in wording and scoring; 100 × its scores, lengths as it names them";
  source.rows.push_back(std::move(row));
  return source;
}

store::ImportedSource read_lm_eval(const ImportRequest& request) {
  try {
    return source_of(json::parse(request.text), request);
  } catch (const json::exception& error) {
    throw DataError(fmt::format("{}: no result file of lm-evaluation-harness: {}", request.path, error.what()));
  }
}

}  // namespace

ImportEntry entries::lm_eval_entry() {
  return {"lm-eval", "result JSON of lm-evaluation-harness: every score that has a length", "", &read_lm_eval};
}

}  // namespace fathom::import
