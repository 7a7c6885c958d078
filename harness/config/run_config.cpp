#include "harness/config/run_config.h"

#include <limits>
#include <string_view>

namespace fathom::config {
namespace {

constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 30U;

/// A list that may be left to the program: an empty list is written "auto".
void visit_auto_list(OptionVisitor& v, std::string_view name, std::vector<std::string>& value, std::string_view help) {
  if (value.empty()) value = {"auto"};
  v.text_list(name, value, help);
  if (value.size() == 1 && value.front() == "auto") value.clear();
}

}  // namespace

void ModelSection::visit(OptionVisitor& v) {
  v.text("source", source, "train, a path (.gguf, or a folder with config.json), or a preset");
  v.text_list("position", position, "axis: position schemes of models trained here; a checkpoint brings its own");
  visit_auto_list(v, "rope.base", rope_base, "axis: base theta; auto = 10000, or what the checkpoint says");
  v.choice("rope.layout", rope_layout, {"split_half", "interleaved"}, "which lanes of a head rotate together");
  v.text_list("rope.partial", rope_partial, "axis: rotated share of the head, 0..1");
  v.choice("rope.side", rope_side, {"prefix", "suffix"}, "which end of a head rotates where rope.partial < 1");
  v.choice("rope.layers", rope_layers, {"global", "local", "all"},
           "layers of a checkpoint that rope.base, scaling and remap act on, where a layer type has a rotation of its "
           "own (Gemma-3's sliding layers): global = the others, local = those, all = both");
  v.choice("rope.gguf", rope_gguf, {"strict", "lcpp"},
           "where they differ, the scaling of a GGUF file as its maker's configuration means it, or as llama.cpp "
           "computes it; inspect says what differs");
  v.choice("rope.table_dtype", rope_table_dtype, {"float32", "bf16", "fp16"},
           "format that the finished table of cosines and sines is rounded to at test time, as engines do that keep it "
           "in the model's dtype; angles stay exact and the rotation float32");
  v.text("nope_layers", nope_layers, "layers without positions: none, every N, or a list such as 1,3");
  visit_auto_list(
      v, "scaling", scaling,
      "axis: scaling methods at test time; declared = what the checkpoint says, base = theta x factor; auto = "
      "none for models trained here, declared for checkpoints");
  v.text_list("scaling.factor", scaling_factor,
              "axis: number >= 1, or auto = tested / trained length, at least 1 (dynamic: its own factor 1)");
  v.optional_integer("scaling.original_context", original_context, {1, kMaxTokens},
                     "L0 in tokens; auto = the trained length, or what the checkpoint says");
  v.choice("scaling.mode", scaling_mode, {"consistent", "frozen", "hf"},
           "how length-dependent methods behave: consistent = the table of the whole current length, frozen = one "
           "table for a cell, hf = cached keys keep the table they were written with, as in transformers");
  v.optional_integer("scaling.frozen_length", frozen_length, {1, kMaxTokens},
                     "tokens whose table scaling.mode = frozen uses; auto = the tested length");
  v.text_list("remap", remap, "axis: none or a remap of 'fathom list remaps'; training-free, at test time");
  visit_auto_list(v, "temperature", temperature,
                  "axis: multiplier of the queries at test time: none, llama4, ministral3, log_n, uniform; auto = none "
                  "for models trained here, what the checkpoint says else");
  v.optional_real("temperature.scale", temperature_scale, {-1e6, 1e6},
                  "strength of llama4 and ministral3 (auto = 0.1), factor of uniform");
  v.optional_integer("temperature.length", temperature_length, {1, kMaxTokens},
                     "tokens that llama4, ministral3 and log_n count in; auto = the original context");
  v.choice("dtype", dtype, {"auto", "float32", "bf16"}, "number format of the matrix products");
}

void TrainSection::visit(OptionVisitor& v) {
  v.choice("recipe", recipe, {"A", "B"}, "A is the fastest for relative schemes, B brings every scheme to mastery");
  v.integer("context", context, {16, kMaxTokens}, "trained length in tokens");
  v.text_list("tasks", tasks, "what is trained: niah, variable_tracking, kv");
  v.text_list("seeds", seeds, "axis: one model is trained per seed");
  v.optional_integer("layers", layers, {1, 256}, "decoder layers; auto = the recipe's");
  v.optional_integer("d_model", d_model, {8, 16384}, "width; auto = the recipe's");
  v.optional_integer("heads", heads, {1, 256}, "attention heads; auto = the recipe's");
  v.optional_integer("d_ff", d_ff, {8, 65536}, "width of the MLP; auto = the recipe's");
  v.integer("max_steps", max_steps, {1, 100000000},
            "a model that has not mastered its tasks by then is stored as such");
  v.integer("vocab.keys", vocab_keys, {2, 100000}, "key words of the closed vocabulary");
  v.integer("vocab.values", vocab_values, {2, 100000}, "value words of the closed vocabulary");
  v.integer("vocab.fillers", vocab_fillers, {2, 100000}, "filler words of the closed vocabulary");
  v.integer("vocab.names", vocab_names, {2, 100000}, "invented names of the closed vocabulary");
}

void SweepSection::visit(OptionVisitor& v) {
  v.text_list("tasks", tasks, "axis: task, task@ruler, task@balanced, or a group; a bare name means @balanced");
  visit_auto_list(
      v, "lengths", lengths,
      "axis: tokens (512, 4K) or times the trained, else the claimed length (1.5x); ranges low:high:step; auto "
      "= 0.5x to 8x for models trained here, 4K to 128K for checkpoints");
  v.text_list(
      "depths", depths,
      "axis: percent, ranges low:high:step, linear:N or sigmoid:N; spread = no axis, each sample of a length has a "
      "depth of its own");
  v.integer("samples", samples, {1, 1000000}, "samples per (length, depth); per length where depth is no axis");
  v.text_list("controls", controls,
              "also run the controls: off, on = all that a task has, or names: no_needle, needle_only, wrong_key, "
              "closed_book, oracle");
  v.integer("control_samples", control_samples, {1, 1000000}, "samples of a control, per length");
  v.flag("graded", graded, "also take teacher-forced log-probabilities of the answer");
  v.choice("pair", pair, {"none", "depth", "length", "both"}, "over what neighbouring cells ask the same thing");
  v.flag("adaptive", adaptive, "sequential stopping and bisection");
  v.real("width", width, {0.1, 50}, "half-width in percent points at which an adaptive cell stops");
  v.flag("noise_floor", noise_floor, "also measure the scatter of repeated runs");
  v.real("max_failed", max_failed, {0, 100}, "percent of failed samples above which the run ends with exit code 5");
  v.integer("think_tokens", think_tokens, {0, kMaxTokens}, "tokens left for thinking before the answer");
}

void PromptSection::visit(OptionVisitor& v) {
  v.text("pack", pack, "en, zh, synthetic, or a file; auto = synthetic for models trained here, en else");
  v.choice("style", style, {"auto", "base", "chat", "chat_noprefix"},
           "auto = chat if the checkpoint has a chat template, base else");
  v.text("template", chat_template, "family of the chat template; auto = what the checkpoint says");
}

void HaystackSection::visit(OptionVisitor& v) {
  v.text("source", source, "prose, noise, or a file or folder of text files; auto = the task's own");
  v.flag("repeat", repeat, "repeat a text that is too short");
}

void EngineSection::visit(OptionVisitor& v) {
  v.choice("device", device, {"cpu", "cuda"}, "where the model runs");
  v.optional_integer("threads", threads, {1, 4096}, "auto = all cores");
  v.integer("batch_tokens", batch_tokens, {1, kMaxTokens}, "ceiling of tokens in flight");
  v.optional_integer("kv_budget", kv_budget, {0, kMaxInteger},
                     "bytes for the KV caches of sequences computed together; auto = a quarter of the memory");
}

void ReportSection::visit(OptionVisitor& v) {
  v.text("out", out, "folder of the page; auto = reports/out/NAME");
  v.text_list("effective", effective, "what the effective context is taken of: each, mean, task names");
  v.text_list(
      "base_lengths", base_lengths,
      "two lengths for the relative rule; auto = the two shortest tested (trained here: up to the trained length)");
  v.real("threshold", threshold, {0, 100}, "percent a length must reach under the absolute rule");
}

void RunConfig::visit(OptionVisitor& v) {
  v.text("name", name, "run name, unique in a database; default: the file's name without extension");
  v.integer("seed", seed, {0, kMaxInteger}, "seed of the samples");
}

}  // namespace fathom::config
