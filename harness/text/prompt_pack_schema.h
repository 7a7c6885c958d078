#pragma once
// What a prompt pack may and must say, derived from the built-in packs: they are the only list of keys there is.

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace fathom::text {

inline constexpr std::string_view kPackFolder = "prompts/";
inline constexpr std::string_view kPackExtension = ".ini";
inline constexpr std::string_view kPackHeader = "pack";

/// One key with its suffixed forms.
struct PackKeySchema {
  std::set<std::string> suffixes;                         ///< those some built-in pack has, "" included
  std::set<std::string> slots;                            ///< allowed
  std::map<std::string, std::set<std::string>> required;  ///< slots, by suffix
  std::set<std::string> required_open;                    ///< suffixes that a pack with an open vocabulary must give
  std::set<std::string> required_closed;                  ///< the same for a closed vocabulary
  bool allowed_open = false;
  bool allowed_closed = false;

  const std::set<std::string>& required_slots(const std::string& suffix) const {
    const auto found = required.find(suffix);
    return found == required.end() ? required.at("") : found->second;
  }
};

/// Section -> key without suffix -> schema.
using PackSchema = std::map<std::string, std::map<std::string, PackKeySchema>>;

const PackSchema& pack_schema();
/// Null if no pack has such a key.
const PackKeySchema* find_pack_key(std::string_view section, std::string_view key);

}  // namespace fathom::text
