#include "harness/checkpoint/embedded_data.h"

#include <string>

#include "harness/core/error.h"

namespace fathom::checkpoint {

std::string_view embedded_data(std::string_view name) {
  const EmbeddedTable table = embedded_table();
  for (std::size_t i = 0; i < table.n_files; ++i) {
    const EmbeddedFile& file = table.files[i];
    if (name == file.name) return {file.data, file.size_bytes};
  }
  FATHOM_CHECK(false, "the binary holds no file '" + std::string(name) + "'");
}

}  // namespace fathom::checkpoint
