#pragma once
// A run made ready: the configuration's variants with their models, tokenizers, tasks and plans. What `run` and `run
// --dry-run` share.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/checkpoint/checkpoint.h"
#include "harness/cli/console.h"
#include "harness/config/run_config.h"
#include "harness/config/sweep.h"
#include "harness/engine/torch_language_model.h"
#include "harness/eval/evaluator.h"
#include "harness/eval/plan.h"
#include "harness/text/chat_template.h"
#include "harness/train/trainer.h"

namespace fathom::cli {

/// One checkpoint or one model trained here, shared by all variants that differ in position settings only.
struct SessionModel {
  std::string name;                                    ///< file stem, or the training's scheme
  std::optional<train::TrainSpec> train_spec;          ///< set for models trained here
  std::string path;                                    ///< checkpoint file or folder
  std::unique_ptr<checkpoint::Checkpoint> checkpoint;  ///< null before training
  checkpoint::DecoderConfig declared;                  ///< the checkpoint's, or what the training will make
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<text::PromptAssembler> assembler;
  std::map<std::string, std::shared_ptr<const engine::LoadedWeights>>
      weights;  ///< by configured dtype; empty until load()
  std::optional<train::TrainOutcome> outcome;
  std::int64_t claimed_context = 0;
  std::optional<std::int64_t> trained_context;
  std::map<std::string, std::unique_ptr<task::Task>> tasks;  ///< by full name

  /// What "2x" and the factor "auto" refer to.
  std::int64_t reference_context() const { return trained_context.value_or(claimed_context); }
};

struct SessionVariant {
  config::ModelVariant settings;
  std::size_t model = 0;  ///< index into RunSession::models()
  eval::SweepPlan plan;
};

class RunSession {
 public:
  /// Opens checkpoints, builds tokenizers, tasks and plans; trains nothing, loads no weights.
  /// \throws ConfigError  also where a length is too short for every task, and for what training or a position
  /// setting would be refused for later.
  explicit RunSession(config::RunConfig config);

  const config::RunConfig& config() const { return config_; }
  std::vector<std::unique_ptr<SessionModel>>& models() { return models_; }
  std::vector<SessionVariant>& variants() { return variants_; }
  const engine::EngineOptions& engine_options() const { return engine_options_; }

  /// Trains (or finds in the cache), opens and loads the model of a variant, if that is not done yet.
  void load(SessionModel& model, const std::string& dtype, ProgressLine& line);
  eval::VariantRecord variant_record(const SessionVariant& variant);
  /// Hash of what shapes samples and is not in the configuration itself: haystack text, prompt pack, tokenizers.
  std::string content_fingerprint() const;

  /// The position settings of a variant at a tested length.
  checkpoint::DecoderConfig resolved_config(const SessionVariant& variant, std::int64_t length_tokens) const;
  /// Lengths of the variant at which every token of an answer costs a whole prompt, ascending.
  std::vector<std::int64_t> recomputed_lengths(const SessionVariant& variant) const;

 private:
  void add_variant(const config::ModelVariant& settings);
  std::size_t model_index(const config::ModelVariant& settings);
  void make_assembler(SessionModel& model);
  eval::SweepPlan make_plan(SessionModel& model, const config::ModelVariant& settings);
  void check_lengths() const;
  void check_positions() const;

  config::RunConfig config_;
  SignalStop stop_;  ///< asked by training and by the engine, so that Ctrl-C does not wait for a long prefill
  engine::EngineOptions engine_options_;
  std::shared_ptr<const text::TextCorpus> corpus_;
  std::string pack_fingerprints_;
  std::vector<std::unique_ptr<SessionModel>> models_;
  std::map<std::string, std::size_t> model_by_id_;
  std::vector<SessionVariant> variants_;
};

/// Models of one variant, length by length.
class VariantModels : public eval::ModelProvider {
 public:
  VariantModels(RunSession& session, const SessionVariant& variant) : session_(session), variant_(variant) {}
  lm::LanguageModel& model_for(std::int64_t length_tokens) override;

 private:
  RunSession& session_;
  const SessionVariant& variant_;
  std::string current_;  ///< describe_position of what `model_` runs
  std::unique_ptr<lm::LanguageModel> model_;
};

/// What the sweep expansion must know of the registries.
config::SweepTraits sweep_traits();

}  // namespace fathom::cli
