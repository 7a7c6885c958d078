#include "harness/text/prompt_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/embedded.h"
#include "harness/text/prompt_pack_parser.h"
#include "harness/text/prompt_pack_schema.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::text {
namespace {

constexpr std::string_view kPackHeaderKeys[] = {"name", "version", "base", "language", "vocabulary"};
constexpr std::string_view kPackLanguages[] = {"en", "zh", "none"};
// Comma-separated; everything else is running text.
constexpr std::string_view kPackListKey = "cmd_words";

template <typename Table>
bool is_in_pack_table(const Table& table, std::string_view word) {
  return std::find(std::begin(table), std::end(table), word) != std::end(table);
}

template <typename Names>
std::string list_pack_names(const Names& names) {
  return fmt::format("{}", fmt::join(std::begin(names), std::end(names), ", "));
}

template <typename Map>
std::vector<std::string> pack_names(const Map& map) {
  std::vector<std::string> names;
  names.reserve(map.size());
  for (const auto& item : map) names.push_back(item.first);
  return names;
}

std::string pack_suggestion(std::string_view name, const std::vector<std::string>& known) {
  if (const auto near = nearest_name(name, known)) return fmt::format("; did you mean '{}'?", *near);
  return fmt::format("; known: {}", list_pack_names(known));
}

std::string pack_address(std::string_view section, std::string_view task, std::string_view key) {
  std::string address(section);
  if (!task.empty())
    address.append(".").append(task).append("/");
  else
    address += '.';
  return address.append(key);
}

// The vocabulary that closed packs are checked against: the default pools, and cues for `cmd_words`.
const WordTokenizer& pack_vocabulary() {
  static const WordTokenizer vocabulary = [] {
    VocabularySpec spec;
    spec.n_cues = 200;
    spec.n_targets = 200;
    spec.n_digits = 10;
    return WordTokenizer(spec, false);
  }();
  return vocabulary;
}

}  // namespace

/// Checks the lines of one file against the schema and fills a PromptPack from them.
class PromptPackBuilder {
 public:
  PromptPackBuilder(const PackLines& lines, const std::string& source)
      : lines_(lines), source_(source), pack_(new PromptPack()) {}

  std::shared_ptr<const PromptPack> build() {
    check_sections();
    read_header();
    if (base_ != nullptr) pack_->texts_ = base_->texts_;
    std::set<std::string> tasks;
    if (base_ != nullptr) tasks.insert(base_->task_names_.begin(), base_->task_names_.end());
    for (const PackEntry& entry : lines_.entries) {
      if (entry.section.name == kPackHeader) continue;
      check_entry(entry);
      pack_->texts_[pack_address(entry.section.name, entry.section.task, entry.full_key())] = entry.value;
      if (!entry.section.task.empty()) tasks.insert(entry.section.task);
    }
    pack_->task_names_.assign(tasks.begin(), tasks.end());
    check_nothing_missing();
    pack_->fingerprint_ = fingerprint();
    return pack_;
  }

 private:
  void check_sections() const {
    for (const PackSection& section : lines_.sections) {
      const bool header = section.name == kPackHeader && section.task.empty();
      if (header || pack_schema().count(section.name) != 0) continue;
      std::vector<std::string> known = pack_names(pack_schema());
      known.emplace_back(kPackHeader);
      fail_pack(source_, section.place,
                fmt::format("unknown section [{}]{}", section.title(), pack_suggestion(section.name, known)));
    }
  }

  const PackEntry* header_entry(std::string_view key) const {
    for (const PackEntry& entry : lines_.entries) {
      if (entry.section.name == kPackHeader && entry.full_key() == key) return &entry;
    }
    return nullptr;
  }

  PackPlace section_place(std::string_view name) const {
    for (const PackSection& section : lines_.sections) {
      if (section.name == name && section.task.empty()) return section.place;
    }
    return lines_.end;
  }

  const PackEntry& required_header(std::string_view key, const std::string& fix) const {
    const PackEntry* entry = header_entry(key);
    if (entry == nullptr) {
      fail_pack(source_, section_place(kPackHeader), fmt::format("missing key '{}' in [pack]; {}", key, fix));
    }
    return *entry;
  }

  void read_header() {
    for (const PackEntry& entry : lines_.entries) {
      if (entry.section.name != kPackHeader) continue;
      if (!is_in_pack_table(kPackHeaderKeys, entry.full_key())) {
        fail_pack(
            source_, entry.place,
            fmt::format("unknown key '{}' in [pack]; known: {}", entry.full_key(), list_pack_names(kPackHeaderKeys)));
      }
      if (!entry.slots.empty()) fail_pack(source_, entry.slots.front().place, "[pack] has no slots");
    }
    const PackEntry& name = required_header("name", "it names the pack in results");
    if (name.value.empty()) fail_pack(source_, name.place, "the pack's name is empty");
    pack_->name_ = name.value;
    const PackEntry& version = required_header("version", "write 'version = 1' and raise it with the wording");
    const auto number = parse_int(version.value);
    if (!number || *number < 1) {
      fail_pack(source_, version.place, fmt::format("version = {} is not a whole number from 1", version.value));
    }
    pack_->version_ = *number;
    read_base();
    read_language();
  }

  void read_base() {
    if (const PackEntry* base = header_entry("base")) {
      const std::vector<std::string> known = PromptPack::builtin_names();
      if (!is_in_pack_table(known, base->value)) {
        fail_pack(source_, base->place,
                  fmt::format("unknown base '{}'; known: {}", base->value, list_pack_names(known)));
      }
      base_ = PromptPack::builtin(base->value);
      pack_->closed_vocabulary_ = base_->closed_vocabulary_;
    }
    const PackEntry* vocabulary = header_entry("vocabulary");
    if (vocabulary == nullptr) return;
    if (vocabulary->value != "open" && vocabulary->value != "closed") {
      fail_pack(source_, vocabulary->place,
                fmt::format("unknown vocabulary '{}'; known: open, closed", vocabulary->value));
    }
    pack_->closed_vocabulary_ = vocabulary->value == "closed";
    if (base_ != nullptr && base_->closed_vocabulary_ != pack_->closed_vocabulary_) {
      fail_pack(source_, vocabulary->place,
                fmt::format("vocabulary = {} does not go with base = {}, whose texts are written for the other kind",
                            vocabulary->value, base_->name_));
    }
  }

  void read_language() {
    const PackEntry* language = header_entry("language");
    if (language == nullptr && base_ != nullptr) {
      pack_->language_ = base_->language_;
      return;
    }
    const PackEntry& entry = required_header("language", fmt::format("known: {}", list_pack_names(kPackLanguages)));
    if (!is_in_pack_table(kPackLanguages, entry.value)) {
      fail_pack(source_, entry.place,
                fmt::format("unknown language '{}'; known: {}", entry.value, list_pack_names(kPackLanguages)));
    }
    pack_->language_ = entry.value;
  }

  void check_entry(const PackEntry& entry) const {
    const PackKeySchema* schema = find_pack_key(entry.section.name, entry.key);
    if (schema == nullptr) {
      fail_pack(source_, entry.place,
                fmt::format("unknown key '{}' in [{}]{}", entry.key, entry.section.title(),
                            pack_suggestion(entry.key, pack_names(pack_schema().at(entry.section.name)))));
    }
    if (!(pack_->closed_vocabulary_ ? schema->allowed_closed : schema->allowed_open)) {
      fail_pack(source_, entry.place,
                fmt::format("key '{}' in [{}] is not for packs with {} vocabulary", entry.key, entry.section.title(),
                            pack_->closed_vocabulary_ ? "a closed" : "an open"));
    }
    if (schema->suffixes.count(entry.suffix) == 0) {
      std::vector<std::string> known;
      for (const std::string& suffix : schema->suffixes) known.push_back("'" + entry.key + suffix + "'");
      fail_pack(source_, entry.place,
                fmt::format("unknown suffix '{}' of key '{}' in [{}]; known: {}", entry.suffix, entry.key,
                            entry.section.title(), list_pack_names(known)));
    }
    check_slots(entry, *schema);
    if (entry.key == "answer_prefix" && !entry.value.empty() &&
        (entry.value.back() == ' ' || entry.value.back() == '\t')) {
      fail_pack(
          source_, entry.place,
          fmt::format("'{}' ends in a blank, which makes models answer worse; end it in a word", entry.full_key()));
    }
    if (pack_->closed_vocabulary_) check_words(entry);
  }

  void check_slots(const PackEntry& entry, const PackKeySchema& schema) const {
    std::set<std::string> given;
    for (const PackSlot& slot : entry.slots) {
      if (schema.slots.count(slot.name) == 0) {
        fail_pack(source_, slot.place,
                  fmt::format("unknown slot {{{}}} in '{}'; known: {}", slot.name, entry.full_key(),
                              schema.slots.empty() ? "none" : list_pack_names(schema.slots)));
      }
      given.insert(slot.name);
    }
    for (const std::string& name : schema.required_slots(entry.suffix)) {
      if (given.count(name) == 0) {
        fail_pack(source_, entry.place,
                  fmt::format("'{}' in [{}] lacks the slot {{{}}}, which carries the task", entry.full_key(),
                              entry.section.title(), name));
      }
    }
  }

  // Every blank-separated word is one token, so a word may not touch a slot and must be in the vocabulary.
  void check_words(const PackEntry& entry) const {
    std::string words;
    std::size_t at = 0;
    while (at < entry.value.size()) {
      const std::size_t close = entry.value[at] == '{' ? entry.value.find('}', at) : std::string::npos;
      if (close == std::string::npos) {
        words += entry.key == kPackListKey && entry.value[at] == ',' ? ' ' : entry.value[at];
        ++at;
        continue;
      }
      const bool touches_before =
          at > 0 && entry.value[at - 1] != '}' && trim(entry.value.substr(at - 1, 1)).size() == 1;
      const bool touches_behind = close + 1 < entry.value.size() && entry.value[close + 1] != '{' &&
                                  trim(entry.value.substr(close + 1, 1)).size() == 1;
      if (touches_before || touches_behind) {
        fail_pack(source_, entry.place,
                  fmt::format("'{}' has a word that touches the slot {}; a closed vocabulary needs a blank between",
                              entry.full_key(), entry.value.substr(at, close + 1 - at)));
      }
      words += ' ';
      at = close + 1;
    }
    for (const std::string& word : split(replace_all(words, "\n", " "), ' ')) {
      if (!word.empty() && !pack_vocabulary().contains(word)) {
        fail_pack(source_, entry.place,
                  fmt::format("word '{}' in '{}' is not in the closed vocabulary", word, entry.full_key()));
      }
    }
  }

  void check_nothing_missing() const {
    for (const auto& [section, keys] : pack_schema()) {
      for (const auto& [key, schema] : keys) {
        for (const std::string& suffix : pack_->closed_vocabulary_ ? schema.required_closed : schema.required_open) {
          if (pack_->texts_.count(pack_address(section, "", key + suffix)) != 0) continue;
          fail_pack(source_, section_place(section),
                    fmt::format("missing key '{}{}' in [{}]; give it, or set 'base = {}' in [pack] to take what is "
                                "missing from there",
                                key, suffix, section, pack_->closed_vocabulary_ ? "synthetic" : "en"));
        }
      }
    }
  }

  std::string fingerprint() const {
    std::string canonical =
        fmt::format("fathom/pack/1\nname={}\nversion={}\nlanguage={}\nvocabulary={}\n", pack_->name_, pack_->version_,
                    pack_->language_, pack_->closed_vocabulary_ ? "closed" : "open");
    // Sizes in front: no text can imitate the end of another.
    for (const auto& [address, value] : pack_->texts_)
      canonical += fmt::format("{}={}:{}\n", address, value.size(), value);
    return hash_hex(canonical);
  }

  const PackLines& lines_;
  const std::string& source_;
  std::shared_ptr<PromptPack> pack_;
  std::shared_ptr<const PromptPack> base_;
};

std::vector<std::string> PromptPack::builtin_names() {
  std::vector<std::string> names;
  const EmbeddedTable table = embedded_table();
  for (std::size_t i = 0; i < table.n_files; ++i) {
    std::string_view file = table.files[i].name;
    if (!starts_with(file, kPackFolder) || !ends_with(file, kPackExtension)) continue;
    file.remove_prefix(kPackFolder.size());
    file.remove_suffix(kPackExtension.size());
    names.emplace_back(file);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::shared_ptr<const PromptPack> PromptPack::builtin(std::string_view name) {
  static const auto packs = [] {
    std::map<std::string, std::shared_ptr<const PromptPack>, std::less<>> all;
    for (const std::string& each : builtin_names()) {
      const std::string source = std::string(kPackFolder) + each + std::string(kPackExtension);
      all.emplace(each, parse(embedded_file(source), source));
    }
    return all;
  }();
  const auto found = packs.find(name);
  if (found == packs.end()) {
    throw ConfigError(fmt::format("unknown prompt pack '{}'; known: {}, or the path of a file", name,
                                  list_pack_names(pack_names(packs))));
  }
  return found->second;
}

std::shared_ptr<const PromptPack> PromptPack::parse(std::string_view text, const std::string& source) {
  const PackLines lines = parse_pack_lines(text, source);
  return PromptPackBuilder(lines, source).build();
}

std::shared_ptr<const PromptPack> PromptPack::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // libstdc++ opens a folder and fails on the first read only, with an exception of its own.
  if (std::filesystem::is_directory(path)) file.setstate(std::ios::failbit);
  if (file) text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) throw ConfigError(fmt::format("prompt pack '{}' cannot be read", path));
  return parse(text, path);
}

const std::string& PromptPack::text(std::string_view section, std::string_view key, std::string_view task) const {
  static const std::string empty;
  const std::string_view plain = key.substr(0, key.find('.'));
  FATHOM_CHECK(find_pack_key(section, plain) != nullptr,
               fmt::format("no prompt pack has a key '{}' in [{}]", key, section));
  for (const std::string_view owner : {task, std::string_view()}) {
    for (const std::string_view name : {key, plain}) {
      const auto found = texts_.find(pack_address(section, owner, name));
      if (found != texts_.end()) return found->second;
    }
  }
  return empty;
}

bool PromptPack::has(std::string_view section, std::string_view key, std::string_view task) const {
  const std::string_view plain = key.substr(0, key.find('.'));
  FATHOM_CHECK(find_pack_key(section, plain) != nullptr,
               fmt::format("no prompt pack has a key '{}' in [{}]", key, section));
  return texts_.count(pack_address(section, task, key)) != 0 || texts_.count(pack_address(section, "", key)) != 0;
}

std::string PromptPack::render(std::string_view text, const SlotValues& values) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t close = text[at] == '{' ? text.find_first_of("{}", at + 1) : std::string_view::npos;
    const std::string_view name =
        close == std::string_view::npos ? std::string_view() : text.substr(at + 1, close - at - 1);
    const bool slot = !name.empty() && text[close] == '}' &&
                      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos &&
                      name.front() >= 'a';
    if (!slot) {
      out += text[at++];
      continue;
    }
    const auto value =
        std::find_if(values.begin(), values.end(), [name](const auto& each) { return each.first == name; });
    FATHOM_CHECK(value != values.end(), fmt::format("slot {{{}}} of '{}' has no value", name, text));
    out += value->second;
    at = close + 1;
  }
  return out;
}

std::string PromptPack::join_list(const std::vector<std::string>& items) const {
  if (items.size() == 2) return items[0] + text("common", "list_two") + items[1];
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += text("common", i + 1 == items.size() ? "list_last" : "list_sep");
    out += items[i];
  }
  return out;
}

}  // namespace fathom::text
