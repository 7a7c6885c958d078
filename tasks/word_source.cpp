#include "tasks/word_source.h"

#include <algorithm>

#include "harness/core/error.h"
#include "harness/text/prose.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::tasks {
namespace {

void append_pool_words(std::vector<std::string>& words, char letter, std::int64_t n_words) {
  for (std::int64_t i = 0; i < n_words; ++i) words.push_back(letter + std::to_string(i));
}

}  // namespace

std::vector<std::string> listed_words(const task::TaskContext& context) {
  std::vector<std::string> words;
  if (context.pack->closed_vocabulary()) {
    const auto* tokenizer = dynamic_cast<const text::WordTokenizer*>(&context.assembler->tokenizer());
    const text::VocabularySpec spec = tokenizer != nullptr ? tokenizer->spec() : text::VocabularySpec{};
    append_pool_words(words, 'k', spec.n_keys);
    append_pool_words(words, 'v', spec.n_values);
    append_pool_words(words, 'f', spec.n_fillers);
    return words;
  }
  const std::string& language = context.pack->language();
  if (language != "en" && language != "zh") {
    throw ConfigError("pack '" + context.pack->name() + "' has language = " + language +
                      ", but words come from the lists of en or zh");
  }
  const bool english = language == "en";
  std::unordered_set<std::string> seen;
  for (const char* list : {english ? "nouns_en" : "zh_nouns", english ? "adjectives_en" : "zh_adjectives",
                           english ? "verbs_en" : "zh_verbs"}) {
    for (const std::string& word : text::word_list(list)) {
      if (seen.insert(word).second) words.push_back(word);
    }
  }
  return words;
}

WordSource::WordSource(const task::TaskContext& context, const RngKey& key,
                       std::function<bool(const std::string&)> rejected)
    : key_(key), rejected_(std::move(rejected)) {
  words_ = listed_words(context);
  RngStream(key_).shuffle(words_);
  if (rejected_) words_.erase(std::remove_if(words_.begin(), words_.end(), rejected_), words_.end());
  used_.insert(words_.begin(), words_.end());
  if (!context.pack->closed_vocabulary()) {
    nouns_ = &text::word_list(context.pack->language() == "en" ? "nouns_en" : "zh_nouns");
  }
}

std::optional<std::int64_t> WordSource::size() const {
  if (nouns_ != nullptr) return std::nullopt;
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<std::int64_t>(words_.size());
}

std::string WordSource::word(std::int64_t j) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  fill_to(j + 1);
  return words_[static_cast<std::size_t>(j)];
}

void WordSource::fill_to(std::int64_t end) const {
  while (static_cast<std::int64_t>(words_.size()) < end) {
    FATHOM_CHECK(nouns_ != nullptr, "no word is left");
    std::string word = compound(static_cast<std::int64_t>(words_.size()));
    used_.insert(word);
    words_.push_back(std::move(word));
  }
}

std::string WordSource::compound(std::int64_t j) const {
  RngStream rng(key_.child(j));
  for (;;) {
    const std::string& first = (*nouns_)[rng.uniform_index(nouns_->size())];
    std::string word = first + (*nouns_)[rng.uniform_index(nouns_->size())];
    if (used_.count(word) == 0 && !(rejected_ && rejected_(word))) return word;
  }
}

}  // namespace fathom::tasks
