#pragma once
// Results of other tools: scores by model, task and length, without samples. They never mix with measured rows; reports
// show them beside these.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fathom::store {

/// Score of one task at one length.
struct ImportedScore {
  std::string task;  ///< "" = the source's own mean over its tasks
  std::int64_t length_tokens = 0;
  double percent = 0;
  std::optional<std::int64_t> n_samples;
};

/// One model of a source.
struct ImportedRow {
  std::string model;
  std::optional<std::int64_t> claimed_tokens;
  std::string listed_effective;  ///< the source's own word: "64K", ">128K", "<4K"; empty = none
  double threshold_percent = 85.6;
  bool strict = true;                  ///< the score must lie above the threshold, else at or above it
  std::optional<double> base_percent;  ///< where the threshold is a share of it
  bool self_reported = false;          ///< by the model's makers
  std::string note;
  std::string provenance;  ///< file, hash, tool and version of this row
  std::vector<ImportedScore> scores;
};

struct ImportedSource {
  std::string name;        ///< "RULER (published)"
  std::string format;      ///< of `fathom import`
  std::string provenance;  ///< where the numbers come from and what to keep in mind; lines
  std::vector<ImportedRow> rows;
};

/// Adds the rows to the source of that name; a row or score that is there already is replaced, so that importing twice
/// changes nothing. One transaction. Creates the database if there is none.
/// \throws StoreError
void put_import(const std::string& path, const ImportedSource& source);

}  // namespace fathom::store
