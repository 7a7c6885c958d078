#pragma once
// Runs the work list of one variant: samples are built, answered, scored and handed to the sink, batch by batch.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/core/log.h"
#include "harness/eval/plan.h"
#include "harness/eval/result_sink.h"
#include "harness/lm/language_model.h"
#include "harness/scoring/scorer.h"
#include "harness/text/chat_template.h"

namespace fathom::eval {

/// Gives the model of a variant with the position settings that apply at a length (a scaling factor of tested over
/// trained length changes with it).
class ModelProvider {
 public:
  virtual ~ModelProvider() = default;
  /// The reference stays valid until the next call.
  virtual lm::LanguageModel& model_for(std::int64_t length_tokens) = 0;
};

struct EvalProgress {
  std::int64_t samples_done = 0;  ///< finished earlier ones included
  std::int64_t samples_total = 0;
  std::int64_t samples_failed = 0;
  std::int64_t tokens_done = 0;        ///< prompt tokens answered in this sitting
  double busy_seconds = 0;             ///< time the model worked in this sitting
  double remaining_tokens_weight = 0;  ///< prompt tokens still to do
  std::string cell;                    ///< "niah_single_2 2048"
};

struct EvalOptions {
  std::string variant;  ///< VariantRecord::name
  bool graded = true;   ///< teacher-forced scores of the candidates
  const StopToken* stop = nullptr;
  std::function<void(const EvalProgress&)> progress;
  std::function<std::int64_t()> peak_rss_bytes;  ///< the library does not ask the system itself
};

struct EvalSummary {
  std::int64_t samples_done = 0;     ///< answered in this sitting
  std::int64_t samples_skipped = 0;  ///< already in the store
  std::int64_t samples_reused = 0;   ///< answered by the run that the sink reuses
  std::int64_t samples_failed = 0;
};

/// What an answer depends on beside question and model.
struct AnswerSettings {
  std::int64_t batch_tokens = 0;
  bool graded = true;
};

/// Identity of a result: variant, sample address, model, resolved position, device, dtype, kernel and batch ceiling
/// (specification 0.4). The variant belongs to it because two variants may resolve to equal settings at one length (a
/// factor of 1), and each needs its own rows.
std::string result_key(const SampleRecord& row, const lm::ModelIdentity& model, const AnswerSettings& settings);

/// Values of every scorer that applies to one answered sample, from whatever engine the reply comes.
/// \param graded  false: no teacher-forced scores are at hand; scorers that need them are left out.
std::vector<ScoreValue> score_reply(const scoring::ScoredReply& reply, bool graded);

/// Answers everything in `plan` that neither `finished` holds nor the sink can take over, a whole batch at a time.
/// \throws Interrupted between batches if asked to stop; everything before is in the sink.
EvalSummary evaluate(const SweepPlan& plan, ModelProvider& models, const text::PromptAssembler& assembler,
                     const std::set<std::string>& finished, ResultSink& sink, const EvalOptions& options);

}  // namespace fathom::eval
