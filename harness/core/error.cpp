#include "harness/core/error.h"

#include <fmt/format.h>

namespace fathom {

void throw_invariant(const char* file, int line, const char* condition, std::string_view message) {
  const std::string_view path(file);
  const auto harness = path.rfind("harness/");
  throw InvariantError(fmt::format("bug at {}:{}: {} ({})",
                                   harness == std::string_view::npos ? path : path.substr(harness), line, message,
                                   condition));
}

}  // namespace fathom
