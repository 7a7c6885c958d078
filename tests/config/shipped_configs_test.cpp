// The configurations that ship must parse, say something, and stay what their comments promise.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/config/sweep.h"
#include "tests/config/config_text.h"

namespace fs = std::filesystem;
using fathom::config::load_config;
using fathom::config::RunConfig;

namespace {

fs::path configs_folder() {
  return fs::path(FATHOM_TEST_DIR).parent_path() / "configs";
}

std::vector<fs::path> shipped_configs() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(configs_folder())) {
    if (entry.path().extension() == ".ini") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string first_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

TEST_CASE("configs: every shipped file parses, is complete and says what it answers", "[config][shipped]") {
  const std::vector<fs::path> paths = shipped_configs();
  REQUIRE(paths.size() >= 5);
  for (const fs::path& path : paths) {
    INFO(path.filename().string());
    CHECK(first_line(path).rfind("# Question: ", 0) == 0);
    const RunConfig config = load_config(path.string(), {});
    CHECK(fathom::config::validate(config).empty());
    CHECK_FALSE(fathom::config::expand_lengths(config.sweep.lengths, config.train.context).empty());
    CHECK(config.report.out == "reports/out/" + config.name);
    CHECK(config.name == path.stem().string());
  }
}

TEST_CASE("configs: quickstart sweeps five scalings of rope, and alibi once", "[config][shipped]") {
  const RunConfig config = load_config((configs_folder() / "quickstart.ini").string(), {});
  const auto variants =
      fathom::config::expand_variants(config, {[](const std::string& scheme) { return scheme == "rope"; },
                                               [](const std::string& scaling) { return scaling != "none"; }});
  std::vector<std::string> names;
  for (const auto& variant : variants) names.push_back(variant.name);
  CHECK(names == std::vector<std::string>{"rope", "rope linear", "rope ntk", "rope dynamic", "rope yarn", "alibi"});
  CHECK(fathom::config::expand_lengths(config.sweep.lengths, config.train.context) ==
        std::vector<std::int64_t>{128, 256, 384, 512, 1024, 2048});
}
