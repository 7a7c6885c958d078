#pragma once
// Training rows in the wording of the `synthetic` prompt pack. Torch-free; a batch is a pure function of its plan and
// the stream.

#include <cstdint>
#include <vector>

#include "harness/core/random.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::train {

enum class RowTask { kNiah, kVariableTracking, kKeyValue };

/// What one batch shall be: one length, one task, one count of needles.
struct BatchPlan {
  RowTask task = RowTask::kNiah;
  std::int64_t length_tokens = 0;
  std::int64_t n_rows = 0;
  std::int64_t n_copy_rows = 0;           ///< the first rows are repeated random words (the plateau breaker)
  std::int64_t n_needles = 0;             ///< niah: needles; key-value: pairs
  std::int64_t n_queries = 0;             ///< niah, key-value
  std::int64_t n_chains = 0, n_hops = 0;  ///< variable tracking
  std::int64_t first_position = 0;
  bool at_frontier = false;  ///< the longest length so far: counts for mastery
};

/// A word to be predicted: position `place` of the flattened batch predicts `target`.
struct Answer {
  std::int64_t place = 0;
  std::int64_t target = 0;
};

struct Batch {
  std::vector<std::int64_t> ids;  ///< [n_rows, length_tokens]
  std::vector<Answer> answers;    ///< those of copy rows come first
  std::int64_t n_copy_answers = 0;
};

class Batcher {
 public:
  Batcher(const text::WordTokenizer& words, bool bos);

  Batch make(const BatchPlan& plan, RngStream& rng) const;

  /// Queries that fit beside the needles and still leave some filler.
  std::int64_t fitting_queries(std::int64_t length_tokens, std::int64_t n_needles, std::int64_t most) const;
  /// Chains of n_hops variables that fit.
  std::int64_t fitting_chains(std::int64_t length_tokens, std::int64_t n_hops, std::int64_t most) const;
  /// Key-value pairs that fill a row beside its queries.
  std::int64_t fitting_pairs(std::int64_t length_tokens, std::int64_t n_queries) const;

 private:
  using Words = std::vector<std::int64_t>;
  struct Pool {
    std::int64_t begin = 0;
    std::int64_t size = 0;
  };

  std::int64_t draw(const Pool& pool, RngStream& rng) const;
  Words draw_different(const Pool& pool, std::int64_t count, RngStream& rng) const;
  void append_prose(std::int64_t n_words, const std::vector<Words>& needles, RngStream& rng, Words& row) const;
  void niah_row(const BatchPlan& plan, RngStream& rng, Words& row, std::vector<Answer>& answers) const;
  void key_value_row(const BatchPlan& plan, RngStream& rng, Words& row, std::vector<Answer>& answers) const;
  void variable_tracking_row(const BatchPlan& plan, RngStream& rng, Words& row, std::vector<Answer>& answers) const;
  void copy_row(const BatchPlan& plan, std::int64_t period, RngStream& rng, Words& row,
                std::vector<Answer>& answers) const;
  void append_queries(const BatchPlan& plan, const Words& keys, const Words& values, RngStream& rng, Words& row,
                      std::vector<Answer>& answers) const;

  std::int64_t bos_, stop_, note_, ask_, set_;
  bool starts_with_bos_;
  Pool keys_, values_, fillers_, copied_;
};

}  // namespace fathom::train
