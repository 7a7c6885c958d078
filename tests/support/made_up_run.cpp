#include "tests/support/made_up_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/hash.h"
#include "harness/core/random.h"

namespace fathom::test {
namespace {

constexpr const char* kMadeUpConfig = R"(name = made-up
seed = 1

[model]
source = train
position = rope, alibi
rope.base = 10000
scaling = none, linear, ntk, dynamic, yarn
scaling.factor = auto

[train]
tasks = niah, variable_tracking
context = 512
seeds = 1

[sweep]
tasks = niah_single_2, niah_multikey_1, vt
lengths = 128, 256, 512, 1024, 2048
depths = 0:100:10
samples = 10

[report]
threshold = 85.6
)";

/// How far, in multiples of the trained length, a made-up setting with the usual base still works.
double scaling_reach(const eval::VariantRecord& variant) {
  if (variant.scaling == "linear") return 1.9;
  if (variant.scaling == "ntk") return 2.2;
  if (variant.scaling == "dynamic") return 2.6;
  if (variant.scaling == "yarn") return 5.0;
  return 1.05;
}

double made_up_reach(const eval::VariantRecord& variant) {
  if (variant.position == "alibi") return 1.4;
  // A base of 100 is too small, and a larger one helps a little.
  return scaling_reach(variant) * std::pow(std::log10(variant.rope_base.value_or(10000)) / 4, 1.5);
}

/// The variant with another base, its name and its frequencies.
eval::VariantRecord with_base(eval::VariantRecord variant, int base) {
  variant.name += fmt::format(" base={}", base);
  if (!variant.rope_base) return variant;
  variant.rope_base = base;
  std::string frequencies;
  for (int i = 0; i < 16; ++i) {
    frequencies += fmt::format("{}{}", i == 0 ? "" : ",", std::pow(static_cast<double>(base), -i / 16.0));
  }
  variant.position_description = fmt::format("rope base={} split_half rotary_dim=32 {}", base, variant.scaling);
  variant.resolved_json = fmt::format(
      R"({{"layers":[{{"index":0,"position":"rope","rotary_dim":32,"d_head":32,"inv_freq":[{}],"attention_factor":1.0}}]}})",
      frequencies);
  return variant;
}

double made_up_accuracy(const eval::VariantRecord& variant, const std::string& task, std::int64_t length_tokens,
                        std::optional<std::int32_t> depth_bp) {
  const double trained = static_cast<double>(variant.trained_context.value_or(512));
  const double hardness = task == "niah_single_2" ? 1.0 : task == "vt" ? 0.6 : 0.8;
  const double octaves = std::log2(static_cast<double>(length_tokens) / (trained * made_up_reach(variant) * hardness));
  double accuracy = 0.99 / (1 + std::exp(4.0 * octaves - 1.5));
  if (depth_bp) {
    const double depth = static_cast<double>(*depth_bp) / kDepthScale;
    // Lost in the middle: the dip grows with the length.
    accuracy -= 0.35 * std::max(0.0, octaves + 1.5) * depth * (1 - depth) * 2;
  }
  return std::clamp(accuracy, 0.0, 1.0);
}

std::string made_up_prompt(const MadeUpCell& cell, std::int64_t index) {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("The {} of the harbour kept quiet for day {}. ", i % 2 == 0 ? "keeper" : "pilot", i + index);
  }
  text += fmt::format("Page {} of the log. ", cell.length_tokens);
  return text +
         fmt::format(
             "What is the special magic number for \"quay-{}\" mentioned in the text? The special magic number is",
             index);
}

}  // namespace

eval::RunRecord made_up_run_record(const std::string& name) {
  eval::RunRecord run;
  run.name = name;
  run.canonical_config = kMadeUpConfig;
  run.config_fingerprint = hash_hex(kMadeUpConfig);
  run.tool_version = "0.1.0";
  run.source_revision = "0123abc";
  run.library_versions = "LibTorch 1.13.1, SQLite 3.40.1";
  run.hardware = "made-up processor, 2 cores, 24 GiB";
  run.seed = 1;
  run.started_at = "2025-01-02T03:04:05Z";
  return run;
}

eval::VariantRecord made_up_variant(const std::string& name) {
  eval::VariantRecord variant;
  variant.name = name;
  variant.model = "trained";
  variant.weights_hash = hash_hex("weights of " + name);
  variant.position = "rope";
  variant.rope_base = 10000;
  variant.scaling = "none";
  variant.position_description = "rope base=10000 split_half rotary_dim=32";
  variant.resolved_json = R"({"layers":[{"index":0,"position":"rope","rotary_dim":32,"attention_factor":1.0}]})";
  variant.parameters = 1250000;
  variant.claimed_context = 512;
  variant.trained_context = 512;
  variant.train_seed = 1;
  variant.train_steps = 2400;
  variant.train_seconds = 61.5;
  variant.train_accuracy = 0.985;
  variant.mastered = true;
  variant.dtype = "float32";
  variant.device = "cpu";
  variant.kernel = "avx2";
  return variant;
}

eval::SampleRecord made_up_sample(const std::string& variant, const MadeUpCell& cell, std::int64_t index,
                                  std::optional<double> score) {
  eval::SampleRecord row;
  row.variant = variant;
  task::Sample& sample = row.sample;
  sample.task = cell.task;
  sample.task_version = 1;
  sample.index = index;
  sample.seed = 1;
  sample.key = fmt::format("fathom/1|{}|v=1|L={}|d={}|i={}|s=1", cell.task, cell.length_tokens,
                           cell.depth_bp ? std::to_string(*cell.depth_bp) : "-", index);
  sample.address = hash_hex(sample.key);
  sample.length_tokens = cell.length_tokens;
  sample.depth_bp = cell.depth_bp;
  sample.prompt_text = made_up_prompt(cell, index);
  sample.answer_prefix = " The special magic number is";
  sample.prompt_ids.assign(static_cast<std::size_t>(std::min<std::int64_t>(cell.length_tokens - 16, 64)), 7);
  sample.generation_budget = 16;
  sample.references = {fmt::format("{}", 1000000 + 7919 * index)};
  sample.answer_text = " " + sample.references.front();
  sample.needles = {{true, cell.depth_bp, cell.depth_bp.value_or(0), 4, 12}};
  row.result_key = hash_hex(sample.address + "|" + variant);
  row.reply_text = score && *score >= 1 ? sample.answer_text + "." : " 4711, as the <keeper> said & wrote.";
  row.reply_ids = {1, 2, 3};
  row.scores = {{"all", 1, score, row.reply_text, "made up"}, {"first", 1, std::nullopt, "", ""}};
  if (score) row.scores.push_back({"lp", 1, -8.0 * (1 - *score) - 0.5, "", ""});
  row.seconds = 0.001 * static_cast<double>(cell.length_tokens);
  row.computed_tokens = cell.length_tokens / 2;
  row.peak_rss_bytes = std::int64_t{200} << 20;
  row.in_text_guess = cell.task == "niah_single_2" ? 1.0 : 0.25;
  row.blind_guess = 0.005;
  return row;
}

MadeUpSweep made_up_sweep(const std::string& kind) {
  MadeUpSweep sweep;
  for (const char* scaling : {"none", "linear", "ntk", "dynamic", "yarn"}) {
    eval::VariantRecord variant =
        made_up_variant(scaling == std::string("none") ? "rope" : fmt::format("rope {}", scaling));
    variant.scaling = scaling;
    variant.position_description = fmt::format("rope base=10000 split_half rotary_dim=32 {}", scaling);
    sweep.variants.push_back(variant);
  }
  eval::VariantRecord alibi = made_up_variant("alibi");
  alibi.position = "alibi";
  alibi.rope_base.reset();
  alibi.position_description = "alibi slopes 2^-2 … 2^-8";
  alibi.resolved_json = R"({"layers":[{"index":0,"position":"alibi","parameters":{"slopes":[0.25,0.0625]}}]})";
  sweep.variants.push_back(alibi);
  if (kind == "small") {
    sweep.variants = {sweep.variants[0], sweep.variants[4]};
    sweep.tasks = {"niah_multikey_1", "vt"};
    sweep.lengths_tokens = {128, 256, 512, 1024};
    sweep.depth_step_percent = 50;
    sweep.n_samples = 4;
  } else if (kind == "one") {
    sweep.variants.resize(1);
  } else if (kind == "many") {
    const std::vector<eval::VariantRecord> six = sweep.variants;
    sweep.variants.clear();
    for (std::size_t i = 0; i < 40; ++i) {
      sweep.variants.push_back(with_base(six[i % six.size()], 10000 * (static_cast<int>(i / six.size()) + 1)));
    }
  } else if (kind == "theta") {
    const std::vector<eval::VariantRecord> settings = {sweep.variants[0], sweep.variants[4]};
    sweep.variants.clear();
    for (const eval::VariantRecord& setting : settings) {
      for (const int base : {100, 1000, 10000, 500000}) sweep.variants.push_back(with_base(setting, base));
    }
  } else if (kind == "unicode") {
    sweep.variants[0].name = "rope θ=10⁴ “<b>naïve</b>” 模型 很长的名字会怎样呢 & more | words to wrap";
  } else if (kind == "empty") {
    sweep.tasks.clear();
  } else if (kind == "zeros" || kind == "ones") {
    sweep.fixed_score = kind == "ones" ? 1.0 : 0.0;
  } else if (kind == "million" || kind == "half") {
    for (std::size_t i = 0; i < 4; ++i) {
      sweep.variants.push_back(sweep.variants[i]);
      sweep.variants.back().name += " base=500000";
    }
    sweep.n_samples = kind == "million" ? 962 : 481;
  }
  return sweep;
}

std::vector<eval::SampleRecord> made_up_batch(const std::string& variant, std::int64_t first, std::int64_t count) {
  std::vector<eval::SampleRecord> rows;
  for (std::int64_t i = first; i < first + count; ++i)
    rows.push_back(made_up_sample(variant, {}, i, i % 2 == 0 ? 1.0 : 0.0));
  return rows;
}

void put_made_up_run(eval::ResultSink& sink, const std::string& name, const MadeUpSweep& sweep) {
  sink.begin_run(made_up_run_record(name));
  std::vector<eval::CellRecord> unbuilt;
  for (const eval::VariantRecord& variant : sweep.variants) {
    sink.put_variant(variant);
    std::vector<eval::SampleRecord> rows;
    for (const std::string& task : sweep.tasks) {
      for (const std::int64_t length : sweep.lengths_tokens) {
        if (task == "niah_multikey_1" && length < 200) {
          unbuilt.push_back({variant.name,
                             {task, task::TaskVariant::kBalanced},
                             length,
                             std::nullopt,
                             eval::SampleStatus::kTooShort,
                             "prompt 171 + budget 16 = 187 tokens",
                             187});
          continue;
        }
        const int step = task == "vt" ? 200 : sweep.depth_step_percent;  // vt sweeps no depth
        for (int depth = 0; depth <= 100; depth += step) {
          MadeUpCell cell{task, length, depth * 100};
          if (task == "vt") cell.depth_bp.reset();
          const double accuracy = made_up_accuracy(variant, task, length, cell.depth_bp);
          for (std::int64_t i = 0; i < sweep.n_samples; ++i) {
            RngStream rng(RngKey("made-up").child(variant.name).child(task).child(length).child(depth).child(i));
            double score = rng.uniform_double() < accuracy ? 1.0 : 0.0;
            RngStream flip(
                RngKey("flip").child(name).child(variant.name).child(task).child(length).child(depth).child(i));
            if (sweep.flip_share > 0 && flip.uniform_double() < sweep.flip_share) score = 1 - score;
            if (task == "vt" && score == 0.0) score = 0.2 * static_cast<double>(rng.uniform_index(5));
            rows.push_back(made_up_sample(variant.name, cell, i, sweep.fixed_score.value_or(score)));
          }
        }
      }
    }
    sink.put_batch(rows);
  }
  sink.put_cells(unbuilt);
  sink.end_run();
}

}  // namespace fathom::test
