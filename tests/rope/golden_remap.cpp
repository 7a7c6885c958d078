// Golden matrices of the training-free remaps: exact, fractions within 1e-12.

#include "harness/core/text_util.h"
#include "harness/rope/position_remap.h"
#include "tests/rope/golden_checks.h"

namespace fathom::rope {
namespace {

using nlohmann::json;

/// Every key but the matrix and its comments is an option of the remap, under its own name.
void check_matrix(const std::string& name, const json& c) {
  std::map<std::string, std::string> options;
  for (const auto& [key, value] : c.items()) {
    if (key != "n" && key != "matrix" && key != "note")
      options[key] = value.is_string() ? value.get<std::string>() : format_double(value.get<double>());
  }
  const auto remap = position_remaps().at(name).make(4096, OptionSource("[test]", options));
  const std::int64_t n = c["n"];
  REQUIRE(c["matrix"].size() == static_cast<std::size_t>(n));
  for (std::int64_t q = 0; q < n; ++q) {
    for (std::int64_t k = 0; k <= q; ++k) {
      INFO(name << " q " << q << " k " << k);
      const double expected = c["matrix"][static_cast<std::size_t>(q)][static_cast<std::size_t>(k)];
      CHECK_THAT(relative_position(*remap, q, k), Catch::Matchers::WithinAbs(expected, 1e-12));
    }
  }
}

}  // namespace

void check_position_remap(test::GoldenFile& golden) {
  for (const PositionRemapEntry& entry : position_remaps().entries()) {
    const std::string name(entry.name);
    if (!golden.root().contains(name)) continue;
    golden.each("/" + name, [&name](const json& c) { check_matrix(name, c); });
  }
}

}  // namespace fathom::rope
