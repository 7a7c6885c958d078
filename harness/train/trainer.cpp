#include "harness/train/trainer.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/random.h"
#include "harness/model/decoder_lm.h"
#include "harness/model/linear_function.h"
#include "harness/model/ops_train.h"
#include "harness/model/weights.h"
#include "harness/train/batcher.h"
#include "harness/train/curriculum.h"
#include "harness/train/model_setup.h"
#include "harness/train/optimizer.h"
#include "harness/train/recipe.h"
#include "harness/train/train_state.h"

namespace fathom::train {
namespace {

constexpr double kProgressSeconds = 0.25;
constexpr double kStateSeconds = 5;
constexpr std::int64_t kLogSteps = 25;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A throw-away head that predicts the word some places back (recipe B): LayerNorm and a matrix.
struct AuxiliaryHead : public torch::nn::Module {
  AuxiliaryHead(std::int64_t d_model, std::int64_t vocab_size, const RngKey& key) {
    norm_weight = register_parameter("norm_weight", torch::ones({d_model}));
    norm_bias = register_parameter("norm_bias", torch::zeros({d_model}));
    torch::Tensor drawn = torch::empty({vocab_size, d_model});
    draw_uniform(drawn, d_model, key);
    matrix = register_parameter("matrix", drawn);
  }
  torch::Tensor logits(const torch::Tensor& rows) {
    return model::ops::train::linear(at::layer_norm(rows, {rows.size(-1)}, norm_weight, norm_bias), matrix, {});
  }
  torch::Tensor norm_weight, norm_bias, matrix;
};

/// All trainable values and gradients in one buffer each; the modules' tensors are views of them.
class FlatParameters {
 public:
  void add(torch::Tensor parameter, bool decays) {
    items_.push_back(parameter);
    decays_.insert(decays_.end(), static_cast<std::size_t>(parameter.numel()), decays ? 1 : 0);
  }
  void flatten() {
    const auto n = static_cast<std::int64_t>(decays_.size());
    values_ = torch::empty({n});
    gradients_ = torch::zeros({n});
    std::int64_t offset = 0;
    for (torch::Tensor& item : items_) {
      const auto view = [&](torch::Tensor& whole) { return whole.narrow(0, offset, item.numel()).view(item.sizes()); };
      view(values_).copy_(item.detach());
      item.set_data(view(values_));
      item.mutable_grad() = view(gradients_);
      offset += item.numel();
    }
  }
  void zero_gradients() { gradients_.zero_(); }
  const std::vector<std::uint8_t>& decays() const { return decays_; }
  float* values() { return values_.data_ptr<float>(); }
  const float* gradients() const { return gradients_.data_ptr<float>(); }
  std::int64_t size() const { return values_.numel(); }

 private:
  std::vector<torch::Tensor> items_;
  std::vector<std::uint8_t> decays_;
  torch::Tensor values_, gradients_;
};

torch::Tensor to_tensor(const std::vector<std::int64_t>& values) {
  return torch::from_blob(const_cast<std::int64_t*>(values.data()), {static_cast<std::int64_t>(values.size())},
                          torch::kInt64)
      .clone();
}

double share_right(const torch::Tensor& right, std::int64_t begin, std::int64_t end) {
  return right.slice(0, begin, end).to(torch::kFloat32).mean().item<double>();
}

/// One model in training: weights, optimiser, curriculum. Knows nothing of files or time.
class TrainingRun {
 public:
  TrainingRun(const TrainSpec& spec, const Recipe& recipe, const text::WordTokenizer& words)
      : recipe_(recipe),
        key_(fmt::format("fathom-train|{}/{}|seed={}", recipe.name, recipe.version, spec.seed)),
        batcher_(words, recipe.bos),
        curriculum_(spec, recipe),
        decoder_(std::make_shared<model::DecoderLm>(make_training_config(spec, recipe, words.vocab_size()),
                                                    torch::kFloat32)) {
    draw_weights(*decoder_, recipe, key_.child("weights"));
    for (const auto& item : decoder_->named_parameters())
      parameters_.add(item.value(), decays_weight(item.key(), item.value()));
    for (std::int64_t i = 0; i < recipe.auxiliary_heads; ++i) {
      heads_.push_back(
          std::make_shared<AuxiliaryHead>(recipe.d_model, words.vocab_size(), key_.child("auxiliary").child(i)));
      for (const torch::Tensor& parameter : heads_.back()->parameters()) parameters_.add(parameter, false);
    }
    parameters_.flatten();
    optimizer_ = std::make_unique<FlatAdamW>(
        AdamWSettings{recipe.beta1, recipe.beta2, recipe.epsilon, recipe.weight_decay, recipe.clip_norm},
        parameters_.decays());
  }

  /// One optimiser step. Returns the loss.
  double step() {
    RngStream rng(key_.child("step").child(steps_));
    const BatchPlan plan = curriculum_.plan(batcher_, rng);
    const Batch batch = batcher_.make(plan, rng);
    parameters_.zero_gradients();
    StepResult result;
    const double loss = forward_backward(plan, batch, rng, result);
    optimizer_->step(steps_, curriculum_.learning_rate(steps_), parameters_.gradients(), parameters_.values());
    grew_ = curriculum_.observe(steps_, plan, result);
    tokens_ += static_cast<std::int64_t>(batch.ids.size());
    ++steps_;
    return loss;
  }

  bool finished() const { return curriculum_.finished(steps_); }
  bool grew() const { return grew_; }
  std::int64_t steps() const { return steps_; }
  std::int64_t tokens() const { return tokens_; }
  const Curriculum& curriculum() const { return curriculum_; }
  model::DecoderLm& decoder() { return *decoder_; }

  TrainState state() {
    TrainState out;
    out.steps = steps_;
    out.curriculum = curriculum_.state();
    out.values.assign(parameters_.values(), parameters_.values() + parameters_.size());
    out.first_moment = optimizer_->first_moment();
    out.second_moment = optimizer_->second_moment();
    return out;
  }

  void restore(const TrainState& state) {
    if (static_cast<std::int64_t>(state.values.size()) != parameters_.size() ||
        state.first_moment.size() != state.values.size() || state.second_moment.size() != state.values.size()) {
      throw DataError("train: the resumable state does not fit this model; delete it to train from the start");
    }
    steps_ = state.steps;
    curriculum_.set_state(state.curriculum);
    std::copy(state.values.begin(), state.values.end(), parameters_.values());
    optimizer_->first_moment() = state.first_moment;
    optimizer_->second_moment() = state.second_moment;
  }

 private:
  double forward_backward(const BatchPlan& plan, const Batch& batch, RngStream& rng, StepResult& result) {
    const model::Bf16ProductScope bf16_products;
    const torch::Tensor ids = to_tensor(batch.ids).view({plan.n_rows, plan.length_tokens});
    model::ForwardInput input;
    input.ids = ids;
    input.positions = torch::arange(plan.first_position, plan.first_position + plan.length_tokens, torch::kInt64)
                          .unsqueeze(0)
                          .expand({plan.n_rows, plan.length_tokens});
    std::vector<std::int64_t> places, targets;
    for (const Answer& answer : batch.answers) {
      places.push_back(answer.place);
      targets.push_back(answer.target);
    }
    torch::Tensor auxiliary_input;
    const std::int64_t tapped = std::max<std::int64_t>(0, recipe_.n_layers - 2);  // the last block but one
    const torch::Tensor hidden = decoder_->hidden(input, [&](std::int64_t layer, const torch::Tensor& x) {
      if (layer == tapped && !heads_.empty()) auxiliary_input = x;
    });
    const torch::Tensor wanted = to_tensor(targets);
    const torch::Tensor logits =
        decoder_->logits(hidden.view({-1, recipe_.d_model}).index_select(0, to_tensor(places)));
    torch::Tensor loss = at::cross_entropy_loss(logits, wanted);
    const torch::Tensor right = logits.detach().argmax(-1).eq(wanted);
    if (batch.n_copy_answers > 0) result.copy_accuracy = share_right(right, 0, batch.n_copy_answers);
    const auto n_answers = static_cast<std::int64_t>(batch.answers.size());
    if (n_answers > batch.n_copy_answers) result.task_accuracy = share_right(right, batch.n_copy_answers, n_answers);
    if (!heads_.empty()) loss = loss + auxiliary_loss(plan, ids, auxiliary_input, rng);
    loss.backward();
    return loss.item<double>();
  }

  /// Cross-entropy of the words one and two back at sampled positions.
  torch::Tensor auxiliary_loss(const BatchPlan& plan, const torch::Tensor& ids, const torch::Tensor& hidden,
                               RngStream& rng) {
    torch::Tensor total;
    const torch::Tensor rows = hidden.reshape({-1, recipe_.d_model});
    const torch::Tensor words = ids.view({-1});
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const auto back = static_cast<std::int64_t>(i) + 1;
      std::vector<std::int64_t> places;
      for (std::int64_t s = 0; s < recipe_.auxiliary_samples; ++s) {
        const std::int64_t row = rng.uniform_int(0, plan.n_rows - 1);
        places.push_back(row * plan.length_tokens + rng.uniform_int(back, plan.length_tokens - 1));
      }
      const torch::Tensor place = to_tensor(places);
      const torch::Tensor loss =
          at::cross_entropy_loss(heads_[i]->logits(rows.index_select(0, place)), words.index_select(0, place - back));
      total = total.defined() ? total + loss : loss;
    }
    return total * (recipe_.auxiliary_weight / static_cast<double>(heads_.size()));
  }

  Recipe recipe_;
  RngKey key_;
  Batcher batcher_;
  Curriculum curriculum_;
  std::shared_ptr<model::DecoderLm> decoder_;
  std::vector<std::shared_ptr<AuxiliaryHead>> heads_;
  FlatParameters parameters_;
  std::unique_ptr<FlatAdamW> optimizer_;
  std::int64_t steps_ = 0;
  std::int64_t tokens_ = 0;
  bool grew_ = false;
};

/// training.jsonl: appended line by line, cut back to the saved state on resume.
class TrainingLog {
 public:
  TrainingLog(const std::string& path, std::int64_t keep_bytes) : path_(path), size_bytes_(keep_bytes) {
    std::error_code ignored;
    if (std::filesystem::exists(path)) {
      if (static_cast<std::int64_t>(std::filesystem::file_size(path, ignored)) < keep_bytes) size_bytes_ = 0;
      std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size_bytes_), ignored);
    } else {
      size_bytes_ = 0;
    }
    file_.open(path, std::ios::binary | std::ios::app);
  }
  void append(const nlohmann::ordered_json& line) {
    const std::string text = line.dump() + "\n";
    file_ << text << std::flush;
    if (!file_) throw DataError(fmt::format("train: cannot write '{}'", path_));
    size_bytes_ += static_cast<std::int64_t>(text.size());
  }
  std::int64_t size_bytes() const { return size_bytes_; }

 private:
  std::string path_;
  std::ofstream file_;
  std::int64_t size_bytes_;
};

/// The outcome that a finished folder records in the last line of its log; nothing if the folder is not finished.
std::optional<TrainOutcome> finished_outcome(const std::string& folder, const std::string& canonical) {
  if (!std::filesystem::exists(folder + "/config.json") || !std::filesystem::exists(folder + "/model.safetensors"))
    return std::nullopt;
  std::ifstream file(folder + "/training.jsonl");
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  const nlohmann::json json = nlohmann::json::parse(last, nullptr, false);
  if (!json.is_object() || json.value("event", "") != "finished") {
    throw DataError(fmt::format(
        "train: '{}' holds a model that was not made by a training (training.jsonl has no finish); use another folder",
        folder));
  }
  if (json.value("spec", "") != canonical) {
    throw DataError(fmt::format("train: '{}' holds a model of other settings; use another folder", folder));
  }
  TrainOutcome outcome;
  outcome.folder = folder;
  outcome.mastered = json.value("mastered", false);
  outcome.steps = json.value("step", std::int64_t{0});
  outcome.seconds = json.value("seconds", 0.0);
  outcome.final_accuracy = json.value("accuracy", 0.0);
  outcome.from_cache = true;
  return outcome;
}

/// Runs a TrainingRun to its end, with files, progress and interruption.
class TrainingSession {
 public:
  TrainingSession(const TrainSpec& spec, const std::string& folder, const TrainCallbacks& callbacks)
      : spec_(spec),
        folder_(folder),
        callbacks_(callbacks),
        words_(spec.vocabulary, make_recipe(spec).bos),
        run_(spec, make_recipe(spec), words_) {}

  TrainOutcome run() {
    const std::string canonical = spec_.canonical();
    const std::string state_path = folder_ + "/resume.state";
    const std::optional<TrainState> saved = read_train_state(state_path, canonical);
    if (saved) {
      run_.restore(*saved);
      earlier_seconds_ = saved->seconds;
      if (callbacks_.logger) callbacks_.logger->info(fmt::format("training goes on at step {}", saved->steps));
    }
    log_ = std::make_unique<TrainingLog>(folder_ + "/training.jsonl", saved ? saved->log_size_bytes : 0);
    double last_state = 0, last_progress = -1, loss = 0;
    while (!run_.finished()) {
      if (callbacks_.stop && callbacks_.stop->stop_requested()) {
        save_state(state_path, canonical);
        throw Interrupted(fmt::format("train: stopped at step {}; the same command goes on from there", run_.steps()));
      }
      loss = run_.step();
      const double now = watch_.seconds();
      const bool due = run_.steps() % kLogSteps == 0 || run_.grew();
      if (due) log_->append(progress_line(loss));
      if (run_.grew() && callbacks_.logger) report_growth();
      if (callbacks_.progress && now - last_progress >= kProgressSeconds) {
        callbacks_.progress(progress(loss));
        last_progress = now;
      }
      if (now - last_state >= kStateSeconds) {
        save_state(state_path, canonical);
        last_state = now;
      }
    }
    if (callbacks_.progress) callbacks_.progress(progress(loss));
    return finish(state_path, canonical, loss);
  }

 private:
  double seconds() const { return earlier_seconds_ + watch_.seconds(); }

  TrainProgress progress(double loss) const {
    TrainProgress out;
    out.step = run_.steps();
    out.length_tokens = run_.curriculum().current_length();
    out.loss = loss;
    out.mastery = run_.curriculum().mastery();
    out.tokens_per_second = static_cast<double>(run_.tokens()) / std::max(1e-9, watch_.seconds());
    out.seconds = seconds();
    const std::optional<std::int64_t> decay_start = run_.curriculum().state().decay_start;
    out.decaying = decay_start.has_value();
    const double per_step = out.seconds / static_cast<double>(std::max<std::int64_t>(1, out.step));
    const std::int64_t end = decay_start ? *decay_start + make_recipe(spec_).decay_steps : spec_.max_steps;
    out.eta_seconds =
        per_step * static_cast<double>(std::max<std::int64_t>(0, std::min(end, spec_.max_steps) - out.step));
    return out;
  }

  nlohmann::ordered_json progress_line(double loss) const {
    const TrainProgress p = progress(loss);
    return {{"event", run_.grew() ? "mastered" : "step"},
            {"step", p.step},
            {"length_tokens", p.length_tokens},
            {"loss", p.loss},
            {"accuracy", p.mastery},
            {"tokens_per_second", p.tokens_per_second},
            {"seconds", p.seconds}};
  }

  void report_growth() {
    const bool done = run_.curriculum().state().decay_start.has_value();
    callbacks_.logger->info(
        done ? fmt::format("length {} mastered at step {}; final decay", run_.curriculum().current_length(),
                           run_.steps())
             : fmt::format("length {} from step {}", run_.curriculum().current_length(), run_.steps()));
  }

  void save_state(const std::string& path, const std::string& canonical) {
    TrainState state = run_.state();
    state.seconds = seconds();
    state.log_size_bytes = log_->size_bytes();
    write_train_state(path, canonical, state);
  }

  TrainOutcome finish(const std::string& state_path, const std::string& canonical, double loss) {
    TrainOutcome outcome;
    outcome.folder = folder_;
    outcome.mastered = run_.curriculum().state().mastered;
    outcome.steps = run_.steps();
    outcome.final_accuracy = run_.curriculum().worst_accuracy();
    outcome.seconds = seconds();
    // The model counts as finished once config.json is there, which save_checkpoint writes last: the log must be
    // complete before.
    log_->append({{"event", "finished"},
                  {"step", outcome.steps},
                  {"mastered", outcome.mastered},
                  {"accuracy", outcome.final_accuracy},
                  {"loss", loss},
                  {"seconds", outcome.seconds},
                  {"spec", canonical}});
    model::save_checkpoint(run_.decoder(), words_.to_json(), folder_);
    std::error_code ignored;
    std::filesystem::remove(state_path, ignored);
    return outcome;
  }

  TrainSpec spec_;
  std::string folder_;
  TrainCallbacks callbacks_;
  text::WordTokenizer words_;
  TrainingRun run_;
  std::unique_ptr<TrainingLog> log_;
  Stopwatch watch_;
  double earlier_seconds_ = 0;
};

}  // namespace

TrainOutcome train(const TrainSpec& spec, const std::string& folder, const TrainCallbacks& callbacks) {
  const std::string canonical = spec.canonical();
  if (const auto outcome = finished_outcome(folder, canonical)) return *outcome;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw DataError(fmt::format("train: cannot make the folder '{}': {}", folder, error.message()));
  const FolderLock lock(folder);
  if (const auto outcome = finished_outcome(folder, canonical))
    return *outcome;  // finished while this process waited to look
  return TrainingSession(spec, folder, callbacks).run();
}

}  // namespace fathom::train
