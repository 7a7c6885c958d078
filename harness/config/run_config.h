#pragma once
// The configuration of a run as plain structs with defaults. Keys of the file are declared in the visit() members; the
// values of axes stay lists until the sweep multiplies them out (harness/config/sweep.h).

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/options.h"

namespace fathom::config {

/// One [model] or [model.NAME] section: axes still as lists.
struct ModelSection {
  std::string name;  ///< NAME of [model.NAME]; empty for [model]
  std::string source = "train";
  std::vector<std::string> position = {"rope"};  ///< axis
  std::vector<std::string> rope_base;            ///< axis of numbers; empty = 10000 or the file's
  std::string rope_layout = "split_half";
  std::vector<std::string> rope_partial = {"1"};  ///< axis of numbers 0..1
  std::string rope_side = "prefix";               ///< prefix, suffix
  std::string rope_layers = "global";             ///< global, local, all
  std::string rope_gguf = "strict";               ///< strict, lcpp
  std::string rope_table_dtype = "float32";       ///< float32, bf16, fp16
  std::string nope_layers = "none";
  std::vector<std::string> scaling;  ///< axis; empty = "none" for trained models, "declared" for checkpoints
  std::vector<std::string> scaling_factor = {"auto"};  ///< axis
  std::optional<std::int64_t> original_context;        ///< key scaling.original_context
  std::string scaling_mode = "consistent";             ///< consistent, frozen, hf
  std::optional<std::int64_t> frozen_length;           ///< key scaling.frozen_length; empty = the tested length
  std::vector<std::string> remap = {"none"};           ///< axis
  std::vector<std::string> temperature;     ///< axis; empty = "none" for trained models, "declared" for checkpoints
  std::optional<double> temperature_scale;  ///< key temperature.scale
  std::optional<std::int64_t> temperature_length;  ///< key temperature.length
  std::string dtype = "auto";
  /// Keys of plug-ins, unread: "SCHEME.key", "remap.key", "scaling.key" (without the "model." in front).
  std::map<std::string, std::string> plugin_options;

  void visit(OptionVisitor& v);
};

struct TrainSection {
  std::string recipe = "A";
  std::int64_t context = 256;
  std::vector<std::string> tasks = {"niah"};
  std::vector<std::string> seeds = {"1"};  ///< axis of integers
  std::optional<std::int64_t> layers, d_model, heads, d_ff;
  std::int64_t max_steps = 6000;
  std::int64_t vocab_keys = 200, vocab_values = 200, vocab_fillers = 200, vocab_names = 100;

  void visit(OptionVisitor& v);
};

struct SweepSection {
  std::vector<std::string> tasks;                  ///< names or groups
  std::vector<std::string> lengths;                ///< "256", "4K", "1.5x"; empty = the default of specification 7
  std::vector<std::string> depths = {"0:100:10"};  ///< percent; ranges low:high:step
  std::int64_t samples = 10;
  std::vector<std::string> controls = {"off"};  ///< off, on (all a task has), or their names
  std::int64_t control_samples = 50;            ///< of a control, per length (tasks specification 3.1)
  bool graded = true;
  std::string pair = "both";
  bool adaptive = false;
  double width = 5;
  bool noise_floor = false;
  double max_failed = 1;
  std::int64_t think_tokens = 0;

  void visit(OptionVisitor& v);
};

struct PromptSection {
  std::string pack = "auto";           ///< auto = synthetic for trained models, en else
  std::string style = "auto";          ///< auto = chat if the checkpoint has a chat template, else base
  std::string chat_template = "auto";  ///< key `template`
  void visit(OptionVisitor& v);
};

struct HaystackSection {
  std::string source = "auto";  ///< auto (the task's own), prose, noise, or a path
  bool repeat = false;
  void visit(OptionVisitor& v);
};

struct EngineSection {
  std::string device = "cpu";
  std::optional<std::int64_t> threads;  ///< auto = all cores
  std::int64_t batch_tokens = 16384;
  std::optional<std::int64_t> kv_budget;  ///< bytes; auto = a quarter of memory
  void visit(OptionVisitor& v);
};

struct ReportSection {
  std::string out = "auto";  ///< auto = reports/out/NAME
  std::vector<std::string> effective = {"each", "mean"};
  std::vector<std::string> base_lengths = {"auto"};
  double threshold = 85.6;
  void visit(OptionVisitor& v);
};

struct RunConfig {
  std::string name;  ///< default: the file's name without extension
  std::int64_t seed = 1;
  std::vector<ModelSection> models;  ///< at least one
  TrainSection train;
  SweepSection sweep;
  PromptSection prompt;
  HaystackSection haystack;
  EngineSection engine;
  ReportSection report;
  std::map<std::string, OptionSource> task_options;  ///< [task.NAME] by NAME, unread

  /// The keys outside sections: name and seed.
  void visit(OptionVisitor& v);
};

}  // namespace fathom::config
