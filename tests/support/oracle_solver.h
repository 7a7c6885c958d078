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
#include "harness/core/text_util.h"
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

/// What the documents of a closed-vocabulary prompt say where the question's answer stands in its own: the word behind
/// the marker the question ends in; for two facts, of the documents that are yards.
inline std::vector<std::string> document_answers(const task::Sample& sample) {
  std::vector<std::string> words = words_of(sample.prompt_text);
  const std::string marker = words.back();
  const bool two_facts = words[words.size() - 2] == marker;
  const auto question = std::find(words.begin(), words.end(), "ask");
  std::vector<std::string> answers;
  for (auto document = std::find(words.begin(), question, "doc"); document != question;) {
    const auto end = std::find(document + 1, question, "doc");
    const bool ship = std::find(document, end, "of") != end;
    const auto at = std::find(document, end, marker);
    if (at != end && !(two_facts && ship)) answers.push_back(*(at + 1));
    document = end;
  }
  return answers;
}

/// Values of the answer's form that stand in a closed-vocabulary prompt, each once. A needle's key may have the same
/// form: then the values are every second one.
inline std::vector<std::string> values_in_prompt(const task::Sample& sample) {
  if (!sample.labels.empty()) return sample.labels;
  if (sample.prompt_text.find(" ask ") != std::string::npos && starts_with(sample.prompt_text, "doc ")) {
    return document_answers(sample);
  }
  const auto form = scoring::infer_answer_form(sample);
  std::vector<std::string> values = scoring::parse_values(sample.prompt_text, *form);
  if (sample.task == "niah_multikey_3") {
    std::vector<std::string> second;
    // The last one is the key in the question.
    for (std::size_t i = 1; i + 1 < values.size(); i += 2) second.push_back(values[i]);
    values = second;
  }
  std::set<std::string> different(values.begin(), values.end());
  if (sample.task == "fwe") different.erase("f0");  // the filler, which the question names
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

/// Names as many words of the pool as there are references, blindly. The pools have their ordinary sizes; pool 0 is all
/// of k, v and f.
inline std::string blind_guess_reply(const task::Sample& sample, RngStream& rng) {
  constexpr std::uint64_t kPoolWords = 200;
  if (sample.task == "facts") return sample.labels[rng.uniform_index(sample.labels.size())];
  const auto form = scoring::infer_answer_form(sample);
  // Of a closed set of answers all are candidates.
  if (!form) return sample.candidates[rng.uniform_index(sample.candidates.size())];
  const std::uint64_t n_words = form->pool == 0 ? 3 * kPoolWords : form->pool == 'e' ? kPoolWords / 2 : kPoolWords;
  const auto word = [&form](std::uint64_t i) {
    const char letter = form->pool == 0 ? "kvf"[i / kPoolWords] : form->pool;
    return letter + std::to_string(i % kPoolWords) + " ";
  };
  std::string reply;
  if (form->size == 1) {
    for (const std::uint64_t i : rng.sample_without_replacement(n_words, sample.references.size())) reply += word(i);
    return reply;
  }
  for (std::size_t i = 0; i < form->size * sample.references.size(); ++i) reply += word(rng.uniform_index(n_words));
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
  return task::to_string(sample.metric);
}

}  // namespace fathom::test
