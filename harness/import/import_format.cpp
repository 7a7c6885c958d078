#include "harness/import/import_format.h"

#include "harness/core/error.h"
#include "harness/import/embedded.h"

namespace fathom::import {

const Registry<ImportEntry>& formats() {
  static const Registry<ImportEntry> registry("import format", {
#define FATHOM_IMPORT(name) entries::name##_entry(),
#include "harness/import/formats.inc"
#undef FATHOM_IMPORT
                                                               });
  return registry;
}

std::string_view built_in_table(std::string_view name) {
  const EmbeddedTable table = embedded_table();
  for (std::size_t i = 0; i < table.n_files; ++i) {
    const EmbeddedFile& file = table.files[i];
    if (name == file.name) return {file.data, file.size_bytes};
  }
  FATHOM_CHECK(false, "the binary holds no table '" + std::string(name) + "'");
}

}  // namespace fathom::import
