#pragma once
// Text files compiled into the binary. Each table is generated at build time by cmake/Embed.cmake (fathom_embed).

#include <cstddef>

namespace fathom {

struct EmbeddedFile {
  const char* name;  ///< path below the folder that was embedded, for example "templates/page.mustache"
  const char* data;
  std::size_t size_bytes;
};

struct EmbeddedTable {
  const EmbeddedFile* files;
  std::size_t n_files;
};

}  // namespace fathom
