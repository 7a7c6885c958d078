#include "harness/cli/run_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "harness/checkpoint/inspect.h"
#include "harness/checkpoint/position_override.h"
#include "harness/cli/console.h"
#include "harness/cli/idle_keys.h"
#include "harness/cli/position_settings.h"
#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/position/position_registry.h"
#include "harness/rope/position_remap.h"
#include "harness/rope/rope_scaling.h"
#include "tasks/tasks.h"

namespace fathom::cli {
namespace {

train::TrainSpec make_train_spec(const config::ModelVariant& settings, const config::TrainSection& train) {
  train::TrainSpec spec;
  spec.recipe = train.recipe;
  spec.position = settings.position;
  spec.scheme_options = settings.scheme_options;
  spec.rope_base = settings.rope_base.value_or(spec.rope_base);
  spec.rope_layout = settings.rope_layout;
  spec.rope_partial = settings.rope_partial;
  spec.rope_side = settings.rope_side;
  spec.nope_layers = settings.nope_layers;
  spec.context = train.context;
  spec.tasks = train.tasks;
  spec.seed = static_cast<std::uint64_t>(settings.train_seed.value_or(1));
  spec.n_layers = train.layers;
  spec.d_model = train.d_model;
  spec.n_heads = train.heads;
  spec.d_ff = train.d_ff;
  spec.max_steps = train.max_steps;
  spec.vocabulary = {train.vocab_keys, train.vocab_values, train.vocab_fillers, train.vocab_names};
  return spec;
}

task::PairMode parse_pair_mode(const std::string& text) {
  if (text == "none") return task::PairMode::kNone;
  if (text == "depth") return task::PairMode::kDepth;
  return text == "length" ? task::PairMode::kLength : task::PairMode::kBoth;
}

/// \param asked  "off", "on", or names of controls
void choose_controls(const std::vector<std::string>& asked, eval::SweepPlan& plan) {
  plan.controls = asked.front() != "off";
  if (asked.front() == "on") return;
  using task::Control;
  for (const Control control :
       {Control::kNoNeedle, Control::kNeedleOnly, Control::kWrongKey, Control::kClosedBook, Control::kOracle}) {
    if (std::find(asked.begin(), asked.end(), task::to_string(control)) != asked.end()) {
      plan.only_controls.push_back(control);
    }
  }
}

/// The tasks of the sweep in config order, groups expanded, each once.
std::vector<task::TaskName> sweep_task_names(const config::RunConfig& config) {
  std::vector<task::TaskName> names;
  std::set<std::string> seen;
  for (const std::string& entry : config.sweep.tasks) {
    for (const task::TaskName& name : tasks::expand_task_name(entry)) {
      if (seen.insert(name.full()).second) names.push_back(name);
    }
  }
  return names;
}

void check_task_sections(const config::RunConfig& config, const std::vector<task::TaskName>& names) {
  for (const auto& [section, options] : config.task_options) {
    const bool used = std::any_of(names.begin(), names.end(),
                                  [&section = section](const task::TaskName& name) { return name.name == section; });
    if (used) continue;
    tasks::registry().at(section);  // an unknown task has the better message
    throw ConfigError(fmt::format("config: [task.{}] has options, but sweep.tasks does not name that task", section));
  }
}

/// A name in report.effective that no task of the run has would be a heading without results.
void check_effective_names(const config::RunConfig& config, const std::vector<task::TaskName>& names) {
  if (names.empty()) return;  // training alone needs no sweep
  std::vector<std::string> allowed = {"each", "mean"};
  for (const task::TaskName& name : names) {
    allowed.push_back(name.variant == task::TaskVariant::kBalanced ? name.name : name.full());
  }
  for (const std::string& entry : config.report.effective) {
    const bool known =
        std::find(allowed.begin(), allowed.end(), entry) != allowed.end() ||
        std::any_of(names.begin(), names.end(), [&entry](const task::TaskName& name) { return name.name == entry; });
    if (known) continue;
    const auto near_name = nearest_name(entry, allowed);
    throw ConfigError(fmt::format("config: [report] effective = {} names no task of this run{}; allowed: {}", entry,
                                  near_name ? fmt::format("; did you mean '{}'?", *near_name) : "",
                                  join(allowed, ", ")));
  }
}

/// Keys that the file format knows and this version does not act on: refused, never ignored.
void refuse_unsupported(const config::RunConfig& config) {
  const auto refuse = [](bool asked, const char* what) {
    if (asked) throw ConfigError(fmt::format("config: {} is not available in this version", what));
  };
  refuse(config.sweep.adaptive, "sweep.adaptive = on");
  refuse(config.sweep.noise_floor, "sweep.noise_floor = on");
  refuse(config.engine.device != "cpu", "engine.device = cuda");
}

std::vector<std::string> option_names(const std::vector<OptionDescription>& options) {
  std::vector<std::string> names;
  for (const OptionDescription& option : options) names.push_back(option.name);
  return names;
}

}  // namespace

config::SweepTraits sweep_traits() {
  config::SweepTraits traits;
  traits.scheme_rotates = [](const std::string& scheme) { return position::position_infos().at(scheme).rotates; };
  traits.scaling_uses_factor = [](const std::string& scaling) {
    if (scaling == "declared") return false;
    return scaling == "base" || rope::scalings().at(scaling).uses_factor;
  };
  traits.scheme_options = [](const std::string& scheme) {
    return option_names(position::position_infos().at(scheme).describe());
  };
  traits.scaling_options = [](const std::string& scaling) {
    if (scaling == "declared" || scaling == "base") return std::vector<std::string>();
    return option_names(rope::scalings().at(scaling).describe());
  };
  traits.remap_options = [](const std::string& remap) {
    return option_names(rope::position_remaps().at(remap).describe());
  };
  traits.schemes = position::position_infos().names();
  traits.depends_on_length = [](const std::string& scaling, const OptionSource& options) {
    if (scaling == "declared") return true;  // the file may say so
    return scaling != "base" && rope::scalings().at(scaling).make(1, options)->depends_on_length();
  };
  return traits;
}

RunSession::RunSession(config::RunConfig config) : config_(std::move(config)) {
  refuse_unsupported(config_);
  engine_options_.device = config_.engine.device;
  engine_options_.batch_tokens = config_.engine.batch_tokens;
  // Decoding reads all weights once a step for every sequence whose cache fits.
  engine_options_.cache_bytes =
      config_.engine.kv_budget ? static_cast<std::size_t>(*config_.engine.kv_budget) : memory_bytes() / 4;
  engine_options_.stop = &stop_;
  const std::string& haystack = config_.haystack.source;
  if (haystack != "auto" && haystack != "prose" && haystack != "noise") corpus_ = text::TextCorpus::load(haystack);
  check_task_sections(config_, sweep_task_names(config_));
  check_effective_names(config_, sweep_task_names(config_));
  for (const config::ModelVariant& settings : config::expand_variants(config_, sweep_traits())) add_variant(settings);
  check_lengths();
  check_positions();
}

void RunSession::add_variant(const config::ModelVariant& settings) {
  SessionVariant variant;
  variant.settings = settings;
  variant.model = model_index(settings);
  variant.plan = make_plan(*models_[variant.model], settings);
  variants_.push_back(std::move(variant));
}

std::size_t RunSession::model_index(const config::ModelVariant& settings) {
  auto model = std::make_unique<SessionModel>();
  std::string id;
  if (settings.trained_here()) {
    model->train_spec = make_train_spec(settings, config_.train);
    model->path = train::cache_folder(*model->train_spec, cache_root());
    id = "train|" + model->train_spec->canonical();
    model->name = settings.position;
  } else {
    model->path = find_model_path(settings.source);
    id = "file|" + model->path;
    model->name = std::filesystem::path(model->path).stem().string();
  }
  const auto known = model_by_id_.find(id);
  if (known != model_by_id_.end()) return known->second;
  if (model->train_spec) {
    model->tokenizer =
        std::make_unique<text::WordTokenizer>(model->train_spec->vocabulary, model->train_spec->recipe == "B");
    model->declared = train::planned_decoder(*model->train_spec);
    model->claimed_context = model->train_spec->context;
    model->trained_context = model->train_spec->context;
  } else {
    model->checkpoint = checkpoint::open_checkpoint(model->path);
    model->declared = model->checkpoint->config();
    model->tokenizer = model->checkpoint->make_tokenizer();
    model->claimed_context = model->checkpoint->config().claimed_context;
    model->trained_context = model->checkpoint->config().trained_context;
  }
  make_assembler(*model);
  models_.push_back(std::move(model));
  model_by_id_[id] = models_.size() - 1;
  return models_.size() - 1;
}

void RunSession::make_assembler(SessionModel& model) {
  std::optional<text::ChatTemplate> family;
  if (model.checkpoint) family = model.checkpoint->chat_template();
  if (config_.prompt.chat_template != "auto") family = text::chat_template(config_.prompt.chat_template);
  std::string style = config_.prompt.style;
  if (style == "auto") style = family ? "chat" : "base";
  model.assembler =
      std::make_unique<text::PromptAssembler>(*model.tokenizer, text::parse_prompt_style(style), std::move(family));
}

eval::SweepPlan RunSession::make_plan(SessionModel& model, const config::ModelVariant& settings) {
  task::TaskContext context;
  context.assembler = model.assembler.get();
  const std::string pack_name =
      config_.prompt.pack == "auto" ? (model.train_spec ? "synthetic" : "en") : config_.prompt.pack;
  const auto builtin = text::PromptPack::builtin_names();
  context.pack = std::find(builtin.begin(), builtin.end(), pack_name) != builtin.end()
                     ? text::PromptPack::builtin(pack_name)
                     : text::PromptPack::load(pack_name);
  pack_fingerprints_ += "|" + context.pack->fingerprint();
  context.haystack.repeat = config_.haystack.repeat;
  if (corpus_) {
    context.haystack.kind = task::HaystackSpec::Kind::kCorpus;
    context.haystack.corpus = corpus_;
  } else if (config_.haystack.source != "auto") {
    context.haystack.kind =
        config_.haystack.source == "prose" ? task::HaystackSpec::Kind::kProse : task::HaystackSpec::Kind::kNoise;
  }
  context.pair = parse_pair_mode(config_.sweep.pair);
  context.think_tokens = config_.sweep.think_tokens;
  context.n_samples = config_.sweep.samples;
  context.depths_bp = config::expand_depths(config_.sweep.depths);

  eval::SweepPlan plan;
  plan.n_samples = config_.sweep.samples;
  plan.seed = static_cast<std::uint64_t>(config_.seed);
  plan.batch_tokens = config_.engine.batch_tokens;
  plan.control_samples = config_.sweep.control_samples;
  choose_controls(config_.sweep.controls, plan);
  const auto lengths =
      config::expand_lengths(config::length_entries(config_.sweep, settings), model.reference_context());
  const auto depths = config::expand_depths(config_.sweep.depths);
  for (const task::TaskName& name : sweep_task_names(config_)) {
    auto& task = model.tasks[name.full()];
    if (!task) {
      const task::TaskEntry& entry = tasks::registry().at(name.name);
      const auto options = config_.task_options.find(name.name);
      task = entry.make(
          entry, name.variant,
          options == config_.task_options.end() ? OptionSource("[task." + name.name + "]", {}) : options->second,
          context);
    }
    plan.tasks.push_back({name, task.get(), lengths, depths});
  }
  return plan;
}

void RunSession::check_lengths() const {
  // A length at which no task of the run fits is a mistake in the configuration, not a gap in the results.
  for (const SessionVariant& variant : variants_) {
    std::map<std::int64_t, std::string> reasons;
    std::set<std::int64_t> fits;
    for (const eval::PlannedTask& task : variant.plan.tasks) {
      const std::int64_t smallest = task.task->smallest_length_tokens(variant.plan.seed);
      for (const std::int64_t length : task.lengths_tokens) {
        // A task of fixed sizes is asked once, whatever the lengths.
        if (length >= smallest || !task.task->sweeps_length()) fits.insert(length);
        std::string& reason = reasons[length];
        reason += fmt::format("{}{} needs {}", reason.empty() ? "" : ", ", task.name.name, smallest);
      }
    }
    for (const auto& [length, reason] : reasons) {
      if (fits.count(length) == 0) {
        throw ConfigError(
            fmt::format("config: sweep.lengths: {} tokens is too short for every task of the run ({}); "
                        "use longer lengths",
                        length, reason));
      }
    }
  }
}

void RunSession::check_positions() const {
  std::vector<ResolvedVariant> resolved;
  for (const SessionVariant& variant : variants_) {
    for (const eval::PlannedTask& task : variant.plan.tasks) {
      for (const std::int64_t length : task.lengths_tokens) resolved_config(variant, length);
    }
    resolved.push_back({&variant.settings, resolved_config(variant, models_[variant.model]->reference_context())});
    engine::check_position_settings(resolved.back().config);
  }
  const std::vector<std::string> idle = idle_position_keys(resolved);
  if (!idle.empty()) throw ConfigError("config: " + join(idle, "\nconfig: "));
}

void RunSession::load(SessionModel& model, const std::string& dtype, ProgressLine& line) {
  if (model.weights.count(dtype) != 0) return;
  if (model.train_spec && !model.checkpoint) {
    ConsoleLogger logger(line);
    train::TrainCallbacks callbacks;
    callbacks.stop = &stop_;
    callbacks.logger = &logger;
    callbacks.progress = [&line, &model](const train::TrainProgress& p) {
      std::string mastery;
      for (const auto& [task, accuracy] : p.mastery) mastery += fmt::format(" {} {:.2f}", task, accuracy);
      line.show(fmt::format("training {}  step {}  length {}  loss {:.3f}  mastery{}  {} tok/s  {}{}", model.name,
                            p.step, p.length_tokens, p.loss, mastery, format_count(p.tokens_per_second),
                            format_duration(p.seconds),
                            p.eta_seconds ? fmt::format("  ETA {}", format_duration(*p.eta_seconds)) : ""));
    };
    model.outcome = train::train(*model.train_spec, model.path, callbacks);
    const train::TrainOutcome& outcome = *model.outcome;
    line.finish(fmt::format("{} {}: {} after {} steps, accuracy {:.3f} at {} tokens, {} of training{}",
                            outcome.from_cache ? "found" : "trained", model.name,
                            outcome.mastered ? "mastered" : "NOT mastered", outcome.steps, outcome.final_accuracy,
                            model.train_spec->context, format_duration(outcome.seconds),
                            outcome.from_cache ? " (cached)" : ""));
    model.checkpoint = checkpoint::open_checkpoint(model.path);
    model.declared = model.checkpoint->config();
  }
  line.show(fmt::format("loading {}", model.path));
  engine::EngineOptions options = engine_options_;
  options.dtype = dtype;
  model.weights[dtype] = engine::load_weights(*model.checkpoint, options);
  if (model.weights.size() == 1) {
    for (const std::string& warning : model.declared.warnings) line.note("warning: " + warning);
  }
}

checkpoint::DecoderConfig RunSession::resolved_config(const SessionVariant& variant, std::int64_t length_tokens) const {
  const checkpoint::DecoderConfig& declared = models_[variant.model]->declared;
  return checkpoint::apply_override(declared, position_override(variant.settings, declared, length_tokens));
}

std::vector<std::int64_t> RunSession::recomputed_lengths(const SessionVariant& variant) const {
  std::set<std::int64_t> lengths;
  for (const eval::PlannedTask& task : variant.plan.tasks)
    lengths.insert(task.lengths_tokens.begin(), task.lengths_tokens.end());
  std::vector<std::int64_t> recomputed;
  for (const std::int64_t length : lengths) {
    if (engine::recomputes_every_token(resolved_config(variant, length), length)) recomputed.push_back(length);
  }
  return recomputed;
}

eval::VariantRecord RunSession::variant_record(const SessionVariant& variant) {
  const SessionModel& model = *models_[variant.model];
  const config::ModelVariant& settings = variant.settings;
  const std::int64_t longest = variant.plan.tasks.empty()
                                   ? model.reference_context()
                                   : *std::max_element(variant.plan.tasks.front().lengths_tokens.begin(),
                                                       variant.plan.tasks.front().lengths_tokens.end());
  const checkpoint::DecoderConfig resolved = resolved_config(variant, longest);
  const checkpoint::PositionSpec& telling = checkpoint::telling_layer(resolved).position;
  const lm::ModelIdentity identity =
      engine::make_language_model(model.weights.at(settings.dtype), resolved, engine_options_)->identity();
  eval::VariantRecord record;
  record.name = settings.name;
  record.model = model.name;
  record.weights_hash = identity.weights_hash;
  record.position = telling.kind;
  if (telling.rotary_dim > 0) record.rope_base = telling.rope_base;
  record.scaling = settings.scaling == "declared" ? telling.scaling.method : settings.scaling;
  record.factor = settings.scaling_factor;
  record.position_description = identity.position;
  record.resolved_json = checkpoint::inspect_json(resolved, longest);
  record.parameters = identity.parameters;
  record.claimed_context = model.claimed_context;
  record.trained_context = model.trained_context;
  record.train_seed = settings.train_seed;
  if (model.outcome) {
    record.train_steps = model.outcome->steps;
    record.train_seconds = model.outcome->seconds;
    record.train_accuracy = model.outcome->final_accuracy;
    record.mastered = model.outcome->mastered;
  }
  record.dtype = identity.dtype;
  record.device = identity.device;
  record.kernel = identity.kernel;
  return record;
}

std::string RunSession::content_fingerprint() const {
  std::string text = pack_fingerprints_;
  if (corpus_) text += "|" + corpus_->fingerprint();
  for (const auto& model : models_)
    text += "|" + model->tokenizer->fingerprint() + "|" + model->assembler->fingerprint();
  return hash_hex(text);
}

lm::LanguageModel& VariantModels::model_for(std::int64_t length_tokens) {
  const checkpoint::DecoderConfig config = session_.resolved_config(variant_, length_tokens);
  const std::string wanted = checkpoint::describe_position(config);
  if (!model_ || wanted != current_) {
    model_ = engine::make_language_model(session_.models()[variant_.model]->weights.at(variant_.settings.dtype), config,
                                         session_.engine_options());
    current_ = wanted;
  }
  return *model_;
}

}  // namespace fathom::cli
