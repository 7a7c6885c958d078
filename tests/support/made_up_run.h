#pragma once
// Made-up results for tests of the store, the analysis and the reports: no model, no tasks, only records.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/eval/result_sink.h"

namespace fathom::test {

eval::RunRecord made_up_run_record(const std::string& name);
eval::VariantRecord made_up_variant(const std::string& name);

struct MadeUpCell {
  std::string task = "niah_single_2";
  std::int64_t length_tokens = 256;
  std::optional<std::int32_t> depth_bp = 5000;
};

/// One answered sample with the scores "all" (as given, nothing = not scored) and "first".
eval::SampleRecord made_up_sample(const std::string& variant, const MadeUpCell& cell, std::int64_t index,
                                  std::optional<double> score);

/// `count` samples of one cell from index `first` on; even ones score 1, odd ones 0.
std::vector<eval::SampleRecord> made_up_batch(const std::string& variant, std::int64_t first, std::int64_t count);

struct MadeUpSweep {
  std::vector<eval::VariantRecord> variants;
  std::vector<std::string> tasks = {"niah_multikey_1", "niah_single_2", "vt"};
  std::vector<std::int64_t> lengths_tokens = {128, 256, 512, 1024, 2048};
  int depth_step_percent = 10;
  std::int64_t n_samples = 10;
  std::optional<double> fixed_score;  ///< every answer scores this
  double flip_share = 0;              ///< of answers that are the other way round in this run alone
};

/// RoPE with five scalings and ALiBi, trained on 512 tokens. Kinds: "" that; "small" two variants, few samples; "one"
/// variant; "many" 40 variants; "theta" two scalings at four bases; "unicode" hostile names; "empty" no results;
/// "zeros" and "ones" the same score everywhere; "million" ten variants with 1,000,480 samples; "half" the same with
/// half of them.
MadeUpSweep made_up_sweep(const std::string& kind = "");

/// Fills a run: accuracy falls with length (later with a better scaling), with a weak spot in the middle depths.
/// niah_multikey_1 is too short at 128 tokens. Everything is a pure function of the arguments.
void put_made_up_run(eval::ResultSink& sink, const std::string& name, const MadeUpSweep& sweep);

}  // namespace fathom::test
