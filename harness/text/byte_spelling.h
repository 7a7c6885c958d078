#pragma once
// How vocabularies write bytes that are not text.

#include <optional>
#include <string>
#include <string_view>

namespace fathom::text {

/// GPT-2 spells every byte as one visible character. The bytes that such a spelling stands for; nothing if it holds
/// another character.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

/// "<0x0A>" as that byte; nothing for another form.
std::optional<std::string> byte_of_hex_token(std::string_view piece);

}  // namespace fathom::text
