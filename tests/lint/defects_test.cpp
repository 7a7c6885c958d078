// Every numbered defect of other programs (harness/docs/defects.md) has a test that bears its number.

#include <cctype>
#include <set>

#include "tests/lint/source_tree.h"
#include "tests/support/catch.h"

using fathom::lint::SourceFile;

namespace {

constexpr int kLastDefect = 70;
constexpr int kUnusedNumber = 19;

/// Numbers nn of the "T-nn" in the names of a file's test cases.
std::set<int> defects_tested(const SourceFile& file) {
  std::set<int> out;
  const std::string start = "TEST_CASE(";
  for (std::size_t at = file.text.find(start); at != std::string::npos; at = file.text.find(start, at + 1)) {
    const std::size_t open = file.text.find('"', at);
    const std::size_t close = file.text.find('"', open + 1);
    if (close == std::string::npos) break;
    const std::string name = file.text.substr(open, close - open);
    for (std::size_t mark = name.find("T-"); mark != std::string::npos; mark = name.find("T-", mark + 1)) {
      const std::string digits = name.substr(mark + 2, 2);
      if (digits.size() == 2 && std::isdigit(digits[0]) != 0 && std::isdigit(digits[1]) != 0)
        out.insert(std::stoi(digits));
    }
  }
  return out;
}

}  // namespace

TEST_CASE("lint: each known defect of other programs has a test of its number", "[defects]") {
  std::set<int> tested;
  for (const SourceFile& file : fathom::lint::read_tree({"tests"}, {".cpp"})) {
    if (file.path.rfind("tests/lint/", 0) == 0) continue;
    const std::set<int> found = defects_tested(file);
    tested.insert(found.begin(), found.end());
  }
  for (int number = 1; number <= kLastDefect; ++number) {
    if (number == kUnusedNumber) continue;
    INFO("T-" << number);
    CHECK(tested.count(number) == 1);
  }
}

TEST_CASE("lint: numbers of defects are found in names of tests alone", "[defects]") {
  const SourceFile file{"a.cpp",
                        "// T-01\nTEST_CASE(\"T-02 T-03, T-0x: y\",\n \"[T-04]\") {}\nTEST_CASE(\"z: T-70\", \"\")"};
  CHECK(defects_tested(file) == std::set<int>{2, 3, 70});
}
