// Registries are .inc files: sorted lines of one form, each with the entry it promises.

#include <algorithm>
#include <regex>
#include <set>

#include "tests/lint/source_tree.h"
#include "tests/support/catch.h"

using fathom::lint::Findings;
using fathom::lint::SourceFile;

namespace {

std::string folder_of(const std::string& path) {
  return path.substr(0, path.find_last_of('/') + 1);
}

bool defines_entry(const std::vector<SourceFile>& sources, const std::string& folder, const std::string& name) {
  return std::any_of(sources.begin(), sources.end(), [&](const SourceFile& source) {
    return source.path.rfind(folder, 0) == 0 && source.text.find("::" + name + "_entry() {") != std::string::npos;
  });
}

Findings check_registry(const SourceFile& registry, const std::vector<SourceFile>& sources) {
  Findings findings;
  const std::regex entry("FATHOM_[A-Z0-9_]+\\(([a-z0-9_]+)\\)");
  std::set<std::string> names;
  std::string previous;
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < registry.text.size();) {
    const std::size_t end = std::min(registry.text.find('\n', begin), registry.text.size());
    const std::string line = registry.text.substr(begin, end - begin);
    begin = end + 1;
    const std::string place = registry.path + ":" + std::to_string(++number) + ": ";
    std::smatch match;
    if (line.rfind("//", 0) == 0) continue;
    if (!std::regex_match(line, match, entry)) {
      findings.push_back(place + "'" + line + "' is not FATHOM_KIND(name)");
      continue;
    }
    const std::string name = match[1];
    if (!names.insert(name).second) findings.push_back(place + name + " stands there twice");
    if (name < previous) findings.push_back(place + name + " belongs before " + previous);
    if (!defines_entry(sources, folder_of(registry.path), name)) {
      findings.push_back(place + "no file defines " + name + "_entry()");
    }
    previous = name;
  }
  return findings;
}

}  // namespace

TEST_CASE("lint: registries are sorted, and each line has its file", "[registry_sorted]") {
  const std::vector<std::string> folders = {"harness", "tasks", "reports"};
  const std::vector<SourceFile> registries = fathom::lint::read_tree(folders, {".inc"});
  const std::vector<SourceFile> sources = fathom::lint::read_tree(folders, {".cpp"});
  REQUIRE(registries.size() >= 4);
  Findings findings;
  for (const SourceFile& registry : registries) {
    const Findings more = check_registry(registry, sources);
    findings.insert(findings.end(), more.begin(), more.end());
  }
  INFO(fathom::lint::listed(findings));
  CHECK(findings.empty());
}

TEST_CASE("lint: the registry check finds what is planted", "[registry_sorted]") {
  const std::vector<SourceFile> sources = {{"tasks/a.cpp", "X entries::a_entry() {\n"},
                                           {"tasks/sub/c.cpp", "X entries::c_entry() {\n"},
                                           {"reports/b.cpp", "X entries::b_entry() {\n"}};
  CHECK(check_registry({"tasks/t.inc", "// a comment\nFATHOM_TASK(a)\nFATHOM_TASK(c)\n"}, sources).empty());
  CHECK(check_registry({"tasks/t.inc", "FATHOM_TASK(c)\nFATHOM_TASK(a)\nFATHOM_TASK(b)\nFATHOM_TASK(b)\nrope\n"},
                       sources) ==
        Findings{"tasks/t.inc:2: a belongs before c", "tasks/t.inc:3: no file defines b_entry()",
                 "tasks/t.inc:4: b stands there twice", "tasks/t.inc:4: no file defines b_entry()",
                 "tasks/t.inc:5: 'rope' is not FATHOM_KIND(name)"});
}
