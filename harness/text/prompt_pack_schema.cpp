#include "harness/text/prompt_pack_schema.h"

#include <algorithm>
#include <iterator>

#include "harness/text/embedded.h"
#include "harness/text/prompt_pack_parser.h"

namespace fathom::text {
namespace {

// Absent, they are empty; so a pack need not give them.
constexpr std::string_view kOptionalPackKeys[] = {"intro", "lead", "system", "answer_prefix"};
// Slots that shape the wording only; all others carry the task and must stay where the en pack has them.
constexpr std::string_view kOptionalPackSlots[] = {"intro", "intro_closed", "lead",  "i",    "title",
                                                   "count", "type",         "types", "mark", "answer_prefix"};

template <typename Table>
bool is_optional_in_pack(const Table& table, std::string_view word) {
  return std::find(std::begin(table), std::end(table), word) != std::end(table);
}

PackLines parse_builtin_pack(std::string_view name) {
  const std::string file = std::string(kPackFolder) + std::string(name) + std::string(kPackExtension);
  return parse_pack_lines(embedded_file(file), file);
}

void add_pack_slots(const PackEntry& entry, PackKeySchema& schema) {
  std::set<std::string>& required = schema.required[entry.suffix];
  for (const PackSlot& slot : entry.slots) {
    schema.slots.insert(slot.name);
    if (!is_optional_in_pack(kOptionalPackSlots, slot.name) && entry.key != "answer_prefix") required.insert(slot.name);
  }
}

// The en pack rules; zh adds nothing; synthetic adds the keys of closed vocabularies (the assoc pairs).
PackSchema make_pack_schema() {
  PackSchema schema;
  for (const PackEntry& entry : parse_builtin_pack("en").entries) {
    if (entry.section.name == kPackHeader) continue;
    PackKeySchema& key = schema[entry.section.name][entry.key];
    key.suffixes.insert(entry.suffix);
    key.allowed_open = true;
    const bool optional = is_optional_in_pack(kOptionalPackKeys, entry.key);
    key.allowed_closed = optional || (entry.section.name != "assoc" && entry.section.name != "lists");
    if (!optional && entry.suffix != ".one") key.required_open.insert(entry.suffix);
    add_pack_slots(entry, key);
    if (entry.section.name == "niah") key.slots.insert({"type", "types"});
  }
  for (const PackEntry& entry : parse_builtin_pack("synthetic").entries) {
    if (entry.section.name == kPackHeader) continue;
    PackKeySchema& key = schema[entry.section.name][entry.key];
    key.suffixes.insert(entry.suffix);
    key.allowed_closed = true;
    if (entry.suffix.empty() && !is_optional_in_pack(kOptionalPackKeys, entry.key)) key.required_closed.insert("");
    if (!key.allowed_open) add_pack_slots(entry, key);
  }
  return schema;
}

}  // namespace

const PackSchema& pack_schema() {
  static const PackSchema schema = make_pack_schema();
  return schema;
}

const PackKeySchema* find_pack_key(std::string_view section, std::string_view key) {
  const auto keys = pack_schema().find(std::string(section));
  if (keys == pack_schema().end()) return nullptr;
  const auto found = keys->second.find(std::string(key));
  return found == keys->second.end() ? nullptr : &found->second;
}

}  // namespace fathom::text
