#pragma once
// The large reference fixtures live outside the repository. A test that needs them says so and is skipped, visibly,
// without them.

#include <filesystem>
#include <string>

#include "tests/support/catch.h"

namespace fathom::test {

inline std::string shared_path(const std::string& relative) {
  return std::string(FATHOM_SHARED_DIR) + "/" + relative;
}

inline bool shared_missing(const std::string& relative) {
  if (std::filesystem::exists(shared_path(relative))) return false;
  WARN("SKIPPED: needs " << shared_path(relative) << "; set FATHOM_SHARED_DIR");
  return true;
}

}  // namespace fathom::test

/// First line of a test case that reads a shared fixture.
#define FATHOM_NEEDS_SHARED(relative)               \
  do {                                              \
    if (::fathom::test::shared_missing(relative)) { \
      SUCCEED("skipped");                           \
      return;                                       \
    }                                               \
  } while (false)
