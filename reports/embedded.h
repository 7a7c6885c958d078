#pragma once
// The page templates, style sheet and labels that are compiled into the binary.

#include <string_view>

#include "harness/core/embedded.h"

namespace fathom::reports {

EmbeddedTable embedded_table();
/// \param name  path below reports/, for example "templates/page.mustache". \throws InvariantError if there is no such
/// file.
std::string_view embedded_file(std::string_view name);

}  // namespace fathom::reports
