#pragma once
// What a run hands to its store: runs, models, variants and per-sample rows. Plain data, no averages.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/types.h"
#include "harness/task/sample.h"

namespace fathom::eval {

/// Statuses of specification 0.7.
enum class SampleStatus { kOk, kTooShort, kTooLong, kOutOfMemory, kNoPosition, kEngineError, kCancelled };
std::string_view to_string(
    SampleStatus status);  // "ok", "too_short", "too_long", "oom", "no_position", "engine_error", "cancelled"
/// \throws DataError
SampleStatus parse_sample_status(std::string_view text);

struct RunRecord {
  std::string name;
  std::string canonical_config;
  std::string config_fingerprint;
  std::string tool_version;
  std::string source_revision;
  std::string library_versions;
  std::string hardware;  ///< processor, cores, memory: one line
  std::int64_t seed = 0;
  std::string started_at;  ///< UTC, ISO 8601
};

/// One model setting of a run (a row of the summary table).
struct VariantRecord {
  std::string name;   ///< unique in the run
  std::string model;  ///< checkpoint or section name
  std::string weights_hash;
  std::string position;  ///< scheme
  std::optional<double> rope_base;
  std::string scaling;               ///< method
  std::optional<double> factor;      ///< nothing = auto
  std::string position_description;  ///< canonical text of what was resolved
  std::string resolved_json;         ///< per layer: frequencies and factors, as `inspect --json` prints them
  std::int64_t parameters = 0;
  std::int64_t claimed_context = 0;
  std::optional<std::int64_t> trained_context;
  std::optional<std::int64_t> train_seed;
  std::optional<std::int64_t> train_steps;
  std::optional<double> train_seconds;
  std::optional<double> train_accuracy;  ///< moving average of the last answers at the trained length
  std::optional<bool> mastered;          ///< trained models: reached mastery within the budget
  std::string dtype, device, kernel;
};

struct ScoreValue {
  std::string scorer;
  std::int32_t scorer_version = 0;
  std::optional<double> value;
  std::string answer;
  std::string explanation;
};

/// One sample under one variant.
struct SampleRecord {
  std::string variant;  ///< VariantRecord::name
  task::Sample sample;  ///< prompt text and ids included; the store keeps each text once, by hash
  std::string
      result_key;  ///< hex hash: sample address + model, position, dtype, kernel, batch ceiling (specification 0.4)
  SampleStatus status = SampleStatus::kOk;
  std::string status_detail;  ///< reason; with the smallest length that would do for too_short
  std::optional<std::int64_t> smallest_length_tokens;
  TokenIds reply_ids;
  std::string reply_text;
  bool budget_hit = false;
  std::vector<ScoreValue> scores;
  double seconds = 0;
  std::int64_t computed_tokens = 0;
  std::int64_t peak_rss_bytes = 0;
  double in_text_guess = 0;  ///< 0..1, of the cell
  double blind_guess = 0;
  bool own_length = false;  ///< the task has sizes of its own: the length is no point of the sweep's axis
  std::string control;      ///< "" = none; no_needle, needle_only, …
};

/// A cell that cannot be built: shown, counted, never scored 0.
struct CellRecord {
  std::string variant;
  task::TaskName task;
  std::int64_t length_tokens = 0;
  std::optional<std::int32_t> depth_bp;
  SampleStatus status = SampleStatus::kTooShort;
  std::string detail;
  std::optional<std::int64_t> smallest_length_tokens;
};

}  // namespace fathom::eval
