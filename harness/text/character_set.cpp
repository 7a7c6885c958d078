#include "harness/text/character_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace fathom::text {
namespace {

constexpr const char* kAnyCharacter = R"([\x{0}-\x{10FFFF}])";

constexpr std::array<std::string_view, 30> kCategories{"Cc", "Cf", "Cn", "Co", "Cs", "Ll", "Lm", "Lo", "Lt", "Lu",
                                                       "Mc", "Me", "Mn", "Nd", "Nl", "No", "Pc", "Pd", "Pe", "Pf",
                                                       "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"};

/// Items for all categories but these.
std::string other_categories(const std::set<std::string_view>& categories) {
  std::map<char, std::vector<std::string_view>> by_letter;
  std::set<char> broken;
  for (const std::string_view category : kCategories) {
    if (categories.count(category) != 0) {
      broken.insert(category.front());
    } else {
      by_letter[category.front()].push_back(category);
    }
  }
  std::string items;
  for (const auto& [letter, rest] : by_letter) {
    if (broken.count(letter) == 0) {
      items += fmt::format("\\p{{{}}}", letter);
    } else {
      for (const std::string_view category : rest) items += fmt::format("\\p{{{}}}", category);
    }
  }
  return items;
}

/// Without what Unicode does not compare: case, blanks and lines. Nothing if the name has other characters.
std::optional<std::string> property_key(std::string_view name) {
  std::string key;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    const char lower = static_cast<char>(c | 0x20);
    if (lower < 'a' || lower > 'z') return std::nullopt;
    key += lower;
  }
  return key;
}

std::string category_of(const std::string& key) {
  // clang-format off
  static const std::map<std::string_view, std::string_view> kLongNames{
    {"letter", "L"}, {"uppercaseletter", "Lu"}, {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"}, {"modifierletter", "Lm"}, {"otherletter", "Lo"},
    {"mark", "M"}, {"combiningmark", "M"}, {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"}, {"enclosingmark", "Me"}, {"number", "N"},
    {"decimalnumber", "Nd"}, {"digit", "Nd"}, {"letternumber", "Nl"},
    {"othernumber", "No"}, {"punctuation", "P"}, {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"}, {"openpunctuation", "Ps"}, {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"}, {"finalpunctuation", "Pf"}, {"otherpunctuation", "Po"},
    {"symbol", "S"}, {"mathsymbol", "Sm"}, {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"}, {"othersymbol", "So"}, {"separator", "Z"},
    {"spaceseparator", "Zs"}, {"lineseparator", "Zl"}, {"paragraphseparator", "Zp"},
    {"other", "C"}, {"control", "Cc"}, {"format", "Cf"},
    {"surrogate", "Cs"}, {"privateuse", "Co"}, {"unassigned", "Cn"}};
  // clang-format on
  const auto found = kLongNames.find(key);
  if (found != kLongNames.end()) return std::string(found->second);
  std::string name = key;
  if (!name.empty()) name.front() = static_cast<char>(name.front() & ~0x20);
  const bool known = std::any_of(kCategories.begin(), kCategories.end(), [&](std::string_view category) {
    return category == name || category.substr(0, 1) == name;
  });
  return known ? name : "";
}

}  // namespace

std::string CharSet::text() const {
  if (pattern) return *pattern;
  return (negated ? "[^" : "[") + items + "]";
}

CharSet listed(std::string items) {
  return {std::move(items), false, std::nullopt, std::nullopt};
}

CharSet complement(CharSet set) {
  if (set.pattern) {
    set.pattern = fmt::format("(?:(?!{}){})", *set.pattern, kAnyCharacter);
  } else {
    set.negated = !set.negated;
  }
  set.categories.reset();
  return set;
}

CharSet union_of(const std::vector<CharSet>& sets) {
  if (sets.size() == 1) return sets.front();
  CharSet plain;
  plain.categories.emplace();
  std::string others;
  for (const CharSet& set : sets) {
    if (set.pattern || set.negated) {
      others += "|" + set.text();
      continue;
    }
    plain.items += set.items;
    if (!set.categories) {
      plain.categories.reset();
    } else if (plain.categories) {
      plain.categories->insert(set.categories->begin(), set.categories->end());
    }
  }
  if (others.empty()) return plain;
  const std::string first = plain.items.empty() ? others.substr(1) : plain.text() + others;
  return {"", false, "(?:" + first + ")", std::nullopt};
}

CharSet intersection_of(const std::vector<CharSet>& sets) {
  if (sets.size() == 1) return sets.front();
  // One class that excludes the rest, where that can be said: a repeated group costs PCRE2 memory at every character.
  std::string excluded;
  bool one_class = true;
  for (const CharSet& set : sets) {
    if (set.negated && !set.pattern) {
      excluded += set.items;
    } else if (set.categories) {
      excluded += other_categories(*set.categories);
    } else {
      one_class = false;
    }
  }
  if (one_class) return {excluded, true, std::nullopt, std::nullopt};
  std::string pattern = "(?:";
  for (std::size_t i = 0; i + 1 < sets.size(); ++i) pattern += "(?=" + sets[i].text() + ")";
  return {"", false, pattern + sets.back().text() + ")", std::nullopt};
}

CharSet category_set(std::string_view name) {
  CharSet set = listed(fmt::format("\\p{{{}}}", name));
  set.categories.emplace();
  for (const std::string_view known : kCategories) {
    if (known.substr(0, name.size()) == name) set.categories->insert(known);
  }
  return set;
}

std::optional<CharSet> property_set(std::string_view name) {
  static const std::set<std::string_view> kOtherSets{"alnum", "alpha", "blank", "cntrl",  "graph", "lower", "print",
                                                     "punct", "space", "upper", "xdigit", "word",  "ascii"};
  const auto key = property_key(name);
  if (!key || key->empty() || kOtherSets.count(*key) != 0) return std::nullopt;
  const std::string category = category_of(*key);
  if (!category.empty()) return category_set(category);
  return listed(fmt::format("\\p{{sc:{}}}", *key));  // of a bare name PCRE2 takes the script's extensions too
}

}  // namespace fathom::text
