#include "harness/text/prose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/random.h"
#include "harness/core/text_util.h"
#include "harness/text/embedded.h"
#include "harness/text/prose_template.h"

namespace fathom::text {
// Not anonymous: ProseGenerator::Impl has members of these types, which a unity build would otherwise warn about.
inline namespace prose_detail {

constexpr std::string_view kWordFolder = "data/words/";
constexpr std::string_view kWordExtension = ".txt";
// Enough that a sentence can always find words it has not used yet, and that no template follows itself.
constexpr std::size_t kFewestProseWords = 8;
constexpr std::size_t kFewestProseTemplates = 3;
constexpr std::int64_t kFewestParagraphSentences = 4;
constexpr std::int64_t kMostParagraphSentences = 8;
constexpr int kMostRedraws = 100;

struct ProseLanguage {
  std::string_view name;
  std::string_view templates, adjectives, nouns, verbs;
  std::string_view sentence_separator;
};

constexpr ProseLanguage kProseLanguages[] = {
    {"en", "data/haystack/en.txt", "adjectives_en", "nouns_en", "verbs_en", " "},
    {"zh", "data/haystack/zh.txt", "zh_adjectives", "zh_nouns", "zh_verbs", ""}};

const ProseLanguage& prose_language(std::string_view name) {
  for (const ProseLanguage& language : kProseLanguages) {
    if (language.name == name) return language;
  }
  throw ConfigError(fmt::format("there is no built-in prose in language '{}'; known: en, zh", name));
}

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '\'' || c == '-' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Words that must not occur, and how they are found: whole words in English, substrings in Chinese.
class ProseExclusion {
 public:
  ProseExclusion(const ProseLanguage& language, const std::vector<std::string>& words)
      : whole_words_(language.name == "en") {
    for (const std::string& word : words) {
      const std::string_view trimmed = trim(word);
      if (!trimmed.empty()) words_.push_back(ascii_lower(trimmed));
    }
  }

  bool occurs_in(std::string_view text) const {
    if (words_.empty()) return false;
    const std::string lower = ascii_lower(text);
    return std::any_of(words_.begin(), words_.end(), [&](const std::string& word) { return finds(lower, word); });
  }

  // Only where words are written without blanks can two of them make an excluded one.
  bool may_arise_between_words() const { return !whole_words_ && !words_.empty(); }

 private:
  bool finds(const std::string& text, const std::string& word) const {
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      if (!whole_words_) return true;
      if ((at == 0 || !is_word_byte(text[at - 1])) && (end == text.size() || !is_word_byte(text[end]))) return true;
    }
    return false;
  }

  bool whole_words_;
  std::vector<std::string> words_;
};

bool template_is_excluded(const ProseTemplate& pieces, const ProseExclusion& exclusion) {
  return std::any_of(pieces.begin(), pieces.end(), [&](const ProsePiece& piece) {
    if (piece.kind == ProsePiece::Kind::kText) {
      return std::any_of(piece.alternatives.begin(), piece.alternatives.end(),
                         [&](const std::string& text) { return exclusion.occurs_in(text); });
    }
    return piece.slot == ProseSlot::kArticle && exclusion.occurs_in("a an");
  });
}

std::vector<std::string> allowed_words(std::string_view list, const ProseExclusion& exclusion) {
  std::vector<std::string> words;
  for (const std::string& word : word_list(list)) {
    if (!exclusion.occurs_in(word)) words.push_back(word);
  }
  return words;
}

// A verb occurs in four forms, so each of them is looked up.
std::vector<std::string> allowed_verbs(const ProseLanguage& language, const ProseExclusion& exclusion) {
  std::vector<std::string> verbs = allowed_words(language.verbs, exclusion);
  if (language.name != "en") return verbs;
  verbs.erase(std::remove_if(verbs.begin(), verbs.end(),
                             [&](const std::string& verb) {
                               return exclusion.occurs_in(verb_third_person(verb)) ||
                                      exclusion.occurs_in(verb_past(verb)) || exclusion.occurs_in(verb_ing_form(verb));
                             }),
              verbs.end());
  return verbs;
}

std::string verb_form(const std::string& verb, ProseSlot slot) {
  switch (slot) {
    case ProseSlot::kVerbThirdPerson:
      return verb_third_person(verb);
    case ProseSlot::kVerbPast:
      return verb_past(verb);
    case ProseSlot::kVerbIng:
      return verb_ing_form(verb);
    case ProseSlot::kVerb:
    case ProseSlot::kAdjective:
    case ProseSlot::kNoun:
    case ProseSlot::kArticle:
      break;
  }
  return verb;
}

/// The words of one sentence while it is drawn.
struct ProseDraw {
  RngStream stream;
  std::string adjective, noun;  // the main pair
  std::vector<std::string> used;

  const std::string& fresh_word(const std::vector<std::string>& list) {
    while (true) {
      const std::string& word = list[stream.uniform_index(list.size())];
      if (std::find(used.begin(), used.end(), word) != used.end()) continue;
      used.push_back(word);
      return word;
    }
  }
};

struct AffineMap {
  std::uint64_t factor, offset;
};

AffineMap draw_affine_map(const RngKey& key, std::uint64_t modulus) {
  RngStream stream(key);
  AffineMap map{0, 0};
  do {
    map.factor = static_cast<std::uint64_t>(
        stream.uniform_int(static_cast<std::int64_t>(modulus / 4), static_cast<std::int64_t>(3 * modulus / 4)));
  } while (std::gcd(map.factor, modulus) != 1);
  map.offset = stream.uniform_index(modulus);
  return map;
}

}  // namespace prose_detail

const std::vector<std::string>& word_list(std::string_view name) {
  static const auto lists = [] {
    std::map<std::string, std::vector<std::string>, std::less<>> all;
    const EmbeddedTable table = embedded_table();
    for (std::size_t i = 0; i < table.n_files; ++i) {
      std::string_view file = table.files[i].name;
      if (!starts_with(file, kWordFolder) || !ends_with(file, kWordExtension)) continue;
      file.remove_prefix(kWordFolder.size());
      file.remove_suffix(kWordExtension.size());
      std::vector<std::string>& words = all[std::string(file)];
      for (const std::string& line : split(embedded_file(table.files[i].name), '\n')) {
        if (!trim(line).empty()) words.emplace_back(trim(line));
      }
    }
    return all;
  }();
  const auto found = lists.find(name);
  FATHOM_CHECK(found != lists.end(), fmt::format("no word list '{}'", name));
  return found->second;
}

struct ProseGenerator::Impl {
  const ProseLanguage& language;
  RngKey key;
  ProseExclusion exclusion;
  std::vector<ProseTemplate> templates;
  std::vector<std::string> adjectives, nouns, verbs;
  std::uint64_t n_pairs = 0;
  AffineMap first_map{0, 0};

  // First sentences of the paragraphs so far. Only a running sum can tell where a paragraph begins, so it is kept.
  mutable std::mutex paragraphs_mutex;
  mutable std::vector<std::uint64_t> paragraph_begins{0};

  Impl(const ProseLanguage& chosen, std::uint64_t seed, const std::vector<std::string>& excluded_words)
      : language(chosen), key(std::to_string(seed)), exclusion(chosen, excluded_words) {
    for (ProseTemplate& each :
         parse_prose_templates(embedded_file(language.templates), std::string(language.templates))) {
      if (!template_is_excluded(each, exclusion)) templates.push_back(std::move(each));
    }
    adjectives = allowed_words(language.adjectives, exclusion);
    nouns = allowed_words(language.nouns, exclusion);
    verbs = allowed_verbs(language, exclusion);
    require(templates.size(), kFewestProseTemplates, "sentence templates");
    require(adjectives.size(), kFewestProseWords, "adjectives");
    require(nouns.size(), kFewestProseWords, "nouns");
    require(verbs.size(), kFewestProseWords, "verbs");
    n_pairs = adjectives.size() * nouns.size();
    first_map = draw_affine_map(key.child("pair"), n_pairs);
  }

  void require(std::size_t left, std::size_t fewest, const char* what) const {
    if (left >= fewest) return;
    throw DataError(fmt::format("prose: the excluded words leave {} {} in language '{}'; at least {} are needed", left,
                                what, language.name, fewest));
  }

  std::vector<std::size_t> round_order(std::uint64_t round) const {
    std::vector<std::size_t> order(templates.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    RngStream stream(key.child("round").child(std::to_string(round)));
    stream.shuffle(order);
    return order;
  }

  const ProseTemplate& template_of(std::uint64_t index) const {
    const std::uint64_t round = index / templates.size();
    std::vector<std::size_t> order = round_order(round);
    // The swap below never touches the last place (there are three templates at least), so one round back is enough.
    if (round > 0 && round_order(round - 1).back() == order.front()) std::swap(order[0], order[1]);
    return templates[order[index % templates.size()]];
  }

  std::uint64_t main_pair(std::uint64_t index) const {
    const std::uint64_t cycle = index / n_pairs;
    const AffineMap map =
        cycle == 0 ? first_map : draw_affine_map(key.child("pair").child(std::to_string(cycle)), n_pairs);
    return (map.factor * (index % n_pairs) + map.offset) % n_pairs;
  }

  bool begins_paragraph(std::uint64_t index) const {
    const std::lock_guard<std::mutex> lock(paragraphs_mutex);
    while (paragraph_begins.back() < index) {
      RngStream stream(key.child("par").child(std::to_string(paragraph_begins.size() - 1)));
      const auto size = stream.uniform_int(kFewestParagraphSentences, kMostParagraphSentences);
      paragraph_begins.push_back(paragraph_begins.back() + static_cast<std::uint64_t>(size));
    }
    return std::binary_search(paragraph_begins.begin(), paragraph_begins.end(), index);
  }

  std::string slot_text(ProseSlot slot, ProseDraw& draw) const {
    switch (slot) {
      case ProseSlot::kAdjective:
        if (!draw.adjective.empty()) return std::exchange(draw.adjective, {});
        return draw.fresh_word(adjectives);
      case ProseSlot::kNoun:
        if (!draw.noun.empty()) return std::exchange(draw.noun, {});
        return draw.fresh_word(nouns);
      case ProseSlot::kVerb:
      case ProseSlot::kVerbThirdPerson:
      case ProseSlot::kVerbPast:
      case ProseSlot::kVerbIng:
        return verb_form(draw.fresh_word(verbs), slot);
      case ProseSlot::kArticle:
        break;
    }
    return {};
  }

  std::string fill(const ProseTemplate& pieces, ProseDraw& draw) const {
    std::vector<std::string> texts;
    for (const ProsePiece& piece : pieces) {
      if (piece.kind == ProsePiece::Kind::kSlot) {
        texts.push_back(slot_text(piece.slot, draw));
      } else if (piece.alternatives.size() == 1) {
        texts.push_back(piece.alternatives.front());
      } else {
        texts.push_back(piece.alternatives[draw.stream.uniform_index(piece.alternatives.size())]);
      }
    }
    std::string sentence;  // from its end, because an article depends on what follows
    for (std::size_t i = pieces.size(); i > 0; --i) {
      const bool article = pieces[i - 1].kind == ProsePiece::Kind::kSlot && pieces[i - 1].slot == ProseSlot::kArticle;
      sentence.insert(0, article ? std::string(article_before(sentence)) : texts[i - 1]);
    }
    if (sentence.front() >= 'a' && sentence.front() <= 'z')
      sentence.front() = static_cast<char>(sentence.front() - 'a' + 'A');
    return sentence;
  }

  std::string sentence_text(std::uint64_t index) const {
    const std::uint64_t pair = main_pair(index);
    const std::string& adjective = adjectives[pair / nouns.size()];
    const std::string& noun = nouns[pair % nouns.size()];
    const ProseTemplate& pieces = template_of(index);
    RngStream stream(key.child("sentence").child(std::to_string(index)));
    for (int attempt = 0;; ++attempt) {
      ProseDraw draw{stream, adjective, noun, {adjective, noun}};
      std::string sentence = fill(pieces, draw);
      if (!exclusion.may_arise_between_words() || attempt == kMostRedraws || !exclusion.occurs_in(sentence))
        return sentence;
      stream = draw.stream;
    }
  }
};

ProseGenerator::ProseGenerator(std::string_view language, std::uint64_t seed,
                               const std::vector<std::string>& excluded_words)
    : impl_(std::make_unique<Impl>(prose_language(language), seed, excluded_words)) {}
ProseGenerator::~ProseGenerator() = default;
ProseGenerator::ProseGenerator(ProseGenerator&&) noexcept = default;
ProseGenerator& ProseGenerator::operator=(ProseGenerator&&) noexcept = default;

ProseSentence ProseGenerator::sentence(std::uint64_t index) const {
  ProseSentence out;
  if (index > 0)
    out.separator = impl_->begins_paragraph(index) ? "\n" : std::string(impl_->language.sentence_separator);
  out.text = impl_->sentence_text(index);
  return out;
}

std::string ProseGenerator::fingerprint(std::string_view language) {
  const ProseLanguage& chosen = prose_language(language);
  std::string canonical = "fathom/prose/1";
  const auto add = [&canonical](const std::string& name) {
    const std::string_view content = embedded_file(name);
    canonical += fmt::format("\n{}={}:{}", name, content.size(), content);
  };
  add(std::string(chosen.templates));
  for (const std::string_view list : {chosen.adjectives, chosen.nouns, chosen.verbs}) {
    add(std::string(kWordFolder) + std::string(list) + std::string(kWordExtension));
  }
  return hash_hex(canonical);
}

}  // namespace fathom::text
