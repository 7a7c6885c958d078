#include "harness/text/prose_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::text {
namespace {

constexpr std::string_view kEnglishVowels = "aeiou";

bool is_english_vowel(char c) {
  return kEnglishVowels.find(c) != std::string_view::npos;
}

// "consonant + y": carry, but not obey.
bool ends_in_consonant_y(std::string_view verb) {
  return verb.size() >= 2 && verb.back() == 'y' && !is_english_vowel(verb[verb.size() - 2]);
}

// tap, but not gather (two vowel groups), fix, tow or obey (last letter).
bool doubles_last_letter(std::string_view verb) {
  const std::size_t n = verb.size();
  if (n < 3 || std::string_view("wxy").find(verb[n - 1]) != std::string_view::npos) return false;
  if (is_english_vowel(verb[n - 1]) || !is_english_vowel(verb[n - 2]) || is_english_vowel(verb[n - 3])) return false;
  std::size_t n_vowel_groups = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (is_english_vowel(verb[i]) && (i == 0 || !is_english_vowel(verb[i - 1]))) ++n_vowel_groups;
  }
  return n_vowel_groups == 1;
}

std::string stem_before_ending(std::string_view verb) {
  std::string stem(verb);
  if (doubles_last_letter(verb)) stem += verb.back();
  return stem;
}

constexpr std::array<std::pair<std::string_view, ProseSlot>, 7> kProseSlots{{{"adj", ProseSlot::kAdjective},
                                                                             {"noun", ProseSlot::kNoun},
                                                                             {"verb", ProseSlot::kVerb},
                                                                             {"verb_s", ProseSlot::kVerbThirdPerson},
                                                                             {"verb_ed", ProseSlot::kVerbPast},
                                                                             {"verb_ing", ProseSlot::kVerbIng},
                                                                             {"a", ProseSlot::kArticle}}};

class ProseTemplateParser {
 public:
  ProseTemplateParser(std::string_view line, std::string where) : line_(line), where_(std::move(where)) {}

  ProseTemplate parse() {
    if (line_.find_first_of("0123456789") != std::string_view::npos)
      fail("a digit, which could pass for a needle's value");
    while (at_ < line_.size()) {
      const std::size_t next = std::min(line_.find_first_of("{[]}", at_), line_.size());
      if (next > at_) add_text({std::string(line_.substr(at_, next - at_))});
      at_ = next;
      if (at_ == line_.size()) break;
      if (line_[at_] == '{') {
        parse_slot();
      } else if (line_[at_] == '[') {
        parse_alternatives();
      } else {
        fail(fmt::format("'{}' closes nothing", line_[at_]));
      }
    }
    require(ProseSlot::kAdjective, "{adj}");
    require(ProseSlot::kNoun, "{noun}");
    return std::move(pieces_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw DataError(where_ + ": " + message); }

  void add_text(std::vector<std::string> alternatives) {
    ProsePiece piece;
    piece.alternatives = std::move(alternatives);
    pieces_.push_back(std::move(piece));
  }

  std::string_view inside(char close) {
    const std::size_t end = line_.find(close, at_);
    if (end == std::string_view::npos) fail(fmt::format("'{}' is not closed", line_[at_]));
    const std::string_view text = line_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  void parse_slot() {
    const std::string_view name = inside('}');
    const auto found =
        std::find_if(kProseSlots.begin(), kProseSlots.end(), [name](const auto& slot) { return slot.first == name; });
    if (found == kProseSlots.end()) fail(fmt::format("unknown slot {{{}}}", name));
    ProsePiece piece;
    piece.kind = ProsePiece::Kind::kSlot;
    piece.slot = found->second;
    pieces_.push_back(std::move(piece));
  }

  void parse_alternatives() {
    const std::string_view text = inside(']');
    if (text.find_first_of("{}[") != std::string_view::npos) fail(fmt::format("'[{}]' may hold plain text only", text));
    std::vector<std::string> alternatives = split(text, '|');
    for (const std::string& alternative : alternatives) {
      if (alternative.empty()) fail(fmt::format("'[{}]' has an empty alternative", text));
    }
    add_text(std::move(alternatives));
  }

  void require(ProseSlot slot, std::string_view spelling) const {
    const bool found = std::any_of(pieces_.begin(), pieces_.end(), [slot](const ProsePiece& piece) {
      return piece.kind == ProsePiece::Kind::kSlot && piece.slot == slot;
    });
    if (!found) fail(fmt::format("no {} in the template", spelling));
  }

  std::string_view line_;
  std::string where_;
  std::size_t at_ = 0;
  ProseTemplate pieces_;
};

}  // namespace

std::string verb_third_person(std::string_view verb) {
  if (ends_in_consonant_y(verb)) return std::string(verb.substr(0, verb.size() - 1)) + "ies";
  for (const std::string_view ending : {"s", "x", "z", "ch", "sh"}) {
    if (ends_with(verb, ending)) return std::string(verb) + "es";
  }
  return std::string(verb) + "s";
}

std::string verb_past(std::string_view verb) {
  if (ends_with(verb, "e")) return std::string(verb) + "d";
  if (ends_in_consonant_y(verb)) return std::string(verb.substr(0, verb.size() - 1)) + "ied";
  return stem_before_ending(verb) + "ed";
}

std::string verb_ing_form(std::string_view verb) {
  if (ends_with(verb, "ie")) return std::string(verb.substr(0, verb.size() - 2)) + "ying";
  const bool keeps_e = ends_with(verb, "ee") || ends_with(verb, "oe") || ends_with(verb, "ye");
  if (ends_with(verb, "e") && !keeps_e) return std::string(verb.substr(0, verb.size() - 1)) + "ing";
  return stem_before_ending(verb) + "ing";
}

std::string_view article_before(std::string_view following) {
  constexpr std::string_view kSilentH[] = {"honest", "hour"};
  constexpr std::string_view kSpokenAsYou[] = {"unique", "uniform", "universe", "university", "useful", "usual"};
  const std::size_t begin = std::min(following.find_first_not_of(' '), following.size());
  const std::string_view word =
      following.substr(begin, std::min(following.find_first_of(" ,.;:!?", begin), following.size()) - begin);
  if (std::find(std::begin(kSilentH), std::end(kSilentH), word) != std::end(kSilentH)) return "an";
  if (std::find(std::begin(kSpokenAsYou), std::end(kSpokenAsYou), word) != std::end(kSpokenAsYou)) return "a";
  return !word.empty() && is_english_vowel(word.front()) ? "an" : "a";
}

std::vector<ProseTemplate> parse_prose_templates(std::string_view text, const std::string& file) {
  std::vector<ProseTemplate> templates;
  const std::vector<std::string> lines = split(text, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty() || line.front() == '#') continue;
    templates.push_back(ProseTemplateParser(line, fmt::format("{}:{}", file, i + 1)).parse());
  }
  if (templates.empty()) throw DataError(fmt::format("{}: no template", file));
  return templates;
}

}  // namespace fathom::text
