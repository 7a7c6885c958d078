#pragma once
// What the evaluator knows of a model: token ids in, token ids and log-probabilities out. Torch-free.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/types.h"

namespace fathom::lm {

/// A text to be scored by teacher forcing: the first `keep` ids of the request's prompt, then `ids`.
/// `keep` may be smaller than the prompt where the tokenizer merges prompt and answer differently when they stand
/// together.
struct Continuation {
  std::int64_t keep = 0;
  TokenIds ids;
};

struct Request {
  TokenIds prompt;                  ///< complete: BOS, chat template and answer prefix included; never empty
  std::int64_t max_new_tokens = 0;  ///< 0 = generate nothing, score the continuations only
  std::vector<TokenId> stop_ids;    ///< generation ends before any of these; the stop id is not part of the completion
  std::vector<Continuation> continuations;
};

enum class FinishReason { kStop, kBudget };

struct ContinuationScore {
  std::vector<double> logprobs;  ///< natural logarithm of p(ids[i] | what stands before it), one per id
  std::vector<std::int64_t>
      ranks;  ///< 1 + number of vocabulary entries with a larger logit, one per id; 1 = greedy would say it
};

struct Completion {
  TokenIds ids;  ///< generated ids only, stop id excluded
  FinishReason finish = FinishReason::kBudget;
  std::vector<ContinuationScore> continuations;  ///< same order as in the request
  double seconds = 0;                            ///< share of this request in the wall time of the batch
  double decode_seconds = 0;                     ///< share in the part of that time which went into ids after the first
  std::int64_t computed_tokens =
      0;                       ///< prompt tokens that really went through the network (a shared prefix counts once)
  std::string error;           ///< empty = fine; otherwise this request failed and the other members are empty
  bool out_of_memory = false;  ///< `error` was an allocation failure
};

/// What has to stand in a result's address besides the sample.
struct ModelIdentity {
  std::string name;
  std::string weights_hash;  ///< hex; identity of the checkpoint
  std::string position;      ///< canonical text of the resolved position settings in force
  std::string device;        ///< "cpu" or "cuda"
  std::string dtype;         ///< "float32" or "bf16"
  std::string kernel;        ///< name and version of the attention path
  std::int64_t parameters = 0;
};

/// Decodes greedily. Not thread-safe: one caller at a time.
class LanguageModel {
 public:
  virtual ~LanguageModel() = default;

  /// Answers all requests of one batch, in order. The batch is what the plan says, so equal batches give equal numbers.
  /// A failure of a single request is reported in its Completion, not thrown. \throws Interrupted if asked to stop.
  virtual std::vector<Completion> complete(const std::vector<Request>& batch) = 0;

  /// Longest sequence the model can represent at all (a learned table), or nothing if there is no such limit.
  virtual std::optional<std::int64_t> max_positions() const = 0;
  virtual std::int64_t vocab_size() const = 0;
  virtual ModelIdentity identity() const = 0;
};

}  // namespace fathom::lm
