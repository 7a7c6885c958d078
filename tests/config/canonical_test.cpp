#include <tuple>

#include "tests/config/config_text.h"

using fathom::OptionSource;
using fathom::config::canonical_text;
using fathom::config::describe_config;
using fathom::config::DescribedSection;
using fathom::config::fingerprint;
using fathom::config::ModelSection;
using fathom::config::RunConfig;
using fathom::test::config_of;

namespace {

bool same_model(const ModelSection& a, const ModelSection& b) {
  const auto members = [](const ModelSection& m) {
    return std::tie(m.name, m.source, m.position, m.rope_base, m.rope_layout, m.rope_partial, m.nope_layers, m.scaling,
                    m.scaling_factor, m.original_context, m.scaling_mode, m.remap, m.dtype, m.plugin_options,
                    m.rope_side, m.rope_layers, m.rope_gguf, m.rope_table_dtype, m.frozen_length, m.temperature,
                    m.temperature_scale, m.temperature_length);
  };
  return members(a) == members(b);
}

/// Member by member and not by canonical text, so that a member which the text forgets is seen.
bool same_config(const RunConfig& a, const RunConfig& b) {
  const auto members = [](const RunConfig& c) {
    const auto& [t, s, p, h, e, r] = std::tie(c.train, c.sweep, c.prompt, c.haystack, c.engine, c.report);
    return std::make_tuple(std::tie(c.name, c.seed),
                           std::tie(t.recipe, t.context, t.tasks, t.seeds, t.layers, t.d_model, t.heads, t.d_ff,
                                    t.max_steps, t.vocab_keys, t.vocab_values, t.vocab_fillers, t.vocab_names),
                           std::tie(s.tasks, s.lengths, s.depths, s.samples, s.controls, s.control_samples, s.graded,
                                    s.pair, s.adaptive, s.width, s.noise_floor, s.max_failed, s.think_tokens),
                           std::tie(p.pack, p.style, p.chat_template, h.source, h.repeat),
                           std::tie(e.device, e.threads, e.batch_tokens, e.kv_budget),
                           std::tie(r.out, r.effective, r.base_lengths, r.threshold));
  };
  if (members(a) != members(b) || a.models.size() != b.models.size()) return false;
  for (std::size_t i = 0; i < a.models.size(); ++i) {
    if (!same_model(a.models[i], b.models[i])) return false;
  }
  const auto values = [](const RunConfig& c) {
    std::map<std::string, std::map<std::string, std::string>> all;
    for (const auto& [task, source] : c.task_options) all[task] = source.values();
    return all;
  };
  return values(a) == values(b);
}

const char* const kEveryKey = R"(name = all keys
seed = 7
[model]
position = rope, alibi
rope.base = 1e4, 500000
rope.layout = interleaved
rope.partial = 0.25, 1
rope.side = suffix
rope.layers = all
rope.gguf = lcpp
rope.table_dtype = bf16
nope_layers = every 2
scaling = none, yarn, base
scaling.factor = auto, 4
scaling.original_context = 128
scaling.mode = hf
scaling.frozen_length = 512
temperature = none, log_n
temperature.scale = 0.2
temperature.length = 96
remap = none, self_extend
dtype = bf16
scaling.beta_fast = 16
remap.window = 64
alibi.max_bias = 4
[model.first]
dtype = float32
[model.second]
source = some folder/with config
scaling = declared
[train]
recipe = B
context = 64
tasks = niah, kv
seeds = 1, 2
layers = 2
d_model = 32
heads = 4
d_ff = 64
max_steps = 40
vocab.keys = 20
vocab.values = 21
vocab.fillers = 22
vocab.names = 23
[sweep]
tasks = niah_single_1@ruler, vt
lengths = 1x, 4K
depths = 0:100:25, 33.3
samples = 3
controls = on
control_samples = 7
graded = off
pair = depth
adaptive = on
width = 2.5
noise_floor = on
max_failed = 0
think_tokens = 5
[task.vt]
hops = 4
chains = 2
[prompt]
pack = mine.ini
style = chat
template = chatml
[haystack]
source = /usr/share/common-licenses
repeat = on
[engine]
device = cuda
threads = 2
batch_tokens = 4096
kv_budget = 1000000
[report]
out = somewhere
effective = mean, vt
base_lengths = 512, 1K
threshold = 80
)";

}  // namespace

TEST_CASE("config: parsing the canonical text gives the same config", "[config][canonical]") {
  for (const std::string text : {"", "[sweep]\ntasks = vt\n", "[model.a]\nsource = x.gguf\n", kEveryKey}) {
    const RunConfig config = config_of(text);
    const std::string canonical = canonical_text(config);
    INFO(canonical);
    CHECK(same_config(config_of(canonical), config));
    CHECK(canonical_text(config_of(canonical)) == canonical);
  }
}

TEST_CASE("config: no key of the round trip keeps its default", "[config][canonical]") {
  // Guards the test above: a key left at its default would pass even if nothing read it.
  const RunConfig config = config_of(kEveryKey);
  const auto differ = [](const auto& ours, const auto& defaults) {
    for (std::size_t i = 0; i < ours.size(); ++i) {
      INFO(ours[i].name);
      CHECK(ours[i].default_value != defaults[i].default_value);
    }
  };
  differ(fathom::describe_options(config.train), fathom::describe_options(fathom::config::TrainSection()));
  differ(fathom::describe_options(config.sweep), fathom::describe_options(fathom::config::SweepSection()));
  differ(fathom::describe_options(config.prompt), fathom::describe_options(fathom::config::PromptSection()));
  differ(fathom::describe_options(config.haystack), fathom::describe_options(fathom::config::HaystackSection()));
  differ(fathom::describe_options(config.engine), fathom::describe_options(fathom::config::EngineSection()));
  differ(fathom::describe_options(config.report), fathom::describe_options(fathom::config::ReportSection()));
}

TEST_CASE("config: the canonical text holds every key in a fixed order", "[config][canonical]") {
  const std::string canonical = canonical_text(config_of("[sweep]\ntasks = vt\n[task.vt]\nhops = 2\n"));
  CHECK(canonical.find("name = t\nseed = 1\n\n[model]\nsource = train\nposition = rope\nrope.base = auto\n") == 0);
  CHECK(canonical.find("\n[sweep]\ntasks = vt\nlengths = auto\ndepths = 0:100:10\nsamples = 10\n") !=
        std::string::npos);
  CHECK(canonical.find("\n[task.vt]\nhops = 2\n\n[prompt]\n") != std::string::npos);
  for (const DescribedSection& section : describe_config()) {
    for (const auto& option : section.options) {
      INFO(section.section << " " << option.name);
      CHECK(("\n" + canonical).find("\n" + option.name + " = ") != std::string::npos);
    }
  }
}

TEST_CASE("config: the fingerprint follows what shapes results, and nothing else", "[config][canonical]") {
  const std::string base = "[sweep]\ntasks = vt\n";
  const std::string expected = fingerprint(config_of(base));
  CHECK(expected.size() == 32);
  CHECK(expected.find_first_not_of("0123456789abcdef") == std::string::npos);
  for (const std::string setting : {"name=other", "report.out=x", "report.threshold=50", "engine.threads=1"}) {
    INFO(setting);
    CHECK(fingerprint(config_of(base, {setting})) == expected);
  }
  for (const std::string setting :
       {"seed=2", "rope.base=10000", "train.context=128", "sweep.samples=11", "task.vt.hops=3", "prompt.pack=zh",
        "haystack.source=noise", "engine.batch_tokens=1", "alibi.max_bias=4"}) {
    INFO(setting);
    CHECK(fingerprint(config_of(base, {setting})) != expected);
  }
  CHECK(fingerprint(config_of(base, {"rope.base=1e4"})) == fingerprint(config_of(base, {"rope.base=10000.0"})));
}

TEST_CASE("config: the description names every key with type, default and meaning", "[config][describe]") {
  const std::vector<DescribedSection> sections = describe_config();
  REQUIRE(sections.size() == 8);
  CHECK(sections[0].section.empty());
  CHECK(sections[1].section == "model");
  for (const DescribedSection& section : sections) {
    for (const auto& option : section.options) {
      INFO(section.section << " " << option.name);
      CHECK_FALSE(option.help.empty());
      CHECK_FALSE(option.type.empty());
      if (option.name != "name" && option.name != "tasks") CHECK_FALSE(option.default_value.empty());
    }
  }
}
