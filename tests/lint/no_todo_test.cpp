// Nothing unfinished, nothing that only works on one machine, no file that nobody can read in one go.

#include <algorithm>
#include <cctype>
#include <set>

#include "tests/lint/source_tree.h"
#include "tests/support/catch.h"

using fathom::lint::Findings;
using fathom::lint::SourceFile;

namespace {

constexpr std::ptrdiff_t kMaxLines = 800;

const std::vector<std::string> kTextEndings = {".h",  ".cpp", ".inc",  ".cmake", ".txt",      ".md",
                                               ".sh", ".ini", ".html", ".json",  ".mustache", "run"};

Findings check_unfinished(const SourceFile& file) {
  static const std::set<std::string_view> marks = {"TODO", "FIXME", "XXX", "HACK"};
  Findings findings;
  for (const fathom::lint::Word& word : fathom::lint::words_of(file.text)) {
    if (marks.count(word.text) == 0) continue;
    findings.push_back(file.path + ":" + std::to_string(fathom::lint::line_of(file.text, word.offset)) + ": " +
                       std::string(word.text) + "; finish it, or open an issue and leave the mark out");
  }
  return findings;
}

Findings check_machine_paths(const SourceFile& file) {
  Findings findings;
  for (const std::string root : {"/home/", "/root/", "/Users/", "/work/"}) {
    for (std::size_t at = file.text.find(root); at != std::string::npos; at = file.text.find(root, at + 1)) {
      const char before = at == 0 ? ' ' : file.text[at - 1];
      const bool inside_path = std::isalnum(static_cast<unsigned char>(before)) != 0 ||
                               std::string("_./-}").find(before) != std::string::npos;
      if (inside_path) continue;
      findings.push_back(file.path + ":" + std::to_string(fathom::lint::line_of(file.text, at)) +
                         ": a path of one machine");
    }
  }
  return findings;
}

Findings check_size(const SourceFile& file) {
  const auto lines = std::count(file.text.begin(), file.text.end(), '\n');
  if (lines <= kMaxLines) return {};
  return {file.path + ": " + std::to_string(lines) + " lines; at most " + std::to_string(kMaxLines)};
}

template <typename Check>
void expect_clean(const std::vector<SourceFile>& files, const Check& check) {
  REQUIRE(files.size() > 50);
  Findings findings;
  for (const SourceFile& file : files) {
    const Findings more = check(file);
    findings.insert(findings.end(), more.begin(), more.end());
  }
  INFO(fathom::lint::listed(findings));
  CHECK(findings.empty());
}

std::vector<SourceFile> texts_without_lints() {
  std::vector<SourceFile> files = fathom::lint::read_tree({"."}, kTextEndings);
  const auto is_lint = [](const SourceFile& file) { return file.path.rfind("tests/lint/", 0) == 0; };
  files.erase(std::remove_if(files.begin(), files.end(), is_lint), files.end());
  return files;
}

}  // namespace

TEST_CASE("lint: nothing is marked as unfinished", "[no_todo]") {
  expect_clean(texts_without_lints(), check_unfinished);
}

TEST_CASE("lint: no path of one machine", "[no_todo]") {
  expect_clean(texts_without_lints(), check_machine_paths);
}

TEST_CASE("lint: no source file is longer than 800 lines", "[no_todo]") {
  expect_clean(fathom::lint::read_tree({"harness", "tasks", "reports", "tests"}, {".h", ".cpp"}), check_size);
}

TEST_CASE("lint: these checks find what is planted", "[no_todo]") {
  CHECK(check_unfinished({"a.cpp", "x\n// TODO: y\n"}) ==
        Findings{"a.cpp:2: TODO; finish it, or open an issue and leave the mark out"});
  CHECK(check_unfinished({"a.cpp", "std::string TODO_LIST = mkstemp(\"aXXXXXX\");\n"}).empty());
  CHECK(check_machine_paths({"a.md", "see\n/home/me/x\n"}) == Findings{"a.md:2: a path of one machine"});
  CHECK(check_machine_paths({"a.md", "harness/work/x and https://host/home/x\n"}).empty());
  CHECK(check_size({"a.cpp", std::string(801, '\n')}) == Findings{"a.cpp: 801 lines; at most 800"});
  CHECK(check_size({"a.cpp", std::string(800, '\n')}).empty());
}
