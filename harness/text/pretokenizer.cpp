#include "harness/text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <cstddef>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/utf8.h"

namespace fathom::text {
// Not anonymous: Pretokenizer::Impl has members of these types, which a unity build would otherwise warn about.
inline namespace pretokenizer_detail {

// English endings, letters, digits, other marks, each with the blank in front of it; of several blanks the last goes
// with the word.
constexpr const char* kGpt2Pattern = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kOneDigitPattern = R"(\p{N})";
constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Patterns are applied one after the other: the pieces of one are the texts of the next.
struct PretokenizerRecipe {
  const char* name;
  std::vector<const char*> patterns;
  bool takes_whole_words;
};

const std::vector<PretokenizerRecipe>& pretokenizer_recipes() {
  static const std::vector<PretokenizerRecipe> recipes{
      {"gpt-2", {kGpt2Pattern}, false},     {"llama-bpe", {kLlama3Pattern}, true},
      {"llama-v3", {kLlama3Pattern}, true}, {"llama3", {kLlama3Pattern}, true},
      {"qwen2", {kQwen2Pattern}, false},    {"smollm", {kOneDigitPattern, kGpt2Pattern}, false}};
  return recipes;
}

// Plain function deleters: a type of this file's own would give Impl internal linkage in a unity build.
using PatternPtr = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;
using MatchPtr = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

PatternPtr compile_pattern(const char* pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  PatternPtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                &error, &offset, nullptr),
                  &pcre2_code_free);
  FATHOM_CHECK(code != nullptr, fmt::format("PCRE2 error {} at {} of a pre-tokenizer pattern", error, offset));
  // Without JIT support the interpreter does the same work, slower.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

// Appends the matches in `text` and what stands between them.
void split_by_pattern(const pcre2_code* code, pcre2_match_data* match, std::string_view text,
                      std::vector<std::string_view>& out) {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t at = 0;
  while (at < text.size()) {
    int found = pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, match, nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, nullptr);
    }
    if (found == PCRE2_ERROR_NOMATCH) break;
    FATHOM_CHECK(found > 0, fmt::format("PCRE2 error {} while splitting a text of {} bytes", found, text.size()));
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match);
    FATHOM_CHECK(bounds[1] > at, "a pre-tokenizer pattern matched nothing");
    if (bounds[0] > at) out.push_back(text.substr(at, bounds[0] - at));
    out.push_back(text.substr(bounds[0], bounds[1] - bounds[0]));
    at = bounds[1];
  }
  if (at < text.size()) out.push_back(text.substr(at));
}

// Runs of well-formed UTF-8, and every other byte alone.
struct Utf8Run {
  std::string_view text;
  bool valid;
};

std::vector<Utf8Run> utf8_runs(std::string_view text) {
  if (is_valid_utf8(text)) return {{text, true}};
  std::vector<Utf8Run> runs;
  std::size_t begin = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid) {
      if (at > begin) runs.push_back({text.substr(begin, at - begin), true});
      runs.push_back({text.substr(at, 1), false});
      begin = at + 1;
    }
    at += c.size_bytes;
  }
  if (at > begin) runs.push_back({text.substr(begin), true});
  return runs;
}

}  // namespace pretokenizer_detail

struct Pretokenizer::Impl {
  std::vector<PatternPtr> patterns;
  bool takes_whole_words = false;
};

std::vector<std::string> Pretokenizer::names() {
  std::vector<std::string> names;
  for (const PretokenizerRecipe& recipe : pretokenizer_recipes()) names.emplace_back(recipe.name);
  return names;
}

Pretokenizer::Pretokenizer(std::string_view name, const std::string& where) : impl_(std::make_unique<Impl>()) {
  for (const PretokenizerRecipe& recipe : pretokenizer_recipes()) {
    if (name != recipe.name) continue;
    for (const char* pattern : recipe.patterns) impl_->patterns.push_back(compile_pattern(pattern));
    impl_->takes_whole_words = recipe.takes_whole_words;
    return;
  }
  throw DataError(fmt::format("{}: pre-tokenizer '{}' is unknown; known: {}", where, name, join(names(), ", ")));
}

Pretokenizer::~Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;

std::vector<std::string_view> Pretokenizer::split(std::string_view text) const {
  std::vector<std::string_view> words;
  for (const Utf8Run& run : utf8_runs(text)) {
    if (!run.valid) {
      words.push_back(run.text);
      continue;
    }
    std::vector<std::string_view> pieces{run.text};
    for (const PatternPtr& pattern : impl_->patterns) {
      const MatchPtr match(pcre2_match_data_create_from_pattern(pattern.get(), nullptr), &pcre2_match_data_free);
      FATHOM_CHECK(match != nullptr, "PCRE2 has no memory for a match");
      std::vector<std::string_view> parts;
      for (const std::string_view piece : pieces) split_by_pattern(pattern.get(), match.get(), piece, parts);
      pieces = std::move(parts);
    }
    words.insert(words.end(), pieces.begin(), pieces.end());
  }
  return words;
}

bool Pretokenizer::takes_whole_words() const {
  return impl_->takes_whole_words;
}

}  // namespace fathom::text
