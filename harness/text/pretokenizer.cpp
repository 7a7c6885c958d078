#include "harness/text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/oniguruma_pattern.h"
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
// o200k: words end where capitals begin again.
constexpr const char* kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kThreeDigitsPattern = R"(\p{N}{1,3})";
constexpr const char* kHanKanaPattern = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr const char* kDeepSeek3Pattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kCjkPattern = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* kPunctuationPattern = R"([!-/:-@\[-`{-~\p{P}])";
// Falcon looks for digits among the spelled bytes, where superscripts and fractions of Latin-1 are some.
constexpr const char* kByteDigitsPattern = "[0-9\xB2\xB3\xB9\xBC-\xBE]+";

struct PretokenizerRecipe {
  const char* name;
  std::vector<SplitStep> steps;
  bool takes_whole_words;
};

const std::vector<PretokenizerRecipe>& pretokenizer_recipes() {
  const auto isolated = [](std::initializer_list<const char*> patterns) {
    std::vector<SplitStep> steps;
    for (const char* pattern : patterns) steps.push_back({pattern});
    return steps;
  };
  static const std::vector<SplitStep> gpt2 = isolated({kGpt2Pattern});
  static const std::vector<SplitStep> digits = isolated({kOneDigitPattern, kGpt2Pattern});
  static const std::vector<SplitStep> llama3 = isolated({kLlama3Pattern});
  static const std::vector<SplitStep> qwen2 = isolated({kQwen2Pattern});
  static const std::vector<SplitStep> gpt4o = isolated({kGpt4oPattern});
  static const std::vector<SplitStep> falcon{{kPunctuationPattern, SplitBehavior::kContiguous, false, false},
                                             {kGpt2Pattern},
                                             {kByteDigitsPattern, SplitBehavior::kIsolated, false, true},
                                             {"[0-9][0-9][0-9]", SplitBehavior::kIsolated, false, true}};
  static const std::vector<PretokenizerRecipe> recipes{
      {"chatglm-bpe", llama3, false},
      {"codeshell", digits, false},
      {"command-r", digits, false},
      {"dbrx", llama3, false},
      {"deepseek-coder", isolated({"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjkPattern, kOneDigitPattern}), false},
      {"deepseek-r1-qwen", qwen2, false},
      {"deepseek-v3", isolated({kThreeDigitsPattern, kHanKanaPattern, kDeepSeek3Pattern}), false},
      {"exaone", digits, false},
      {"falcon", falcon, false},
      {"glm4", llama3, false},
      {"gpt-2", gpt2, false},
      {"gpt-4o", gpt4o, false},
      {"llama-bpe", llama3, true},
      {"llama-v3", llama3, true},
      {"llama3", llama3, true},
      {"llama4", gpt4o, false},
      {"mpt", gpt2, false},
      {"olmo", gpt2, false},
      {"phi-2", gpt2, false},
      {"qwen2", qwen2, false},
      {"refact", digits, false},
      {"smaug-bpe", llama3, false},
      {"smollm", digits, false},
      {"stablelm2", qwen2, false},
      {"starcoder", digits, false},
      {"tekken", isolated({kTekkenPattern}), true}};
  return recipes;
}

// Plain function deleters: a type of this file's own would give Impl internal linkage in a unity build.
using PatternPtr = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;
using MatchPtr = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;

/// A step ready to run.
struct CompiledSplit {
  PatternPtr code;
  SplitBehavior behavior;
  bool invert;
};

std::string pcre_message(int error) {
  PCRE2_UCHAR text[160] = {};
  pcre2_get_error_message(error, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

pcre2_compile_context* newline_context() {
  static const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context = [] {
    std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> made(
        pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
    FATHOM_CHECK(made != nullptr, "PCRE2 has no memory for a compile context");
    pcre2_set_newline(made.get(), PCRE2_NEWLINE_LF);  // the library's own default is its builder's choice
    return made;
  }();
  return context.get();
}

PatternPtr compile_pattern(const SplitStep& step, const std::string& where) {
  const std::string pattern = pcre2_of_oniguruma(step.pattern, where);
  int error = 0;
  PCRE2_SIZE offset = 0;
  const std::uint32_t options = PCRE2_MULTILINE | (step.bytes ? 0U : PCRE2_UTF | PCRE2_UCP);
  PatternPtr code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset,
                                newline_context()),
                  &pcre2_code_free);
  if (code == nullptr) {
    const std::string as = pattern == step.pattern ? "" : fmt::format(" of '{}'", pattern);
    throw DataError(fmt::format("{}: pre-tokenizer pattern '{}': {} at byte {}{}", where, step.pattern,
                                pcre_message(error), offset, as));
  }
  // Without JIT support the interpreter does the same work, slower.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

/// A part of a text that a pattern matches, or that lies between two matches.
struct SplitPart {
  std::string_view text;
  bool is_match;
};

using WorkLimitPtr = std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;

/// Bounds the work on one match: patterns come from files, and some take time exponential in the text. The bound grows
/// with the text, for one match may have to look at all of it.
WorkLimitPtr bounded_work(std::size_t text_bytes) {
  constexpr std::uint64_t kLeastSteps = 2'000'000;
  constexpr std::uint64_t kStepsPerByte = 16;
  WorkLimitPtr limit(pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  FATHOM_CHECK(limit != nullptr, "PCRE2 has no memory for a match context");
  const std::uint64_t steps = std::max(kLeastSteps, kStepsPerByte * text_bytes);
  pcre2_set_match_limit(limit.get(), static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, UINT32_MAX)));
  return limit;
}

/// What PCRE2 needs beside the pattern.
struct MatchState {
  pcre2_match_data* data;
  pcre2_match_context* limit;
};

/// Where the next match begins and ends; nothing if there is none.
bool find_match(const pcre2_code* code, const MatchState& state, std::string_view text, std::size_t at,
                std::size_t& begin, std::size_t& end) {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found = pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, state.data, state.limit);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    found = pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, state.data, state.limit);
  }
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) {
    throw DataError(
        fmt::format("a pre-tokenizer pattern fails on a text of {} bytes: {}", text.size(), pcre_message(found)));
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(state.data);
  begin = bounds[0];
  end = bounds[1];
  return true;
}

/// A match of nothing cuts as well, unless it stands where the match before it ends.
std::vector<SplitPart> find_parts(const CompiledSplit& split, const MatchState& state, std::string_view text) {
  std::vector<SplitPart> parts;
  std::size_t done = 0;  // where the part begins that is not listed yet
  std::size_t at = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  bool after_match = false;
  while (at < text.size() && find_match(split.code.get(), state, text, at, begin, end)) {
    const bool odd = begin < at || end < begin;  // \K and look-behind can give such bounds
    if (odd || (begin == end && after_match && end == done)) {
      at = std::max(at, odd ? end : at) + 1;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
      continue;
    }
    if (begin > done) parts.push_back({text.substr(done, begin - done), split.invert});
    parts.push_back({text.substr(begin, end - begin), !split.invert});
    done = at = end;
    after_match = true;
  }
  if (done < text.size()) parts.push_back({text.substr(done), split.invert});
  return parts;
}

/// The two as one: `left` ends where `right` begins.
std::string_view joined(std::string_view left, std::string_view right) {
  return {left.data(), left.size() + right.size()};
}

void append_merged_with_previous(const std::vector<SplitPart>& parts, std::vector<std::string_view>& out) {
  bool after_match = false;
  bool first = true;
  for (const SplitPart& part : parts) {
    if (part.is_match && !after_match && !first) {
      out.back() = joined(out.back(), part.text);
    } else {
      out.push_back(part.text);
    }
    after_match = part.is_match;
    first = false;
  }
}

void append_merged_with_next(const std::vector<SplitPart>& parts, std::vector<std::string_view>& out) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // Of several matches in a row the last goes with what follows.
    const bool joins = parts[i].is_match && i + 1 < parts.size() && !parts[i + 1].is_match;
    out.push_back(joins ? joined(parts[i].text, parts[i + 1].text) : parts[i].text);
    if (joins) ++i;
  }
}

void append_contiguous(const std::vector<SplitPart>& parts, std::vector<std::string_view>& out) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].is_match == parts[i - 1].is_match) {
      out.back() = joined(out.back(), parts[i].text);
    } else {
      out.push_back(parts[i].text);
    }
  }
}

void apply_split(const CompiledSplit& split, const MatchState& state, std::string_view text,
                 std::vector<std::string_view>& out) {
  const std::vector<SplitPart> parts = find_parts(split, state, text);
  switch (split.behavior) {
    case SplitBehavior::kIsolated:
      for (const SplitPart& part : parts) out.push_back(part.text);
      return;
    case SplitBehavior::kRemoved:
      for (const SplitPart& part : parts) {
        if (!part.is_match) out.push_back(part.text);
      }
      return;
    case SplitBehavior::kMergedWithPrevious:
      append_merged_with_previous(parts, out);
      return;
    case SplitBehavior::kMergedWithNext:
      append_merged_with_next(parts, out);
      return;
    case SplitBehavior::kContiguous:
      append_contiguous(parts, out);
      return;
  }
}

}  // namespace pretokenizer_detail

struct Pretokenizer::Impl {
  std::vector<CompiledSplit> splits;
  bool takes_whole_words = false;

  void add(const SplitStep& step, const std::string& where) {
    splits.push_back({compile_pattern(step, where), step.behavior, step.invert});
  }
};

std::vector<std::string> Pretokenizer::names() {
  std::vector<std::string> names;
  for (const PretokenizerRecipe& recipe : pretokenizer_recipes()) names.emplace_back(recipe.name);
  return names;
}

Pretokenizer::Pretokenizer(std::string_view name, const std::string& where) : impl_(std::make_unique<Impl>()) {
  for (const PretokenizerRecipe& recipe : pretokenizer_recipes()) {
    if (name != recipe.name) continue;
    for (const SplitStep& step : recipe.steps) impl_->add(step, where);
    impl_->takes_whole_words = recipe.takes_whole_words;
    return;
  }
  throw DataError(fmt::format("{}: pre-tokenizer '{}' is unknown; known: {}", where, name, join(names(), ", ")));
}

Pretokenizer::Pretokenizer(const std::vector<SplitStep>& steps, const std::string& where)
    : impl_(std::make_unique<Impl>()) {
  bool bytes = false;
  for (const SplitStep& step : steps) {
    // A byte step may cut a character in two, which a pattern of characters must not see.
    FATHOM_CHECK(step.bytes || !bytes, "a pattern of characters behind one of bytes");
    bytes = step.bytes;
    impl_->add(step, where);
  }
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
    const WorkLimitPtr limit = bounded_work(run.text.size());
    std::vector<std::string_view> pieces{run.text};
    for (const CompiledSplit& split : impl_->splits) {
      const MatchPtr match(pcre2_match_data_create_from_pattern(split.code.get(), nullptr), &pcre2_match_data_free);
      FATHOM_CHECK(match != nullptr, "PCRE2 has no memory for a match");
      std::vector<std::string_view> parts;
      for (const std::string_view piece : pieces) apply_split(split, {match.get(), limit.get()}, piece, parts);
      parts.erase(std::remove_if(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); }),
                  parts.end());
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
