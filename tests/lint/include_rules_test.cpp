// Holds every #include against the table of harness/docs/architecture.md, which is therefore never stale.

#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "tests/lint/source_tree.h"
#include "tests/support/catch.h"

using fathom::lint::Findings;
using fathom::lint::SourceFile;

namespace {

using Names = std::set<std::string>;

struct IncludeTable {
  std::map<std::string, Names> allowed;  ///< by module; itself included
  Names torch_modules;
};

struct ThirdParty {
  std::regex header;
  std::string name;
  Names modules;  ///< empty = every module
  bool sources_only;
};

const Names kTorchModules = {"position", "model", "engine", "train"};

/// Headers of the torch modules that torch-free code includes.
const Names kTorchFreeHeaders = {"harness/position/position_registry.h", "harness/engine/torch_language_model.h",
                                 "harness/train/trainer.h", "harness/engine/kv_cache.h"};

const std::vector<ThirdParty>& third_parties() {
  static const std::vector<ThirdParty> table = {
      {std::regex("boost/.*"), "Boost", {"config", "cli"}, true},
      {std::regex("sqlite3\\.h"), "SQLite", {"store"}, true},
      {std::regex("nlohmann/.*"),
       "nlohmann-json",
       {"text", "tasks", "checkpoint", "position", "model", "engine", "train", "import", "reports", "cli"},
       true},
      {std::regex("(kainjow/)?mustache\\.hpp"), "mustache", {"reports"}, true},
      {std::regex("pcre2\\.h"), "PCRE2", {"text"}, true},
      {std::regex("unicode/.*"), "ICU", {"text"}, true},
      {std::regex("(dnnl|oneapi/dnnl).*"), "oneDNN", {"kernels"}, true},
      {std::regex("hwy/.*"), "Highway", {"checkpoint", "kernels"}, true},
      {std::regex("xxhash\\.h"), "xxHash", {"core"}, true},
      {std::regex("fmt/(?!core\\.h).*"), "fmt", {}, true},
      {std::regex("(torch|ATen|c10)/.*"), "LibTorch", kTorchModules, false},
  };
  return table;
}

std::vector<std::string> table_cells(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t begin = 1;
  for (std::size_t end = line.find('|', begin); end != std::string::npos; end = line.find('|', begin)) {
    cells.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return cells;
}

Names cell_words(const std::string& cell) {
  Names words;
  const std::regex word("[A-Za-z0-9_.-]+");
  for (std::sregex_iterator it(cell.begin(), cell.end(), word), end; it != end; ++it) words.insert(it->str());
  return words;
}

/// Reads the module table of the architecture document; folders may stand several in a row.
IncludeTable read_table(const std::string& document) {
  IncludeTable table;
  Names modules_so_far;
  std::size_t allowed_column = 0;
  for (std::size_t begin = 0; begin < document.size();) {
    const std::size_t end = std::min(document.find('\n', begin), document.size());
    const std::string line = document.substr(begin, end - begin);
    begin = end + 1;
    const std::vector<std::string> cells = line.rfind("|", 0) == 0 ? table_cells(line) : std::vector<std::string>();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].find("may include") != std::string::npos) allowed_column = i;
    }
    if (cells.size() < 3 || cells[0].find("`fathom") == std::string::npos || allowed_column == 0) continue;
    Names folders;
    const std::regex folder("`(harness/)?([a-z_]+)/?`");
    for (std::sregex_iterator it(cells[1].begin(), cells[1].end(), folder), last; it != last; ++it)
      folders.insert((*it)[2]);
    Names allowed = folders;
    modules_so_far.insert(folders.begin(), folders.end());
    const bool all = cells[allowed_column].find("all of the above") != std::string::npos;
    const Names words = cell_words(cells[allowed_column]);
    for (const std::string& module : modules_so_far) {
      if (all || words.count(module) != 0) allowed.insert(module);
    }
    for (const std::string& module : folders) {
      table.allowed[module] = allowed;
      if (cells.back().find("yes") != std::string::npos) table.torch_modules.insert(module);
    }
  }
  return table;
}

bool is_torch_header(const std::string& header) {
  return header.rfind("torch/", 0) == 0 || header.rfind("ATen/", 0) == 0 || header.rfind("c10/", 0) == 0;
}

struct Include {
  std::string header;
  bool project;
  std::int64_t line;
};

/// `#include "x"` or `#include <x>`, blanks anywhere between; nothing for other lines.
std::optional<Include> include_in(const std::string& line, std::int64_t number) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return std::nullopt;
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return std::nullopt;
  const std::size_t open = line.find_first_of("<\"", word);
  if (open == std::string::npos) return std::nullopt;
  const std::size_t close = line.find_first_of(">\"", open + 1);
  if (close == std::string::npos) return std::nullopt;
  return Include{line.substr(open + 1, close - open - 1), line[open] == '"', number};
}

std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> includes;
  std::istringstream lines(text);
  std::string line;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    if (auto include = include_in(line, number)) includes.push_back(std::move(*include));
  }
  return includes;
}

bool is_source(const std::string& path) {
  // "-inl" headers are parts of a source file that Highway compiles once for each instruction set.
  return path.rfind(".cpp") == path.size() - 4 || path.find("-inl.h") != std::string::npos;
}

Findings check_third_party(const SourceFile& file, const Include& include) {
  Findings findings;
  const std::string place = file.path + ":" + std::to_string(include.line) + ": ";
  const std::string module = fathom::lint::module_of(file.path);
  for (const ThirdParty& library : third_parties()) {
    if (!std::regex_match(include.header, library.header)) continue;
    if (!library.modules.empty() && library.modules.count(module) == 0) {
      findings.push_back(place + library.name + " does not belong in module " + module);
    }
    if (library.sources_only && !is_source(file.path)) {
      findings.push_back(place + library.name + " belongs in .cpp files, so that nobody else pays for it");
    }
  }
  return findings;
}

Findings check_includes(const std::vector<SourceFile>& files, const IncludeTable& table) {
  Findings findings;
  for (const SourceFile& file : files) {
    const auto allowed = table.allowed.find(fathom::lint::module_of(file.path));
    if (allowed == table.allowed.end()) {
      findings.push_back(file.path + ": its folder is not in the table of harness/docs/architecture.md");
      continue;
    }
    for (const Include& include : includes_of(file.text)) {
      const std::string place = file.path + ":" + std::to_string(include.line) + ": ";
      const std::string target = include.project ? fathom::lint::module_of(include.header) : "";
      if (include.project && target.empty())
        findings.push_back(place + "\"" + include.header + "\" is not rooted at the project");
      if (!target.empty() && allowed->second.count(target) == 0) {
        findings.push_back(place + "module " + allowed->first + " may not include module " + target);
      }
      const Findings more = check_third_party(file, include);
      findings.insert(findings.end(), more.begin(), more.end());
    }
  }
  return findings;
}

/// Torch must not arrive through another header either.
Findings check_torch_free(const std::vector<SourceFile>& files) {
  std::map<std::string, std::vector<Include>> by_path;
  for (const SourceFile& file : files) by_path[file.path] = includes_of(file.text);
  Findings findings;
  for (const SourceFile& start : files) {
    const bool torch_module = kTorchModules.count(fathom::lint::module_of(start.path)) != 0;
    if (torch_module && kTorchFreeHeaders.count(start.path) == 0) continue;
    std::vector<std::string> open = {start.path};
    Names seen = {start.path};
    while (!open.empty()) {
      const std::string path = open.back();
      open.pop_back();
      const auto found = by_path.find(path);
      if (found == by_path.end()) continue;
      for (const Include& include : found->second) {
        if (!include.project && is_torch_header(include.header)) {
          findings.push_back(start.path + ": gets <" + include.header + "> through " + path);
        }
        if (include.project && seen.insert(include.header).second) open.push_back(include.header);
      }
    }
  }
  return findings;
}

std::vector<SourceFile> project_sources() {
  return fathom::lint::read_tree({"harness", "tasks", "reports"}, {".h", ".cpp"});
}

}  // namespace

TEST_CASE("lint: every include is one that the architecture allows", "[include_rules]") {
  const IncludeTable table = read_table(fathom::lint::read_project_file("harness/docs/architecture.md"));
  REQUIRE(table.allowed.size() >= 19);
  CHECK(table.torch_modules == kTorchModules);
  const std::vector<SourceFile> files = project_sources();
  REQUIRE(files.size() > 50);
  const Findings findings = check_includes(files, table);
  INFO(fathom::lint::listed(findings));
  CHECK(findings.empty());
}

TEST_CASE("lint: torch stays inside the model library, whatever the way", "[include_rules]") {
  const Findings findings = check_torch_free(project_sources());
  INFO(fathom::lint::listed(findings));
  CHECK(findings.empty());
}

TEST_CASE("lint: the include rules find what is planted", "[include_rules]") {
  const IncludeTable table = read_table(
      "| library | folder | may include (beyond std) | torch |\n|---|---|---|---|\n"
      "| `fathom_core` | `harness/core` | fmt | no |\n| `fathom_text` | `harness/text` | core; PCRE2 | no |\n"
      "| `fathom_model` | `harness/model`, `harness/engine` | core | **yes** |\n| `fathom_tasks` | `tasks/` | core, "
      "text | no |\n"
      "| `fathom` | `harness/cli` | all of the above | no |\n");
  CHECK(table.allowed.at("tasks") == Names{"core", "tasks", "text"});
  CHECK(table.allowed.at("engine") == Names{"core", "engine", "model"});
  CHECK(table.allowed.at("cli") == Names{"cli", "core", "engine", "model", "tasks", "text"});
  const Findings findings =
      check_includes({{"harness/core/a.h", "#include \"harness/text/b.h\"\n#include <fmt/format.h>\n"},
                      {"harness/text/b.cpp", "\n#  include <sqlite3.h>\n#include \"b.h\"\n"},
                      {"harness/text/c.cpp", "#include <ATen/ATen.h>\n#include \"harness/core/a.h\"\n"},
                      {"harness/new/d.cpp", ""}},
                     table);
  CHECK(findings == Findings{"harness/core/a.h:1: module core may not include module text",
                             "harness/core/a.h:2: fmt belongs in .cpp files, so that nobody else pays for it",
                             "harness/text/b.cpp:2: SQLite does not belong in module text",
                             "harness/text/b.cpp:3: \"b.h\" is not rooted at the project",
                             "harness/text/c.cpp:1: LibTorch does not belong in module text",
                             "harness/new/d.cpp: its folder is not in the table of harness/docs/architecture.md"});
  CHECK(check_torch_free({{"harness/cli/a.cpp", "#include \"harness/engine/b.h\"\n"},
                          {"harness/engine/b.h", "#include \"harness/engine/c.h\"\n"},
                          {"harness/engine/c.h", "#include <torch/types.h>\n"},
                          {"harness/train/trainer.h", "#include \"harness/engine/c.h\"\n"}}) ==
        Findings{"harness/cli/a.cpp: gets <torch/types.h> through harness/engine/c.h",
                 "harness/train/trainer.h: gets <torch/types.h> through harness/engine/c.h"});
}
