// The library reports through return values, exceptions and Logger; only the command line prints, ends the process and
// asks the environment. The store may also read the clock: a row says when it was made.

#include <regex>

#include "tests/lint/source_tree.h"
#include "tests/support/catch.h"

using fathom::lint::Findings;
using fathom::lint::SourceFile;

namespace {

struct Forbidden {
  std::regex pattern;
  std::string what;
  std::string also_allowed_in;  ///< a module besides cli
};

const std::vector<Forbidden>& forbidden_calls() {
  static const std::vector<Forbidden> table = {
      {std::regex("\\bstd::(cout|cerr|clog|cin)\\b"), "prints or reads the terminal", ""},
      {std::regex("\\b(fmt::print|f?printf|puts|fputs|putchar|perror)\\s*\\("), "prints", ""},
      {std::regex("(^|[^.>\\w:])(std::|::)?(exit|_Exit|quick_exit|abort|terminate)\\s*\\("), "ends the process", ""},
      {std::regex("\\b(getenv|secure_getenv|setenv|putenv)\\s*\\("), "reads or writes the environment", ""},
      // Durations are measured with steady_clock, which says nothing about when.
      {std::regex("\\b(system_clock|high_resolution_clock|gettimeofday|localtime|gmtime)\\b|\\bstd::time\\s*\\("),
       "reads the clock", "store"},
      {std::regex("\\b(std::random_device|std::rand|std::srand|std::shuffle)\\b|\\bstd::\\w+_distribution\\b"),
       "draws numbers outside RngStream", ""},
  };
  return table;
}

Findings check_calls(const SourceFile& file) {
  Findings findings;
  const std::string module = fathom::lint::module_of(file.path);
  if (module == "cli") return findings;
  const std::string code = fathom::lint::blank_comments_and_literals(file.text);
  for (const Forbidden& call : forbidden_calls()) {
    if (module == call.also_allowed_in) continue;
    for (std::sregex_iterator it(code.begin(), code.end(), call.pattern), end; it != end; ++it) {
      const auto offset = static_cast<std::size_t>(it->position() + it->length() - 1);
      findings.push_back(file.path + ":" + std::to_string(fathom::lint::line_of(code, offset)) + ": " + call.what +
                         "; only harness/cli may");
    }
  }
  return findings;
}

}  // namespace

TEST_CASE("lint: the library does not print, exit, or ask clock and environment", "[no_stdout_in_library]") {
  Findings findings;
  for (const SourceFile& file : fathom::lint::read_tree({"harness", "tasks", "reports"}, {".h", ".cpp"})) {
    const Findings more = check_calls(file);
    findings.insert(findings.end(), more.begin(), more.end());
  }
  INFO(fathom::lint::listed(findings));
  CHECK(findings.empty());
}

TEST_CASE("lint: the call check finds what is planted and nothing else", "[no_stdout_in_library]") {
  const auto in = [](const std::string& path, const std::string& text) { return check_calls({path, text}); };
  const std::string text =
      "void f() {\n  std::cout << 1;\n  fmt::print(\"x\");\n  exit(1);\n  std::exit(1);\n  getenv(\"X\");\n"
      "  auto t = std::chrono::system_clock::now();\n  std::random_device d;\n}\n";
  CHECK(in("harness/core/a.cpp", text) ==
        Findings{"harness/core/a.cpp:2: prints or reads the terminal; only harness/cli may",
                 "harness/core/a.cpp:3: prints; only harness/cli may",
                 "harness/core/a.cpp:4: ends the process; only harness/cli may",
                 "harness/core/a.cpp:5: ends the process; only harness/cli may",
                 "harness/core/a.cpp:6: reads or writes the environment; only harness/cli may",
                 "harness/core/a.cpp:7: reads the clock; only harness/cli may",
                 "harness/core/a.cpp:8: draws numbers outside RngStream; only harness/cli may"});
  CHECK(in("harness/cli/a.cpp", text).empty());
  CHECK(in("harness/store/a.cpp", "auto t = std::time(nullptr);\n").empty());
  CHECK(in("harness/core/a.cpp",
           "// std::cout << 1; exit(1)\n/* getenv(\"A\") */ auto a = \"printf(x)\"; auto b = R\"(exit(1))\";\n"
           "auto c = 'x'; int n = 1'000; e.exit_code(); scope.exit(); on_exit(f); std::snprintf(b, 1, f);\n"
           "auto t = std::chrono::steady_clock::now();\n")
            .empty());
}
