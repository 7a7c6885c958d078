#include "reports/theory_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/core/text_util.h"
#include "reports/format.h"

namespace fathom::reports {
namespace {

using analysis::TheoryPrediction;

struct Theory {
  const char* label;
  std::optional<double> (*prediction)(const TheoryPrediction& prediction);
};

constexpr Theory kTheories[] = {
    {"theory_seen_angles", [](const TheoryPrediction& p) { return p.seen_angles; }},
    {"theory_extrapolation", [](const TheoryPrediction& p) { return p.extrapolation; }},
    {"theory_base_bound", [](const TheoryPrediction& p) { return p.base_bound; }},
    {"theory_alibi", [](const TheoryPrediction& p) { return p.alibi_horizon; }},
    {"theory_wrapped",
     [](const TheoryPrediction& p) {
       return p.n_channels > 0 ? std::optional<double>(static_cast<double>(p.wrapped_trained)) : std::nullopt;
     }},
};

/// Tokens on a scale that orders censored values too: half the first length where nothing passes.
std::optional<double> measured_tokens(const analysis::EffectiveValue& value) {
  if (value.tokens) return static_cast<double>(*value.tokens);
  if (value.kind == analysis::Censoring::kLeft && value.first_tested) {
    return static_cast<double>(*value.first_tested) / 2;
  }
  return std::nullopt;
}

std::string predicted_text(const std::optional<double>& tokens) {
  return tokens ? format_count(std::llround(*tokens)) : std::string(kNothing);
}

}  // namespace

analysis::TheoryInput theory_input(const analysis::RunSummary& run, const analysis::VariantSummary& variant) {
  analysis::TheoryInput input;
  const eval::VariantRecord& record = variant.record;
  const auto json = nlohmann::json::parse(record.resolved_json, nullptr, false);
  if (json.is_discarded() || !json.contains("layers") || !json["layers"].is_array()) return input;
  bool windowed = false;  // a layer that sees everything stands for the model, where one rotates
  for (const auto& layer : json["layers"]) {
    const auto frequencies = layer.find("inv_freq");
    const bool sees_all = !layer.contains("window") || layer["window"].is_null();
    const bool better = input.inv_freq.empty() || (windowed && sees_all);
    if (better && frequencies != layer.end() && frequencies->is_array() && !frequencies->empty()) {
      windowed = !sees_all;
      input.inv_freq = frequencies->get<std::vector<double>>();
      const std::int64_t half_head = layer.value("d_head", std::int64_t{0}) / 2;
      input.n_still = std::max<std::int64_t>(0, half_head - static_cast<std::int64_t>(input.inv_freq.size()));
    }
    const auto parameters = layer.find("parameters");
    if (input.slopes.empty() && parameters != layer.end() && parameters->contains("slopes")) {
      input.slopes = (*parameters)["slopes"].get<std::vector<double>>();
    }
  }
  input.pretrained_base = record.rope_base.value_or(0);
  input.trained = record.trained_context.value_or(0);
  input.tested = run.lengths.empty() ? 0 : run.lengths.back();
  return input;
}

Table theory_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("theory_caption");
  table.columns = {{l("variant"), Align::kLeft}, {l("trained")}, {l("theory_wrapped")}};
  for (const Theory& theory : kTheories) {
    if (theory.label != std::string_view("theory_wrapped")) table.columns.push_back({l(theory.label)});
  }
  table.columns.push_back({l("measured")});
  for (const analysis::VariantSummary& variant : source.run.variants) {
    const TheoryPrediction prediction = analysis::predict_reach(theory_input(source.run, variant));
    if (prediction.n_channels == 0 && !prediction.alibi_horizon) continue;
    std::vector<Cell> row = {
        {visible_text(variant.record.name)},
        {variant.record.trained_context ? format_tokens(*variant.record.trained_context) : std::string(kNothing)},
        {prediction.n_channels > 0 ? fmt::format("{} / {}", prediction.wrapped_trained, prediction.n_channels)
                                   : std::string(kNothing)}};
    for (const Theory& theory : kTheories) {
      if (theory.label == std::string_view("theory_wrapped")) continue;
      row.push_back({predicted_text(theory.prediction(prediction))});
    }
    row.push_back({format_effective_text(variant.mean.relative)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table scorecard_table(const TableSource& source) {
  const Labels& l = source.labels;
  Table table;
  table.caption = l("scorecard_caption");
  table.columns = {{l("theory"), Align::kLeft}, {l("variants")}, {l("rank_correlation")}};
  std::vector<TheoryPrediction> predictions;
  for (const analysis::VariantSummary& variant : source.run.variants) {
    predictions.push_back(analysis::predict_reach(theory_input(source.run, variant)));
  }
  for (const Theory& theory : kTheories) {
    std::vector<double> predicted;
    std::vector<double> measured;
    for (std::size_t v = 0; v < predictions.size(); ++v) {
      const auto tokens = theory.prediction(predictions[v]);
      const auto effective = measured_tokens(source.run.variants[v].mean.relative);
      if (!tokens || !effective) continue;
      predicted.push_back(*tokens);
      measured.push_back(*effective);
    }
    if (predicted.size() < 3) continue;
    const auto correlation = analysis::rank_correlation(predicted, measured);
    table.rows.push_back({{l(theory.label)},
                          {std::to_string(predicted.size())},
                          {correlation ? fmt::format("{:+.2f}", *correlation) : std::string(kNothing)}});
  }
  return table;
}

Table matrix_table(const TableSource& source) {
  const Labels& l = source.labels;
  const auto row_name = [](const eval::VariantRecord& record) {
    if (!record.rope_base) return record.position;
    return fmt::format("{} θ={}", record.position, format_double(*record.rope_base));
  };
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  for (const analysis::VariantSummary& variant : source.run.variants) {
    const std::string row = row_name(variant.record);
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(row);
    const std::string& column = variant.record.scaling;
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) columns.push_back(column);
  }
  Table table;
  table.caption = replace_all(l("matrix_caption"), "{headline}",
                              source.run.headline_tasks.empty() ? l("the_mean") : headline_name(source));
  if (rows.size() < 2 || columns.size() < 2) return table;
  table.columns = {{l("position"), Align::kLeft}};
  for (const std::string& column : columns) table.columns.push_back({visible_text(column)});
  for (const std::string& row : rows) {
    std::vector<Cell> cells = {{visible_text(row)}};
    for (const std::string& column : columns) {
      // Several variants in one place differ in something else, such as the seed.
      std::vector<std::string> values;
      for (const analysis::VariantSummary& variant : source.run.variants) {
        if (row_name(variant.record) != row || variant.record.scaling != column) continue;
        const std::string value = format_effective_text(variant.mean.absolute);
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
      }
      cells.push_back({values.empty() ? std::string(kNothing) : join(values, ", ")});
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace fathom::reports
