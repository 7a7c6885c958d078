#pragma once
// Golden numbers that travel with the repository: tests/golden/*.json, each with the recipe that made it.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.h"

namespace fathom::test {

inline nlohmann::json read_json_file(const std::string& path) {
  std::ifstream in(path);
  INFO("golden file " << path);
  REQUIRE(in.good());
  return nlohmann::json::parse(in);
}

inline nlohmann::json read_golden(const std::string& name) {
  return read_json_file(std::string(FATHOM_TEST_DIR) + "/golden/" + name);
}

}  // namespace fathom::test
