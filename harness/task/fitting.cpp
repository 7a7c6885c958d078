#include "harness/task/fitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/prose.h"

namespace fathom::task {
namespace {

// The needed length depends on the length itself only through parts that grow by less than a token per token, so this
// ends early.
constexpr int kMaxLengthSteps = 64;

// A haystack of more units counts as endless: they make millions of tokens, and measuring all of them (a text of
// hundreds of megabytes, nearly all of a hundred thousand keys) would take longer than the samples. One that runs out
// all the same says so itself.
constexpr std::int64_t kEndlessUnits = std::int64_t{1} << 16;
// Examples and other parts in front of the text have their full size at this length.
constexpr std::int64_t kOrdinaryLength = 4096;

/// Tokens that a complete haystack fills: one more unit would have fitted into anything larger.
std::int64_t room_at_most(const MeasuredHaystack& complete) {
  return complete.tokens(complete.size()) + complete.largest_unit_tokens - 1;
}

}  // namespace

std::int64_t total_tokens(const Sample& sample) {
  return sample.prompt_tokens() + sample.think_budget + sample.generation_budget;
}

std::string word_lists_fingerprint(const text::PromptPack& pack) {
  std::string words = pack.language();
  const auto add = [&words](std::string_view list) { words += '\n' + join(text::word_list(list), "\n"); };
  if (pack.language() == "en") {
    add("adjectives_en");
    add("nouns_en");
  } else if (pack.language() == "zh") {
    add("zh_adjectives");
    add("zh_nouns");
  }
  return hash_hex(words);
}

FittedTask::FittedTask(TaskFrame frame) : frame_(std::move(frame)) {
  FATHOM_CHECK(frame_.context.assembler != nullptr && frame_.context.pack != nullptr,
               "a task needs an assembler and a pack");
  address_.pack = frame_.context.pack->fingerprint();
  address_.words = word_lists_fingerprint(*frame_.context.pack);
  address_.haystack = frame_.haystack_fingerprint;
  address_.tokenizer = frame_.context.assembler->tokenizer().fingerprint();
  address_.assembler = frame_.context.assembler->fingerprint();
  address_.pair = frame_.context.pair;
}

SampleKeyParts FittedTask::key_parts(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const {
  SampleKeyParts key;
  key.task = TaskName{frame_.name, frame_.variant}.full();
  key.version = frame_.version;
  key.parameters = parse_parameters(frame_.canonical_options);
  key.length_tokens = cell.length_tokens;
  key.depth_bp = cell.depth_bp;
  key.index = index;
  key.seed = seed;
  key.pair = frame_.context.pair;
  key.control = cell.control;
  return key;
}

void FittedTask::stamp(Sample& sample, const SampleKeyParts& key) const {
  sample.task = frame_.name;
  sample.variant = frame_.variant;
  sample.task_version = frame_.version;
  sample.index = key.index;
  sample.seed = key.seed;
  sample.length_tokens = key.length_tokens.value_or(total_tokens(sample));
  sample.depth_bp = key.depth_bp;
  sample.control = key.control;
  sample.key = sample_key(key);
  AddressParts address = address_;
  address.generation_budget = sample.generation_budget;
  address.think_budget = sample.think_budget;
  sample.address = sample_address(sample.key, address);
}

Sample FittedTask::make_sample(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const {
  FATHOM_CHECK(index >= 0, "sample indices start at 0");
  const std::vector<Control> known = controls();
  FATHOM_CHECK(cell.control == Control::kNone || std::find(known.begin(), known.end(), cell.control) != known.end(),
               "the task has no such control");
  const SampleKeyParts key = key_parts(cell, index, seed);
  const std::unique_ptr<SampleDraft> sample_draft = draft(key);
  Sample sample = fit(*sample_draft, key);
  sample_draft->finish(sample);
  stamp(sample, key);
  return sample;
}

Sample FittedTask::refused_sample(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const {
  Sample sample = Task::refused_sample(cell, index, seed);
  stamp(sample, key_parts(cell, index, seed));
  return sample;
}

Sample FittedTask::fit(const SampleDraft& draft, const SampleKeyParts& key) const {
  const std::int64_t length = key.length_tokens.value();
  const std::optional<std::int64_t> fixed_units = draft.fixed_units();
  const std::int64_t least_units = fixed_units.value_or(draft.min_units());
  Sample least = draft.build(least_units);
  if (std::max(total_tokens(least), draft.min_length_tokens()) > length) refuse_short(least, key);
  if (fixed_units) return least;

  // S(N) <= L - T - G - F, with F the prompt without any unit.
  const std::int64_t least_tokens = draft.haystack(least_units, 0).measured->tokens(least_units);
  const std::int64_t room = length - total_tokens(least) + least_tokens;
  const HaystackCache::Entry haystack = draft.haystack(least_units, room + 1);
  const MeasuredHaystack& measured = *haystack.measured;
  std::int64_t n_units =
      std::upper_bound(measured.end_tokens.begin(), measured.end_tokens.end(), room) - measured.end_tokens.begin();
  if (measured.complete && room > room_at_most(measured)) {
    const std::int64_t largest = length - room + room_at_most(measured);
    throw TooLongError(
        fmt::format("{}: length {} needs more haystack than there is: {}; largest feasible length here is {}",
                    frame_.name, length, haystack.source->limit_reason(), largest),
        largest);
  }
  while (n_units > least_units) {
    Sample sample = draft.build(n_units);
    const std::int64_t excess = total_tokens(sample) - length;
    if (excess <= 0) return sample;
    n_units -= std::max<std::int64_t>(1, excess / measured.largest_unit_tokens);
  }
  return least;
}

void FittedTask::refuse_short(const Sample& least, const SampleKeyParts& key) const {
  const std::int64_t smallest =
      std::max(smallest_length_tokens(key.seed), needed_tokens(key, key.length_tokens.value()));
  throw TooShortError(
      fmt::format("{}: length {} is too short: prompt {} + budget {} = {} tokens; smallest feasible length here is {}",
                  frame_.name, key.length_tokens.value(), least.prompt_tokens(),
                  least.generation_budget + least.think_budget, total_tokens(least), smallest),
      smallest);
}

std::int64_t FittedTask::needed_tokens(const SampleKeyParts& key, std::int64_t from) const {
  SampleKeyParts at = key;
  std::int64_t length = from;
  for (int step = 0; step < kMaxLengthSteps; ++step) {
    at.length_tokens = length;
    const std::unique_ptr<SampleDraft> sample_draft = draft(at);
    const std::int64_t needed =
        std::max(total_tokens(sample_draft->build(sample_draft->fixed_units().value_or(sample_draft->min_units()))),
                 sample_draft->min_length_tokens());
    if (needed <= length) return length;
    length = needed;
  }
  throw_invariant(__FILE__, __LINE__, "needed <= length", "the smallest length does not settle");
}

std::int64_t FittedTask::smallest_length_tokens(std::uint64_t seed) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = smallest_by_seed_.find(seed);
    if (known != smallest_by_seed_.end()) return known->second;
  }
  std::vector<std::optional<std::int32_t>> depths = {std::nullopt};
  if (sweeps_depth()) {
    std::vector<std::int32_t> probes = probe_depths();
    probes.insert(probes.end(), frame_.context.depths_bp.begin(), frame_.context.depths_bp.end());
    std::sort(probes.begin(), probes.end());
    probes.erase(std::unique(probes.begin(), probes.end()), probes.end());
    depths.assign(probes.begin(), probes.end());
  }
  std::int64_t smallest = 1;
  for (std::int64_t index = 0; index < std::max<std::int64_t>(1, frame_.context.n_samples); ++index) {
    for (const std::optional<std::int32_t>& depth : depths) {
      smallest = std::max(smallest, needed_tokens(key_parts({1, depth}, index, seed), 1));
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  smallest_by_seed_[seed] = smallest;
  return smallest;
}

std::optional<std::int64_t> FittedTask::largest_length_tokens(std::uint64_t seed) const {
  std::optional<std::int64_t> largest;
  for (std::int64_t index = 0; index < std::max<std::int64_t>(1, frame_.context.n_samples); ++index) {
    const SampleKeyParts key = key_parts({kOrdinaryLength, std::nullopt}, index, seed);
    const std::unique_ptr<SampleDraft> sample_draft = draft(key);
    const std::int64_t least_units = sample_draft->min_units();
    const std::optional<std::int64_t> size = sample_draft->haystack(least_units, 0).source->size();
    if (!size || *size > kEndlessUnits) return std::nullopt;
    if (*size < least_units) return 0;
    const HaystackCache::Entry haystack = sample_draft->haystack(*size, 0);
    const std::int64_t length = total_tokens(sample_draft->build(least_units)) -
                                haystack.measured->tokens(least_units) + room_at_most(*haystack.measured);
    largest = std::min(largest.value_or(length), length);
  }
  return largest;
}

// Asked for with every sample, but costs one.
std::int64_t FittedTask::typical_units(std::int64_t length_tokens) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = typical_units_by_length_.find(length_tokens);
    if (known != typical_units_by_length_.end()) return known->second;
  }
  const std::int64_t units = count_typical_units(length_tokens);
  const std::lock_guard<std::mutex> lock(mutex_);
  typical_units_by_length_[length_tokens] = units;
  return units;
}

std::int64_t FittedTask::count_typical_units(std::int64_t length_tokens) const {
  std::optional<std::int32_t> depth;
  if (sweeps_depth()) depth = 0;
  try {
    return make_sample({length_tokens, depth}, 0, 0).haystack_units;
  } catch (const TooShortError&) {
    return draft(key_parts({length_tokens, depth}, 0, 0))->min_units();
  } catch (const TooLongError&) {
    return draft(key_parts({length_tokens, depth}, 0, 0))->min_units();
  }
}

}  // namespace fathom::task
