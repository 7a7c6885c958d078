#pragma once
// Formats of other tools' results, one file each. A reader turns text into scores with their provenance; it computes
// nothing.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/registry.h"
#include "harness/store/imported.h"

namespace fathom::import {

struct ImportRequest {
  std::string path;                           ///< of the file, for messages and provenance
  std::string_view text;                      ///< its bytes
  std::optional<std::string> model;           ///< --model: where the file does not name it
  std::optional<std::int64_t> length_tokens;  ///< --length: where the file does not state it
};

struct ImportEntry {
  std::string_view name;  ///< "ruler-published"
  std::string_view summary;
  std::string_view built_in;  ///< name of the table that ships with Fathom; empty: a file is required
  /// \throws DataError with file and line for what cannot be read, ConfigError where an option is missing.
  store::ImportedSource (*read)(const ImportRequest& request);
};

const Registry<ImportEntry>& formats();

/// A table that ships with Fathom. \throws InvariantError for a name without file.
std::string_view built_in_table(std::string_view name);

/// One function a line of formats.inc; each is defined in the format's own file.
namespace entries {
#define FATHOM_IMPORT(name) ImportEntry name##_entry();
#include "harness/import/formats.inc"
#undef FATHOM_IMPORT
}  // namespace entries

}  // namespace fathom::import
