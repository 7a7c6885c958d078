// Reading two runs for a comparison, and finding out why two runs ask different questions.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/analysis/comparison.h"
#include "harness/analysis/comparison_pairs.h"
#include "harness/core/text_util.h"
#include "harness/store/retention.h"

namespace fathom::analysis {
namespace {

/// Characters of a prompt shown where two prompts part.
constexpr std::size_t kExcerptBytes = 60;
/// With this many characters in common two prompts of one tokenizer have token ids in common.
constexpr std::size_t kTellingPrefixBytes = 40;

ComparisonSide read_side(const store::ResultReader& results, const std::string& run, const std::string& database,
                         const std::string& scorer) {
  return {database, results.run(run), results.tasks(run), results.pairable_rows(run, scorer)};
}

std::string join_numbers(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> parts;
  parts.reserve(numbers.size());
  for (const std::int64_t number : numbers) parts.push_back(std::to_string(number));
  return join(parts, " and ");
}

/// Scores of two versions of a scorer are different measures.
void check_scorer_versions(const CompareRequest& request, const ComparisonSide& baseline) {
  std::vector<std::string> used = request.scorers;
  for (const store::TaskInfo& task : baseline.tasks) used.push_back(task.metric);
  const auto before = request.baseline_results.scorer_versions(request.baseline_run);
  const auto now = request.candidate_results.scorer_versions(request.candidate_run);
  for (const std::string& scorer : used) {
    const auto old_versions = before.find(scorer);
    const auto new_versions = now.find(scorer);
    if (old_versions == before.end() || new_versions == now.end()) continue;
    if (old_versions->second == new_versions->second) continue;
    throw ConfigError(
        fmt::format("compare: '{}' and '{}' are not comparable: scorer {} has version {} and version {}; run the "
                    "baseline again with this build",
                    request.baseline_run, request.candidate_run, scorer, join_numbers(old_versions->second),
                    join_numbers(new_versions->second)));
  }
}

std::size_t common_prefix(const std::string& a, const std::string& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

/// Some bytes from here on, whole UTF-8 characters, line ends as blanks.
std::string excerpt_from(const std::string& text, std::size_t begin) {
  while (begin > 0 && begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
  std::size_t end = std::min(text.size(), begin + kExcerptBytes);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
  return replace_all(text.substr(begin, end - begin), "\n", " ");
}

/// Why two questions at one place of the sweep differ, from their prompts.
std::string question_difference(const store::PromptText& before, const store::PromptText& now) {
  if (before.text == store::kDroppedText || now.text == store::kDroppedText)
    return "what differs can't be said: the texts of a prompt have been dropped";
  if (before.text == now.text) {
    return before.ids == now.ids ? "the prompts are equal, but their budget, style or sources differ"
                                 : "another tokenizer: the same prompt text has other token ids";
  }
  const std::size_t n_text = common_prefix(before.text, now.text);
  const auto n_ids =
      std::mismatch(before.ids.begin(), before.ids.end(), now.ids.begin(), now.ids.end()).first - before.ids.begin();
  const double text_share =
      static_cast<double>(n_text) / static_cast<double>(std::max<std::size_t>(1, before.text.size()));
  const double id_share = static_cast<double>(n_ids) / static_cast<double>(std::max<std::size_t>(1, before.ids.size()));
  if (n_text >= kTellingPrefixBytes && id_share < text_share / 2) {
    return "another tokenizer: prompts begin with the same text but with other token ids";
  }
  return fmt::format("another prompt pack, haystack, chat template or style: prompts part at '{}' before, '{}' now",
                     excerpt_from(before.text, n_text), excerpt_from(now.text, n_text));
}

/// A pair of variants without one question in common is refused with the reason; there is no unpaired fallback.
void check_questions(const CompareRequest& request, const ComparisonSide& baseline, const ComparisonSide& candidate) {
  for (const VariantPairing& variant : pair_runs(baseline, candidate).variants) {
    std::int64_t n_asked_in_both = 0;
    for (const auto& [place, counted] : variant.counts) {
      n_asked_in_both += counted.n_shared + counted.n_failed_baseline + counted.n_failed_candidate + counted.n_unfit;
    }
    if (n_asked_in_both > 0 || !variant.other_question) continue;
    throw ConfigError(fmt::format(
        "compare: '{}' and '{}' are not comparable: {} was asked other questions; {}", request.baseline_run,
        request.candidate_run, variant.pair.name,
        question_difference(request.baseline_results.prompt(variant.other_question->baseline_result_id),
                            request.candidate_results.prompt(variant.other_question->candidate_result_id))));
  }
}

void add_example_texts(const CompareRequest& request, Comparison& out) {
  for (CellChange& cell : out.worst_cells) {
    for (MissExample& example : cell.examples) {
      store::AnswerText before = request.baseline_results.answer(example.baseline_result_id);
      store::AnswerText now = request.candidate_results.answer(example.candidate_result_id);
      example.prompt_tail = std::move(now.prompt_tail);
      example.expected = std::move(now.expected);
      example.baseline_reply = std::move(before.reply);
      example.candidate_reply = std::move(now.reply);
    }
  }
}

void add_other_scores(const CompareRequest& request, Comparison& out) {
  for (const std::string& scorer : request.scorers) {
    const ComparisonSide baseline =
        read_side(request.baseline_results, request.baseline_run, request.baseline_database, scorer);
    const ComparisonSide candidate =
        read_side(request.candidate_results, request.candidate_run, request.candidate_database, scorer);
    GateSettings settings = request.settings;
    settings.n_worst_cells = 0;
    for (GateUnit& unit : compare_sides(baseline, candidate, settings).units) {
      if (unit.kind != UnitKind::kTaskLength) continue;
      out.other_scores.push_back({unit.pair, scorer, unit.task, unit.length_tokens, unit.scores});
    }
  }
}

}  // namespace

Comparison compare_runs(const CompareRequest& request) {
  const ComparisonSide baseline =
      read_side(request.baseline_results, request.baseline_run, request.baseline_database, "");
  const ComparisonSide candidate =
      read_side(request.candidate_results, request.candidate_run, request.candidate_database, "");
  check_scorer_versions(request, baseline);
  check_questions(request, baseline, candidate);
  Comparison out = compare_sides(baseline, candidate, request.settings);
  add_example_texts(request, out);
  add_other_scores(request, out);
  return out;
}

}  // namespace fathom::analysis
