#pragma once
// Solvers whose score is known beforehand: proof that a task measures what it says. Never used outside tests.

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/random.h"
#include "harness/scoring/matching.h"
#include "harness/scoring/scorer.h"
#include "harness/task/sample.h"

namespace fathom::test {

/// Says what is right.
inline std::string oracle_reply(const task::Sample& sample) {
  return sample.answer_text;
}

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Values of the answer's form that stand in a closed-vocabulary prompt, each once. A needle's key may have the same
/// form: then the values are every second one.
inline std::vector<std::string> values_in_prompt(const task::Sample& sample) {
  const auto form = scoring::infer_answer_form(sample);
  std::vector<std::string> values = scoring::parse_values(sample.prompt_text, *form);
  if (sample.task == "niah_multikey_3") {
    std::vector<std::string> second;
    // The last one is the key in the question.
    for (std::size_t i = 1; i + 1 < values.size(); i += 2) second.push_back(values[i]);
    values = second;
  }
  const std::set<std::string> different(values.begin(), values.end());
  return {different.begin(), different.end()};
}

/// Names as many values of the right form from the prompt as there are references.
inline std::string in_text_guess_reply(const task::Sample& sample, RngStream& rng) {
  const std::vector<std::string> values = values_in_prompt(sample);
  std::string reply;
  for (const std::uint64_t i : rng.sample_without_replacement(values.size(), sample.references.size()))
    reply += values[i] + " ";
  return reply;
}

/// Names as many words of the pool as there are references, blindly. \param pool  'k' or 'v', 200 words.
inline std::string blind_guess_reply(const task::Sample& sample, RngStream& rng) {
  const auto form = scoring::infer_answer_form(sample);
  std::string reply;
  if (form->size == 1) {
    for (const std::uint64_t i : rng.sample_without_replacement(200, sample.references.size())) {
      reply += form->pool + std::to_string(i) + " ";
    }
    return reply;
  }
  for (std::size_t i = 0; i < form->size * sample.references.size(); ++i)
    reply += form->pool + std::to_string(rng.uniform_index(200)) + " ";
  return reply;
}

/// Value of one scorer on a reply; nothing if it does not score it.
inline std::optional<double> score_reply(std::string_view scorer, const task::Sample& sample,
                                         const std::string& reply) {
  scoring::ScoredReply scored;
  lm::Completion completion;
  scored.sample = &sample;
  scored.completion = &completion;
  scored.reply_text = reply;
  return scoring::scorers().at(scorer).make()->score(scored).value;
}

inline std::string_view main_scorer(const task::Sample& sample) {
  return sample.metric == task::TaskMetric::kAll ? "all" : "part";
}

}  // namespace fathom::test
