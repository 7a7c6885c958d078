#include "harness/scoring/matching.h"

#include <algorithm>
#include <utility>

#include "harness/core/text_util.h"

namespace fathom::scoring {
namespace {

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";

std::string remove_thinking(std::string_view reply) {
  // Some templates open the block in the prompt, so a reply may hold its end only.
  if (const std::size_t close = reply.rfind(kThinkClose); close != std::string_view::npos) {
    reply.remove_prefix(close + kThinkClose.size());
  }
  return std::string(reply.substr(0, reply.find(kThinkOpen)));
}

/// Code point at `at` and its length in bytes; nothing for ill-formed UTF-8.
struct CodePoint {
  std::uint32_t value = 0;
  std::size_t n_bytes = 0;
};

std::optional<CodePoint> decode_code_point(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t lead = byte(at);
  const std::size_t n = lead < 0x80 ? 1 : (lead >> 5) == 0x6 ? 2 : (lead >> 4) == 0xe ? 3 : (lead >> 3) == 0x1e ? 4 : 0;
  if (n == 0 || at + n > text.size()) return std::nullopt;
  if (n == 1) return CodePoint{lead, 1};
  std::uint32_t value = lead & (0xffU >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(at + i) >> 6) != 0x2) return std::nullopt;
    value = (value << 6) | (byte(at + i) & 0x3fU);
  }
  return CodePoint{value, n};
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

bool in_range(std::uint32_t code, std::uint32_t low, std::uint32_t high) {
  return code >= low && code <= high;
}

/// Latin Extended-A pairs upper and lower case as neighbours, but the upper one is even in some stretches and odd in
/// others.
std::uint32_t lower_latin_extended_a(std::uint32_t code) {
  if (code == 0x130) return 'i';
  if (code == 0x178) return 0xff;
  const bool upper_is_odd = in_range(code, 0x139, 0x148) || in_range(code, 0x179, 0x17e);
  if (in_range(code, 0x138, 0x138) || code == 0x149 || code == 0x17f) return code;
  return (code % 2 == 1) == upper_is_odd ? code + 1 : code;
}

std::uint32_t lower_greek(std::uint32_t code) {
  if (code == 0x386) return 0x3ac;
  if (in_range(code, 0x388, 0x38a)) return code + 37;
  if (code == 0x38c) return 0x3cc;
  if (in_range(code, 0x38e, 0x38f)) return code + 63;
  return in_range(code, 0x391, 0x3ab) && code != 0x3a2 ? code + 32 : code;
}

std::uint32_t lower_code_point(std::uint32_t code) {
  if (in_range(code, 'A', 'Z')) return code + 32;
  if (in_range(code, 0xc0, 0xde) && code != 0xd7) return code + 32;
  if (in_range(code, 0x100, 0x17f)) return lower_latin_extended_a(code);
  if (in_range(code, 0x370, 0x3ff)) return lower_greek(code);
  if (in_range(code, 0x400, 0x40f)) return code + 80;
  if (in_range(code, 0x410, 0x42f)) return code + 32;
  if (in_range(code, 0xff10, 0xff19)) return code - 0xff10 + '0';
  if (in_range(code, 0xff21, 0xff3a)) return code + 32;
  return code;
}

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_letter(char c) {
  return is_upper(c) || is_lower(c);
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}
/// Part of a word for the purpose of a run's ends; bytes beyond ASCII are letters of some script, or punctuation: they
/// end no run of digits.
bool is_word_char(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

bool looks_like_uuid(std::string_view text) {
  constexpr std::string_view kPattern = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
  if (text.size() != kPattern.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kPattern[i] == '-' ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return true;
}

bool is_pool_word(std::string_view word) {
  return word.size() >= 2 && word[0] >= 'a' && word[0] <= 'z' && std::all_of(word.begin() + 1, word.end(), is_digit);
}

/// Maximal runs of characters `inside` accepts, of exactly `size` characters (0: any number), that no further word
/// character touches.
template <typename Inside>
std::vector<std::string> parse_runs(std::string_view text, std::size_t size, Inside inside) {
  std::vector<std::string> values;
  std::size_t at = 0;
  while (at < text.size()) {
    if (!is_word_char(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_word_char(text[end])) ++end;
    const std::string_view run = text.substr(at, end - at);
    if ((size == 0 || run.size() == size) && std::all_of(run.begin(), run.end(), inside))
      values.push_back(ascii_lower(run));
    at = end;
  }
  return values;
}

std::vector<std::string> parse_uuids(std::string_view folded) {
  constexpr std::size_t kUuidBytes = 36;
  std::vector<std::string> values;
  for (std::size_t at = 0; at + kUuidBytes <= folded.size();) {
    const bool touched =
        (at > 0 && is_hex(folded[at - 1])) || (at + kUuidBytes < folded.size() && is_hex(folded[at + kUuidBytes]));
    if (!touched && looks_like_uuid(folded.substr(at, kUuidBytes))) {
      values.emplace_back(folded.substr(at, kUuidBytes));
      at += kUuidBytes;
    } else {
      ++at;
    }
  }
  return values;
}

std::vector<std::string> parse_pool_words(std::string_view folded, const AnswerForm& form) {
  std::vector<std::string> values;
  std::vector<std::string> run;
  for (const std::string& word : split_words(folded)) {
    if (!is_pool_word(word) || (form.pool != 0 && word[0] != form.pool)) {
      run.clear();
      continue;
    }
    run.push_back(word);
    if (run.size() == form.size) {
      values.push_back(join(run, " "));
      run.clear();
    }
  }
  return values;
}

std::optional<AnswerForm> infer_form_of_one(const std::string& reference, bool whole_words) {
  if (whole_words) {
    const std::vector<std::string> words = split_words(reference);
    if (words.empty()) return std::nullopt;
    for (const std::string& word : words) {
      if (!is_pool_word(word) || word[0] != words.front()[0]) return std::nullopt;
    }
    return AnswerForm{AnswerForm::Kind::kPoolWords, words.size(), words.front()[0]};
  }
  if (reference.empty()) return std::nullopt;
  if (std::all_of(reference.begin(), reference.end(), is_digit))
    return AnswerForm{AnswerForm::Kind::kDigits, reference.size(), 0};
  if (looks_like_uuid(reference)) return AnswerForm{AnswerForm::Kind::kUuid, reference.size(), 0};
  if (std::all_of(reference.begin(), reference.end(), is_upper)) {
    return AnswerForm{AnswerForm::Kind::kCapitals, reference.size(), 0};
  }
  if (std::all_of(reference.begin(), reference.end(), is_lower)) {
    return AnswerForm{AnswerForm::Kind::kLowerWord, reference.size(), 0};
  }
  return std::nullopt;
}

/// The form of two references together: words may differ in length, words of a closed vocabulary in their pool.
std::optional<AnswerForm> common_form(AnswerForm a, const AnswerForm& b) {
  if (a.kind != b.kind) return std::nullopt;
  if (a.kind == AnswerForm::Kind::kLowerWord) {
    if (a.size != b.size) a.size = 0;
    return a;
  }
  if (a.size != b.size) return std::nullopt;
  if (a.pool != b.pool) {
    if (a.size != 1) return std::nullopt;
    a.pool = 0;
  }
  return a;
}

std::string drop_punctuation(std::string_view folded) {
  std::string out;
  for (std::size_t i = 0; i < folded.size(); ++i) {
    const auto byte = static_cast<unsigned char>(folded[i]);
    const bool minus =
        folded[i] == '-' && i + 1 < folded.size() && is_digit(folded[i + 1]) && (i == 0 || is_space(folded[i - 1]));
    const bool punctuation = byte > 0x20 && byte < 0x7f && !is_letter(folded[i]) && !is_digit(folded[i]);
    if (minus || !punctuation) out += folded[i];
  }
  return out;
}

bool is_label_at(std::string_view folded, std::size_t at, std::string_view label) {
  if (label.empty() || folded.substr(at, label.size()) != label) return false;
  const std::size_t end = at + label.size();
  const bool joined_before = at > 0 && is_word_char(label.front()) && is_word_char(folded[at - 1]);
  const bool joined_behind = end < folded.size() && is_word_char(label.back()) && is_word_char(folded[end]);
  return !joined_before && !joined_behind;
}

}  // namespace

std::string clean_reply(std::string_view reply) {
  std::string text = remove_thinking(reply);
  text = std::string(trim(text));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = '\n';
  }
  return std::string(trim(text));
}

std::string judged_reply(const task::Sample& sample, std::string_view reply) {
  std::string text = clean_reply(reply);
  return sample.first_line ? text.substr(0, text.find('\n')) : text;
}

std::string normalize_answer(std::string_view text) {
  std::vector<std::string> kept;
  for (std::string& word : split_words(drop_punctuation(fold_case(text)))) {
    if (word != "a" && word != "an" && word != "the") kept.push_back(std::move(word));
  }
  return join(kept, " ");
}

std::string fold_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto code = decode_code_point(text, at);
    const std::uint32_t lower = code ? lower_code_point(code->value) : 0;
    if (code && lower != code->value) {
      append_utf8(out, lower);
    } else {
      out.append(text.substr(at, code ? code->n_bytes : 1));
    }
    at += code ? code->n_bytes : 1;
  }
  return out;
}

bool contains_reference(std::string_view reply, std::string_view reference, WordMatch match) {
  const std::string folded_reply = fold_case(reply);
  const std::string folded_reference = fold_case(reference);
  if (match == WordMatch::kSubstring) return folded_reply.find(folded_reference) != std::string::npos;
  const std::vector<std::string> words = split_words(folded_reply);
  const std::vector<std::string> wanted = split_words(folded_reference);
  return std::search(words.begin(), words.end(), wanted.begin(), wanted.end()) != words.end() || wanted.empty();
}

std::optional<std::string> first_label(std::string_view text, const std::vector<std::string>& labels) {
  const std::string folded = fold_case(text);
  for (std::size_t at = 0; at < folded.size(); ++at) {
    std::optional<std::string> longest;
    for (const std::string& label : labels) {
      const bool longer = !longest || label.size() > longest->size();
      if (longer && is_label_at(folded, at, fold_case(label))) longest = label;
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

std::optional<AnswerForm> infer_answer_form(const task::Sample& sample) {
  if (sample.metric != task::TaskMetric::kAll && sample.references.size() > 1) return std::nullopt;
  std::optional<AnswerForm> form;
  for (const std::string& reference : sample.references) {
    const auto one = infer_form_of_one(reference, sample.whole_words);
    if (!one) return std::nullopt;
    // A lone word of small letters can't be told from the words around it.
    if (one->kind == AnswerForm::Kind::kLowerWord && sample.references.size() == 1) return std::nullopt;
    form = form ? common_form(*form, *one) : one;
    if (!form) return std::nullopt;
  }
  return form;
}

std::vector<std::string> parse_values(std::string_view reply, const AnswerForm& form) {
  switch (form.kind) {
    case AnswerForm::Kind::kDigits:
      return parse_runs(fold_case(reply), form.size, is_digit);
    case AnswerForm::Kind::kUuid:
      return parse_uuids(fold_case(reply));
    case AnswerForm::Kind::kCapitals:
      return parse_runs(reply, form.size, is_upper);
    case AnswerForm::Kind::kLowerWord:
      return parse_runs(reply, form.size, is_lower);
    case AnswerForm::Kind::kPoolWords:
      return parse_pool_words(fold_case(reply), form);
  }
  return {};
}

std::optional<std::vector<std::string>> parse_sample_values(const task::Sample& sample, std::string_view reply) {
  const auto form = infer_answer_form(sample);
  if (!form) return std::nullopt;
  return parse_values(reply, *form);
}

std::vector<std::string> folded_references(const task::Sample& sample) {
  std::vector<std::string> folded;
  for (const std::string& reference : sample.references) folded.push_back(fold_case(reference));
  return folded;
}

}  // namespace fathom::scoring
