#include "tasks/value_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/prose.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::tasks {
namespace {

constexpr std::int64_t kWordsPerClosedUuid = 4;
// Far above what a nearly used-up pool of a few hundred words needs; reached only if nothing is allowed.
constexpr int kMaxDrawAttempts = 100000;

bool is_closed(const task::TaskContext& context) {
  return context.pack->closed_vocabulary();
}

text::VocabularySpec word_pool_sizes(const task::TaskContext& context) {
  const auto* words = dynamic_cast<const text::WordTokenizer*>(&context.assembler->tokenizer());
  return words != nullptr ? words->spec() : text::VocabularySpec{};
}

ValuePool pool_words(char letter, std::int64_t n_words, std::int64_t words_per_value) {
  ValuePool pool;
  pool.size = std::pow(static_cast<double>(n_words), static_cast<double>(words_per_value));
  pool.draw = [letter, n_words, words_per_value](RngStream& rng) {
    std::string value;
    for (std::int64_t i = 0; i < words_per_value; ++i) {
      if (i > 0) value += ' ';
      value += letter + std::to_string(rng.uniform_index(static_cast<std::uint64_t>(n_words)));
    }
    return value;
  };
  return pool;
}

ValuePool digit_words(const task::TaskContext& context, std::int64_t n_digits) {
  const auto* words = dynamic_cast<const text::WordTokenizer*>(&context.assembler->tokenizer());
  if (words == nullptr || words->spec().n_digits < 10) {
    throw ConfigError(
        "digits needs a vocabulary with the words 0 to 9, which this model's does not have; leave the option out");
  }
  ValuePool pool;
  pool.size = std::pow(10.0, static_cast<double>(n_digits));
  pool.draw = [n_digits](RngStream& rng) {
    std::string value;
    for (std::int64_t i = 0; i < n_digits; ++i) {
      if (i > 0) value += ' ';
      value += static_cast<char>('0' + rng.uniform_index(10));
    }
    return value;
  };
  return pool;
}

std::string draw_uuid(RngStream& rng) {
  std::uint64_t high = rng.next_u64();
  std::uint64_t low = rng.next_u64();
  high = (high & 0xffffffffffff0fffULL) | 0x0000000000004000ULL;  // version 4
  low = (low & 0x3fffffffffffffffULL) | 0x8000000000000000ULL;    // variant 1
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff, high & 0xffff, low >> 48,
                     low & 0xffffffffffffULL);
}

constexpr std::string_view kNameOnsets[] = {"b", "d", "f", "g", "h", "k",  "l",  "m",  "n",  "p",
                                            "r", "s", "t", "v", "z", "br", "dr", "kr", "st", "tr"};
constexpr std::string_view kNameVowels = "aeiou";
constexpr std::string_view kNameCodas[] = {"", "l", "m", "n", "r", "s"};
constexpr double kNameSyllables = 20 * 5 * 6;
constexpr double kInventedNames = kNameSyllables * kNameSyllables * (1 + kNameSyllables);

/// Two or three syllables, capitalised; never a word of the lists.
std::string draw_invented_name(RngStream& rng) {
  static const auto words = [] {
    std::unordered_set<std::string> all;
    for (const char* list : {"nouns_en", "adjectives_en", "verbs_en"}) {
      all.insert(text::word_list(list).begin(), text::word_list(list).end());
    }
    return all;
  }();
  for (;;) {
    std::string name;
    const std::uint64_t n_syllables = 2 + rng.uniform_index(2);
    for (std::uint64_t i = 0; i < n_syllables; ++i) {
      name += kNameOnsets[rng.uniform_index(std::size(kNameOnsets))];
      name += kNameVowels[rng.uniform_index(kNameVowels.size())];
      name += kNameCodas[rng.uniform_index(std::size(kNameCodas))];
    }
    if (words.count(name) != 0) continue;
    name.front() = static_cast<char>(name.front() - 'a' + 'A');
    return name;
  }
}

}  // namespace

ValuePool word_keys(const task::TaskContext& context) {
  if (is_closed(context)) return pool_words('k', word_pool_sizes(context).n_keys, 1);
  const std::string& language = context.pack->language();
  if (language != "en" && language != "zh") {
    throw ConfigError(fmt::format("pack '{}' has language = {}, but word keys need the word lists of en or zh",
                                  context.pack->name(), language));
  }
  const bool english = language == "en";
  const std::vector<std::string>& adjectives = text::word_list(english ? "adjectives_en" : "zh_adjectives");
  const std::vector<std::string>& nouns = text::word_list(english ? "nouns_en" : "zh_nouns");
  ValuePool pool;
  pool.size = static_cast<double>(adjectives.size()) * static_cast<double>(nouns.size());
  pool.draw = [&adjectives, &nouns, joiner = context.pack->text("common", "key_join")](RngStream& rng) {
    const std::string& adjective = adjectives[rng.uniform_index(adjectives.size())];
    return adjective + joiner + nouns[rng.uniform_index(nouns.size())];
  };
  return pool;
}

ValuePool integers(const task::TaskContext& context, std::int64_t low, std::int64_t high) {
  if (is_closed(context)) return value_words(context);
  ValuePool pool;
  pool.size = static_cast<double>(high - low + 1);
  pool.draw = [low, high](RngStream& rng) { return std::to_string(rng.uniform_int(low, high)); };
  return pool;
}

ValuePool numbers(const task::TaskContext& context, std::optional<std::int64_t> n_digits, std::int64_t default_digits) {
  if (is_closed(context)) return n_digits ? digit_words(context, *n_digits) : value_words(context);
  std::int64_t low = 1;
  for (std::int64_t i = 1; i < n_digits.value_or(default_digits); ++i) low *= 10;
  return integers(context, low, low * 10 - 1);
}

ValuePool uuids(const task::TaskContext& context) {
  if (is_closed(context)) return pool_words('v', word_pool_sizes(context).n_values, kWordsPerClosedUuid);
  return {std::pow(2.0, 122), &draw_uuid};
}

ValuePool variable_names(const task::TaskContext& context, std::int64_t n_letters) {
  if (is_closed(context)) return pool_words('k', word_pool_sizes(context).n_keys, 1);
  ValuePool pool;
  pool.size = std::pow(26.0, static_cast<double>(n_letters));
  pool.draw = [n_letters](RngStream& rng) {
    std::string name;
    for (std::int64_t i = 0; i < n_letters; ++i) name += static_cast<char>('A' + rng.uniform_index(26));
    return name;
  };
  return pool;
}

ValuePool invented_words(const task::TaskContext& context, std::int64_t n_letters) {
  if (is_closed(context)) return pool_words('k', word_pool_sizes(context).n_keys, 1);
  ValuePool pool;
  pool.size = std::pow(26.0, static_cast<double>(n_letters));
  pool.draw = [n_letters](RngStream& rng) {
    std::string word;
    for (std::int64_t i = 0; i < n_letters; ++i) word += static_cast<char>('a' + rng.uniform_index(26));
    return word;
  };
  return pool;
}

ValuePool invented_names(const task::TaskContext& context) {
  if (is_closed(context)) return pool_words('e', word_pool_sizes(context).n_names, 1);
  return {kInventedNames, &draw_invented_name};
}

ValuePool person_names(const task::TaskContext& context) {
  if (is_closed(context)) return invented_names(context);
  return {kInventedNames * kInventedNames, [](RngStream& rng) {
            std::string first = draw_invented_name(rng);
            return first + ' ' + draw_invented_name(rng);
          }};
}

ValuePool list_entries(const task::TaskContext& context, std::string_view list) {
  if (is_closed(context)) return value_words(context);
  std::vector<std::string> entries = split_list(context.pack->text("lists", list));
  ValuePool pool;
  pool.size = static_cast<double>(entries.size());
  pool.draw = [entries = std::move(entries)](RngStream& rng) { return entries[rng.uniform_index(entries.size())]; };
  return pool;
}

ValuePool value_words(const task::TaskContext& context) {
  return pool_words('v', word_pool_sizes(context).n_values, 1);
}

std::optional<std::string> DistinctDraws::try_draw(const ValuePool& pool, RngStream& rng) {
  for (int attempt = 0; attempt < kMaxDrawAttempts; ++attempt) {
    std::string value = pool.draw(rng);
    if (used_.count(value) != 0 || (rejected_ && rejected_(value))) {
      // A small pool may be used up. After 20 draws a value, one that is left would have come but for a chance of
      // e^-20.
      if (static_cast<double>(used_.size()) >= pool.size && attempt > 20.0 * pool.size) return std::nullopt;
      continue;
    }
    used_.insert(value);
    return value;
  }
  return std::nullopt;
}

std::string DistinctDraws::draw(const ValuePool& pool, RngStream& rng) {
  auto value = try_draw(pool, rng);
  FATHOM_CHECK(value.has_value(), "no value is left to draw");
  return *std::move(value);
}

std::vector<std::string> DistinctDraws::draw(const ValuePool& pool, RngStream& rng, std::int64_t count) {
  std::vector<std::string> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(draw(pool, rng));
  return values;
}

TextCollisions::TextCollisions(const std::string& fixed_text, std::function<std::string()> haystack_text)
    : fixed_text_(ascii_lower(fixed_text)), haystack_text_(std::move(haystack_text)) {}

bool TextCollisions::contains(const std::string& value) {
  const std::string lower = ascii_lower(value);
  if (fixed_text_.find(lower) != std::string::npos) return true;
  if (!haystack_text_) return false;
  if (!haystack_lower_) haystack_lower_ = ascii_lower(haystack_text_());
  return haystack_lower_->find(lower) != std::string::npos;
}

std::string haystack_text(const task::MeasuredHaystack& haystack) {
  std::string text;
  for (const task::HaystackUnit& unit : haystack.units) text += unit.separator + unit.text;
  return text;
}

}  // namespace fathom::tasks
