#include "harness/text/tokenizer_steps.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::text {
namespace {

using Json = nlohmann::json;

constexpr const char* kGpt2Words = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// ASCII punctuation counts whatever its category.
constexpr const char* kPunctuation = R"([!-/:-@\[-`{-~\p{P}])";
// Digits of Latin-1, where bytes are spelled as its characters: superscripts and fractions are numbers too.
constexpr const char* kByteDigit = "[0-9\xB2\xB3\xB9\xBC-\xBE]";

std::string quoted_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= 'a' && byte <= 'z') || byte < 0x20;
    if (!plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::optional<std::string> base64_bytes(std::string_view text) {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t value = 0;
  int n_bits = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    const auto digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    value = (value << 6U) | static_cast<std::uint32_t>(digit);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>((value >> static_cast<unsigned>(n_bits)) & 0xFFU);
  }
  return bytes;
}

/// Reads the steps of one file; `json` is always the step's own object.
class StepReader {
 public:
  StepReader(TokenizerSteps& steps, const std::string& where) : steps_(steps), where_(where) {}

  void read_normalizer(const Json& json) {
    if (json.is_null()) return;
    const auto type = json.at("type").get<std::string>();
    if (type == "Sequence") {
      for (const Json& part : json.at("normalizers")) read_normalizer(part);
    } else if (type == "NFC") {
      steps_.normalizer.push_back(normalize::nfc());
    } else if (type == "NFKC") {
      steps_.normalizer.push_back(normalize::nfkc());
    } else if (type == "Strip") {
      steps_.normalizer.push_back(
          normalize::strip(json.at("strip_left").get<bool>(), json.at("strip_right").get<bool>()));
    } else if (type == "Prepend") {
      read_prepend(json.at("prepend").get<std::string>());
    } else if (type == "Replace") {
      read_replace(json);
    } else if (type == "Precompiled") {
      const auto table = base64_bytes(json.at("precompiled_charsmap").get<std::string>());
      if (!table) fail("normalizer Precompiled: its table is not base64");
      if (!table->empty()) steps_.normalizer.push_back(normalize::charsmap_by_graphemes(*table, where_));
    } else {
      fail(
          fmt::format("normalizer '{}' is not supported; supported: NFC, NFKC, Strip, Prepend, Replace, Precompiled, "
                      "Sequence",
                      type));
    }
  }

  void read_pre_tokenizer(const Json& json) {
    if (json.is_null()) return;
    const auto type = json.at("type").get<std::string>();
    if (type == "Sequence") {
      for (const Json& part : json.at("pretokenizers")) read_pre_tokenizer(part);
    } else if (type == "ByteLevel") {
      read_byte_level(json);
    } else if (type == "Split") {
      read_split(json);
    } else if (type == "Digits") {
      const bool each = json.value("individual_digits", false);
      const std::string digit = steps_.byte_level ? kByteDigit : R"(\p{N})";
      add_split(each ? digit : digit + "+", SplitBehavior::kIsolated, false);
    } else if (type == "Punctuation") {
      if (steps_.byte_level) fail("pre_tokenizer Punctuation behind ByteLevel is not supported");
      add_split(kPunctuation, behavior(json.value("behavior", "Isolated")), false);
    } else if (type == "Metaspace") {
      read_metaspace(json);
    } else if (type == "WhitespaceSplit") {
      if (!steps_.splits.empty() || steps_.byte_level) fail("pre_tokenizer WhitespaceSplit must come first");
      splits_at_space_ = true;
      add_split(R"(\s)", SplitBehavior::kRemoved, false);
    } else {
      fail(
          fmt::format("pre_tokenizer '{}' is not supported; supported: ByteLevel, Split, Digits, Punctuation, "
                      "Metaspace, WhitespaceSplit, Sequence",
                      type));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { throw DataError(fmt::format("{}: {}", where_, problem)); }

  void add_split(const std::string& pattern, SplitBehavior what, bool invert) {
    steps_.splits.push_back({pattern, what, invert, steps_.byte_level});
  }

  SplitBehavior behavior(const std::string& name) const {
    static const std::map<std::string, SplitBehavior> kNames{{"Isolated", SplitBehavior::kIsolated},
                                                             {"Removed", SplitBehavior::kRemoved},
                                                             {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
                                                             {"MergedWithNext", SplitBehavior::kMergedWithNext},
                                                             {"Contiguous", SplitBehavior::kContiguous}};
    const auto found = kNames.find(name);
    if (found == kNames.end()) {
      fail(
          fmt::format("pre_tokenizer behavior '{}' is unknown; known: Isolated, Removed, MergedWithPrevious, "
                      "MergedWithNext, Contiguous",
                      name));
    }
    return found->second;
  }

  void read_prepend(const std::string& prefix) {
    if (prefix != " " && prefix != "\xE2\x96\x81") {
      fail(fmt::format("normalizer Prepend of '{}' is not supported; supported: a blank or '\xE2\x96\x81'", prefix));
    }
    steps_.normalizer.push_back(normalize::prepend(prefix, PrefixPlace::kEverySegment));
    steps_.blank_prefix = PrefixPlace::kEverySegment;
  }

  void read_replace(const Json& json) {
    const Json& pattern = json.at("pattern");
    const auto content = json.at("content").get<std::string>();
    if (pattern.contains("String")) {
      const auto from = pattern.at("String").get<std::string>();
      if (from.empty()) fail("normalizer Replace of an empty text");
      steps_.normalizer.push_back(normalize::replace(from, content));
      if (from == " ") steps_.blank_mark = content;
      return;
    }
    const auto regex = pattern.at("Regex").get<std::string>();
    // SentencePiece's remove_extra_whitespaces, as it is converted.
    if (regex != " {2,}" || (content != " " && content != "\xE2\x96\x81")) {
      fail(fmt::format("normalizer Replace of the pattern '{}' is not supported; supported: a plain text, or ' {{2,}}'",
                       regex));
    }
    steps_.normalizer.push_back(normalize::shorten_blanks(content));
  }

  void read_byte_level(const Json& json) {
    if (steps_.byte_level) fail("pre_tokenizer ByteLevel stands twice");
    if (json.value("add_prefix_space", true)) {
      if (!steps_.splits.empty()) fail("pre_tokenizer ByteLevel: add_prefix_space behind another split");
      steps_.rewriting.push_back(normalize::prepend_unless_there(" ", PrefixPlace::kEverySegment));
      steps_.blank_prefix = PrefixPlace::kEverySegment;
    }
    if (json.value("use_regex", true)) add_split(kGpt2Words, SplitBehavior::kIsolated, false);
    steps_.byte_level = true;
  }

  void read_split(const Json& json) {
    const Json& pattern = json.at("pattern");
    const bool plain = pattern.contains("String");
    std::string regex =
        plain ? quoted_pattern(pattern.at("String").get<std::string>()) : pattern.at("Regex").get<std::string>();
    // Behind ByteLevel a pattern sees the spelling of the bytes, which only for plain ASCII is the text itself.
    if (steps_.byte_level && regex.find_first_not_of("0123456789[]{},+*?()|-") != std::string::npos) {
      fail(fmt::format("pre_tokenizer Split behind ByteLevel by '{}' is not supported", regex));
    }
    if (regex.empty()) fail("pre_tokenizer Split by an empty pattern");
    add_split(regex, behavior(json.at("behavior").get<std::string>()), json.value("invert", false));
  }

  void read_metaspace(const Json& json) {
    if (steps_.byte_level) fail("pre_tokenizer Metaspace behind ByteLevel is not supported");
    const auto mark = json.at("replacement").get<std::string>();
    if (mark.empty()) fail("pre_tokenizer Metaspace: replacement is empty");
    // Before prepend_scheme there was a flag.
    const std::string scheme =
        json.value("prepend_scheme", std::string(json.value("add_prefix_space", true) ? "always" : "never"));
    if (scheme != "always" && scheme != "first" && scheme != "never") {
      fail(fmt::format("pre_tokenizer Metaspace: prepend_scheme '{}' is unknown; known: always, first, never", scheme));
    }
    if (splits_at_space_) {
      // Every word gets its own mark: the same as one mark for each stretch of white space.
      if (scheme != "always") fail("pre_tokenizer Metaspace behind WhitespaceSplit: only prepend_scheme always");
      steps_.splits.clear();
      steps_.rewriting.push_back(normalize::collapse_space());
      steps_.rewriting.push_back(normalize::replace(" " + mark, mark));  // a word that has one gets no other
    } else if (!steps_.splits.empty()) {
      fail("pre_tokenizer Metaspace behind another split is not supported");
    }
    steps_.rewriting.push_back(normalize::replace(" ", mark));
    if (scheme != "never") {
      steps_.blank_prefix = scheme == "always" ? PrefixPlace::kEverySegment : PrefixPlace::kTextOnly;
      steps_.rewriting.push_back(normalize::prepend_unless_there(mark, *steps_.blank_prefix));
    }
    steps_.blank_mark = mark;
    if (json.value("split", true)) add_split(quoted_pattern(mark), SplitBehavior::kMergedWithNext, false);
  }

  TokenizerSteps& steps_;
  const std::string& where_;
  bool splits_at_space_ = false;
};

std::string frame_token(const Json& item, const Json& specials, const std::string& where) {
  auto name = item.at("SpecialToken").at("id").get<std::string>();
  if (!specials.contains(name) || specials.at(name).at("ids").size() != 1) {
    throw DataError(fmt::format("{}: post_processor: special token '{}' must stand for one id", where, name));
  }
  return name;
}

void read_template(const Json& json, const std::string& where, TokenizerFrame& frame) {
  frame.is_said = true;
  bool behind = false;
  for (const Json& item : json.at("single")) {
    if (item.contains("Sequence")) {
      behind = true;
      continue;
    }
    std::optional<std::string>& side = behind ? frame.back : frame.front;
    if (side) {
      throw DataError(fmt::format("{}: post_processor puts several special tokens {} a sequence; one is supported",
                                  where, behind ? "behind" : "in front of"));
    }
    side = frame_token(item, json.at("special_tokens"), where);
  }
}

void read_processor(const Json& json, const std::string& where, TokenizerFrame& frame) {
  if (json.is_null()) return;
  const auto type = json.at("type").get<std::string>();
  if (type == "Sequence") {
    for (const Json& part : json.at("processors")) read_processor(part, where, frame);
  } else if (type == "TemplateProcessing") {
    read_template(json, where, frame);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    frame = {true, json.at("cls").at(0).get<std::string>(), json.at("sep").at(0).get<std::string>()};
  } else if (type != "ByteLevel") {
    throw DataError(
        fmt::format("{}: post_processor '{}' is not supported; supported: TemplateProcessing, ByteLevel, "
                    "RobertaProcessing, BertProcessing, Sequence",
                    where, type));
  }
}

}  // namespace

TokenizerSteps read_tokenizer_steps(const std::string& normalizer, const std::string& pre_tokenizer,
                                    const std::string& where) {
  TokenizerSteps steps;
  try {
    StepReader reader(steps, where);
    reader.read_normalizer(Json::parse(normalizer));
    reader.read_pre_tokenizer(Json::parse(pre_tokenizer));
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: normalizer or pre_tokenizer: {}", where, error.what()));
  }
  return steps;
}

TokenizerFrame read_tokenizer_frame(const std::string& post_processor, const std::string& where) {
  TokenizerFrame frame;
  try {
    read_processor(Json::parse(post_processor), where, frame);
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("{}: post_processor: {}", where, error.what()));
  }
  return frame;
}

}  // namespace fathom::text
