// Key-value retrieval from a JSON object (tasks specification 2.2; Liu et al. 2024, "Lost in the Middle", section 3).

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/task/fitting.h"
#include "harness/task/placement.h"
#include "harness/task/prompt_build.h"
#include "tasks/pair_file.h"
#include "tasks/tasks.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

using task::TaskVariant;

constexpr std::int32_t kKvVersion = 2;
constexpr std::int64_t kKvTaskBudget = 64;
constexpr std::int64_t kKvLeastPairs = 4;
constexpr std::int64_t kKvFixedSizes[] = {75, 140, 300};
constexpr std::int64_t kKvFixedPlaces = 5;

struct KvOptions {
  std::int64_t fit = 1;
  std::optional<std::int64_t> n;
  std::string data;

  void visit(OptionVisitor& v) {
    v.integer("fit", fit, {0, 1}, "1: as many pairs as the length holds; 0: fixed sizes, whose length is measured.");
    v.optional_integer("n", n, {2, 100000}, "Pairs with fit=0; auto: 75, 140 and 300 in turn, or all of a line.");
    v.text("data", data, "Lines of ordered_kv_records, key and value; empty: random pairs.");
  }
};

class KvTask : public task::FittedTask {
 public:
  /// \param file  the user's objects; null: random pairs.
  KvTask(task::TaskFrame task_frame, const KvOptions& options, ValuePool keys, ValuePool values,
         std::shared_ptr<const PairFile> file)
      : FittedTask(std::move(task_frame)),
        options_(options),
        keys_(std::move(keys)),
        values_(std::move(values)),
        file_(std::move(file)) {}

  task::Sample make_sample(const task::TaskCell& cell, std::int64_t index, std::uint64_t seed) const override;
  std::int64_t smallest_length_tokens(std::uint64_t seed) const override;

  bool sweeps_depth() const override { return fitted(); }
  bool sweeps_length() const override { return fitted(); }
  std::vector<task::Control> controls() const override {
    return {task::Control::kNoNeedle, task::Control::kNeedleOnly, task::Control::kWrongKey};
  }
  task::TaskMetric metric() const override { return task::TaskMetric::kPart; }
  double in_text_guess(std::int64_t length_tokens) const override;
  double blind_guess() const override { return 1.0 / values_.size; }

  std::string pack_text(std::string_view name) const { return frame().context.pack->text("kv", name, frame().name); }
  const task::TaskContext& context() const { return frame().context; }
  const ValuePool& keys() const { return keys_; }
  const ValuePool& values() const { return values_; }
  /// Unit that stands at place `place` of the object. A user's line says which pair is asked for: it is unit 0, and it
  /// moves; of random pairs the one that stands at the gold place is asked for.
  std::int64_t unit_at(std::int64_t place, std::int64_t gold) const {
    if (!file_) return place;
    return place == gold ? 0 : place < gold ? place + 1 : place;
  }
  task::HaystackCache::Entry pairs(const task::SampleKeyParts& key, std::int64_t units, std::int64_t tokens) const;

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;
  // Every place the gold pair can have in the smallest object.
  std::vector<std::int32_t> probe_depths() const override { return {0, 3334, 6667, kDepthScale}; }

 private:
  bool fitted() const { return options_.fit == 1; }
  std::int64_t fixed_size(std::int64_t index) const {
    if (file_) {
      const auto n_pairs = static_cast<std::int64_t>(file_->object(index).pairs.size());
      return std::min(n_pairs, options_.n.value_or(n_pairs));
    }
    return options_.n.value_or(kKvFixedSizes[static_cast<std::size_t>(index) % std::size(kKvFixedSizes)]);
  }
  std::int32_t fixed_depth_bp(std::int64_t index) const {
    const std::int64_t round =
        options_.n || file_ ? index : index / static_cast<std::int64_t>(std::size(kKvFixedSizes));
    return static_cast<std::int32_t>(round % kKvFixedPlaces * kDepthScale / (kKvFixedPlaces - 1));
  }

  KvOptions options_;
  ValuePool keys_;
  ValuePool values_;
  std::shared_ptr<const PairFile> file_;
  mutable task::HaystackCache cache_;
};

/// One object; the pair at floor((n - 1) * depth) is asked for.
class KvDraft : public task::SampleDraft {
 public:
  /// \param plain_units  for controls: pairs of the sample without one, which decide what is asked.
  KvDraft(const KvTask& kv, task::SampleKeyParts key, std::int32_t depth_bp, std::optional<std::int64_t> plain_units)
      : kv_(kv), key_(std::move(key)), depth_bp_(depth_bp), plain_units_(plain_units) {}

  std::int64_t min_units() const override { return kKvLeastPairs; }
  std::optional<std::int64_t> fixed_units() const override {
    if (key_.control != task::Control::kNeedleOnly) return std::nullopt;
    return plain_units_;
  }
  task::HaystackCache::Entry haystack(std::int64_t units, std::int64_t tokens) const override {
    return kv_.pairs(key_, units, tokens);
  }
  task::Sample build(std::int64_t n_units) const override;
  void finish(task::Sample& sample) const override;

 private:
  std::int64_t gold_index(std::int64_t n_units) const {
    return std::min(n_units - 1, (plain_units_.value_or(n_units) - 1) * depth_bp_ / kDepthScale);
  }
  task::AnswerPlan answer_plan(const std::string& value) const;
  std::vector<std::int64_t> pairs_shown(std::int64_t n_units, std::int64_t gold) const;
  std::string queried_key(const PairHaystack& pairs, std::int64_t n_units) const;
  task::ContextText object_text(const task::MeasuredHaystack& measured, std::int64_t n_units, std::int64_t gold) const;

  const KvTask& kv_;
  task::SampleKeyParts key_;
  std::int32_t depth_bp_;
  std::optional<std::int64_t> plain_units_;
};

const PairHaystack& as_pairs(const task::HaystackCache::Entry& entry) {
  return dynamic_cast<const PairHaystack&>(*entry.source);
}

task::AnswerPlan KvDraft::answer_plan(const std::string& value) const {
  task::AnswerPlan plan;
  plan.references = {value};
  plan.join = [](const std::vector<std::string>& values) { return values.front(); };
  plan.task_budget = kKvTaskBudget;
  plan.metric = task::TaskMetric::kPart;
  return plan;
}

// Which pairs stand in the object: all, or what the control leaves.
std::vector<std::int64_t> KvDraft::pairs_shown(std::int64_t n_units, std::int64_t gold) const {
  if (key_.control == task::Control::kNeedleOnly) return {gold};
  std::vector<std::int64_t> shown;
  for (std::int64_t i = 0; i < n_units; ++i) {
    if (i != gold || key_.control != task::Control::kNoNeedle) shown.push_back(i);
  }
  return shown;
}

std::string KvDraft::queried_key(const PairHaystack& pairs, std::int64_t n_units) const {
  const std::int64_t gold = gold_index(n_units);
  if (key_.control != task::Control::kWrongKey) return pairs.pair(kv_.unit_at(gold, gold)).first;
  DistinctDraws used;
  for (std::int64_t i = 0; i < n_units; ++i) used.add(pairs.pair(i).first);
  RngStream rng(task::stream_key(key_, task::SampleStream::kAux).child("wrong key"));
  return used.draw(kv_.keys(), rng);
}

task::ContextText KvDraft::object_text(const task::MeasuredHaystack& measured, std::int64_t n_units,
                                       std::int64_t gold) const {
  task::ContextText context;
  context.text = kv_.pack_text("open");
  bool first = true;
  for (const std::int64_t i : pairs_shown(n_units, gold)) {
    const task::HaystackUnit& pair = measured.units[static_cast<std::size_t>(kv_.unit_at(i, gold))];
    if (!first) context.text += pair.separator;
    first = false;
    const std::size_t begin = context.text.size();
    context.text += pair.text;
    if (i == gold) context.spans = {{begin, context.text.size()}};
  }
  context.text += kv_.pack_text("close");
  return context;
}

task::Sample KvDraft::build(std::int64_t n_units) const {
  const task::HaystackCache::Entry entry = haystack(n_units, 0);
  const std::int64_t gold = gold_index(n_units);
  const PairHaystack& pairs = as_pairs(entry);
  const task::ContextText context = object_text(*entry.measured, n_units, gold);

  text::SlotValues values = {{"query", queried_key(pairs, n_units)}};
  for (const std::string_view name : {"intro", "lead", "question"}) {
    values.emplace_back(name, text::PromptPack::render(kv_.pack_text(name), values));
  }
  const task::PromptFrame frame = task::render_layout(kv_.pack_text("layout"), values,
                                                      text::PromptPack::render(kv_.pack_text("answer_prefix"), values));

  task::Sample sample;
  const task::PromptPositions positions = task::fill_prompt(sample, kv_.context(), frame, context);
  task::fill_answer(sample, kv_.context(), answer_plan(pairs.pair(kv_.unit_at(gold, gold)).second),
                    positions.context_end_byte);
  sample.haystack_units = n_units;
  if (positions.span_tokens.empty()) return sample;
  task::NeedlePlace place;
  place.requested_depth_bp = depth_bp_;
  place.actual_depth_bp = task::PlacementSpace(*entry.measured, n_units).depth_bp(gold);
  place.first_token = positions.span_tokens.front().first;
  place.last_token = positions.span_tokens.front().second;
  sample.needles = {place};
  return sample;
}

void KvDraft::finish(task::Sample& sample) const {
  const task::HaystackCache::Entry entry = haystack(sample.haystack_units, 0);
  const std::int64_t gold = gold_index(sample.haystack_units);
  std::vector<std::vector<std::string>> others;
  DistinctDraws used;
  for (std::int64_t i = 0; i < sample.haystack_units; ++i) {
    const auto [key, value] = as_pairs(entry).pair(i);
    used.add(key);
    used.add(value);
    if (i != kv_.unit_at(gold, gold)) others.push_back({value});
  }
  RngStream aux = task::sample_stream(key_, task::SampleStream::kAux);
  sample.candidates =
      task::make_candidates(sample, answer_plan(sample.references.front()), std::move(others), aux, [&]() {
        std::optional<std::vector<std::string>> fresh;
        if (auto value = used.try_draw(kv_.values(), aux)) fresh = {*std::move(value)};
        return fresh;
      });
}

task::HaystackCache::Entry KvTask::pairs(const task::SampleKeyParts& key, std::int64_t units,
                                         std::int64_t tokens) const {
  const RngKey hay = task::stream_key(key, task::SampleStream::kHay);
  const auto make = [&]() -> std::shared_ptr<const task::Haystack> {
    constexpr double kEnough = 1e9;
    const auto most = static_cast<std::int64_t>(std::min({keys_.size, values_.size, kEnough}));
    const auto render = [text = pack_text("pair")](const std::string& name, const std::string& value) {
      return text::PromptPack::render(text, {{"key", name}, {"value", value}});
    };
    if (file_) return make_pair_file_haystack(file_, key.index, pack_text("pair_sep"), render);
    return std::make_shared<const PairListHaystack>(
        PairListSpec{keys_, values_, DistinctDraws(), most, hay, pack_text("pair_sep"), render});
  };
  return cache_.get(hay.text(), make, frame().context.assembler->tokenizer(), units, tokens);
}

std::unique_ptr<task::SampleDraft> KvTask::draft(const task::SampleKeyParts& key) const {
  const std::int64_t stratum = key.index % task::kDepthStrata;
  const auto balanced = static_cast<std::int32_t>(stratum * kDepthScale / (task::kDepthStrata - 1));
  std::optional<std::int64_t> plain_units;
  if (key.control != task::Control::kNone) {
    const task::TaskCell plain{key.length_tokens.value_or(0), key.depth_bp, task::Control::kNone};
    plain_units = make_sample(plain, key.index, key.seed).haystack_units;
  }
  const std::int32_t depth_bp = fitted() ? key.depth_bp.value_or(balanced) : fixed_depth_bp(key.index);
  return std::make_unique<KvDraft>(*this, key, depth_bp, plain_units);
}

task::Sample KvTask::make_sample(const task::TaskCell& cell, std::int64_t index, std::uint64_t seed) const {
  if (fitted()) return FittedTask::make_sample(cell, index, seed);
  task::SampleKeyParts key = key_parts(cell, index, seed);
  key.length_tokens.reset();
  key.depth_bp.reset();
  const std::unique_ptr<task::SampleDraft> sample_draft = draft(key);
  task::Sample sample = sample_draft->build(fixed_size(index));
  sample_draft->finish(sample);
  stamp(sample, key);
  return sample;
}

std::int64_t KvTask::smallest_length_tokens(std::uint64_t seed) const {
  if (fitted()) return FittedTask::smallest_length_tokens(seed);
  std::int64_t smallest = 0;
  for (std::int64_t index = 0; index < std::max<std::int64_t>(1, frame().context.n_samples); ++index) {
    smallest = std::max(smallest, make_sample({}, index, seed).length_tokens);
  }
  return smallest;
}

double KvTask::in_text_guess(std::int64_t length_tokens) const {
  if (fitted()) return 1.0 / static_cast<double>(typical_units(length_tokens));
  double sum = 0;
  for (std::size_t i = 0; i < std::size(kKvFixedSizes); ++i)
    sum += 1.0 / static_cast<double>(fixed_size(static_cast<std::int64_t>(i)));
  return sum / static_cast<double>(std::size(kKvFixedSizes));
}

std::unique_ptr<task::Task> make_kv(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                    const task::TaskContext& context) {
  KvOptions options;
  bind_options(options, source);
  const bool closed = context.pack->closed_vocabulary();
  ValuePool keys = closed ? word_keys(context) : uuids(context);
  ValuePool values = closed ? value_words(context) : uuids(context);
  std::shared_ptr<const PairFile> file;
  if (!options.data.empty()) {
    if (closed) throw ConfigError(fmt::format("{}: data = {} needs an open vocabulary", entry.name, options.data));
    file = PairFile::load(options.data);
    options.data = file->fingerprint();  // what is asked depends on the content, not on where it lies
    if (context.n_samples > file->size()) {
      throw ConfigError(fmt::format("{}: '{}' has {} lines, and {} samples are asked for", entry.name, file->path(),
                                    file->size(), context.n_samples));
    }
  }
  const std::int64_t most =
      options.fit == 1 ? kKvLeastPairs : options.n.value_or(kKvFixedSizes[std::size(kKvFixedSizes) - 1]);
  if (!keys.holds(most) || !values.holds(most)) {
    throw ConfigError(
        fmt::format("{}: {} pairs need as many keys and values, but there are {:.0f} and {:.0f}; set n or fit = 1",
                    entry.name, most, keys.size, values.size));
  }
  task::TaskFrame frame{std::string(entry.name),
                        entry.version,
                        variant,
                        canonical_options(options),
                        file ? "pairs/" + file->fingerprint() : "pairs",
                        context};
  return std::make_unique<KvTask>(std::move(frame), options, std::move(keys), std::move(values), std::move(file));
}

std::vector<OptionDescription> describe_kv() {
  return describe_options(KvOptions{});
}

}  // namespace

task::TaskEntry entries::kv_entry() {
  return {"kv",
          kKvVersion,
          "lost_in_the_middle",
          "A JSON object of random keys and values; the value of one key is asked for.",
          "Lost in the Middle (Liu et al. 2024), section 3",
          false,
          &describe_kv,
          &make_kv};
}

}  // namespace fathom::tasks
