#pragma once
// Retention: old runs lose their samples and keep what a history needs.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::store {

/// Effective context of one variant (mean over tasks) by one rule, as it was when the samples were dropped.
struct KeptEffective {
  std::string variant;
  std::string rule;  ///< "absolute", "relative"
  std::string kind;  ///< "exact", "none", "left", "right"
  std::optional<std::int64_t> tokens, first_tested;
  std::optional<std::int64_t> low_tokens, high_tokens;  ///< nothing at the low end: left of the first length
  bool has_interval = false;
  std::optional<double> average;  ///< percent, mean over lengths
};

/// Score of one task at one length, depths pooled.
struct KeptScore {
  std::string variant;
  std::string task;  ///< label; "" = mean over tasks
  std::int64_t length_tokens = 0;
  std::int64_t n_values = 0;
  std::optional<double> mean, low, high;  ///< 0..1
};

struct KeptRun {
  std::vector<KeptEffective> effective;
  std::vector<KeptScore> scores;
};

/// Finished runs that started more than `days` days ago and still have their samples, oldest first. Brings an older
/// database up to date. \throws StoreError
std::vector<std::string> runs_older_than(const std::string& path, std::int64_t days);

/// Stores what is kept and drops every sample of the run, in one transaction; prompts and samples that no other run has
/// go too. \return number of results dropped. \throws StoreError for an unknown run or variant.
std::int64_t drop_samples(const std::string& path, const std::string& run, const KeptRun& kept);

/// Stands where the words of a prompt or reply were dropped.
inline constexpr std::string_view kDroppedText = "…";

/// Replaces every prompt and reply of the database by "…" and drops their token ids, in one transaction: what was asked
/// and said is gone, every score stays, and a run that was stopped goes on. Blank replies stay blank. \return number of
/// prompts whose text was dropped. \throws StoreError
std::int64_t drop_texts(const std::string& path);

/// Gives the space of dropped rows back to the file system.
void compact(const std::string& path);

}  // namespace fathom::store
