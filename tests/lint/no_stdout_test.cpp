// The library reports through return values, exceptions and Logger; only the command line prints, ends the process and
// asks the environment. The store may also read the clock: a row says when it was made.

#include <cctype>
#include <set>

#include "tests/lint/source_tree.h"
#include "tests/support/catch.h"

using fathom::lint::Findings;
using fathom::lint::SourceFile;

namespace {

struct Forbidden {
  std::set<std::string> names;  ///< as written in the code, qualified
  std::string what;
  std::string also_allowed_in;  ///< a module besides cli
};

const std::vector<Forbidden>& forbidden_names() {
  static const std::vector<Forbidden> table = {
      {{"std::cout", "std::cerr", "std::clog", "std::cin"}, "prints or reads the terminal", ""},
      {{"fmt::print", "printf", "std::printf", "fprintf", "std::fprintf", "puts", "std::puts", "perror"}, "prints", ""},
      {{"exit", "std::exit", "_Exit", "std::_Exit", "quick_exit", "std::quick_exit", "abort", "std::abort",
        "std::terminate"},
       "ends the process",
       ""},
      {{"getenv", "std::getenv", "secure_getenv", "setenv", "putenv"}, "reads or writes the environment", ""},
      // Durations are measured with steady_clock, which says nothing about when.
      {{"std::chrono::system_clock", "std::chrono::high_resolution_clock", "gettimeofday", "std::time", "time",
        "localtime", "std::localtime", "gmtime", "std::gmtime", "gmtime_r", "localtime_r"},
       "reads the clock",
       "store"},
      {{"std::random_device", "std::rand", "rand", "std::srand", "std::shuffle", "std::uniform_int_distribution",
        "std::uniform_real_distribution", "std::normal_distribution", "std::discrete_distribution"},
       "draws numbers outside RngStream",
       ""},
  };
  return table;
}

/// The name that a word is the end of, with its qualifiers; empty for a member (`scope.exit()`, `p->exit()`).
std::string qualified_name(const std::string& code, const fathom::lint::Word& word) {
  std::size_t begin = word.offset;
  const auto in_name = [&](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':'; };
  while (begin > 0 && in_name(code[begin - 1])) --begin;
  if (begin > 0 && code[begin - 1] == '.') return "";
  if (begin > 1 && code.compare(begin - 2, 2, "->") == 0) return "";
  const std::size_t end = word.offset + word.text.size();
  while (begin < end && code[begin] == ':') ++begin;
  return code.substr(begin, end - begin);
}

/// A plain word is a call only before '('; a qualified one is what it says anywhere.
bool is_use(const std::string& code, const fathom::lint::Word& word, const std::string& name) {
  return name.find(':') != std::string::npos || code[word.offset + word.text.size()] == '(';
}

Findings check_calls(const SourceFile& file) {
  Findings findings;
  const std::string module = fathom::lint::module_of(file.path);
  if (module == "cli") return findings;
  const std::string code = fathom::lint::blank_comments_and_literals(file.text);
  for (const fathom::lint::Word& word : fathom::lint::words_of(code)) {
    const std::string name = qualified_name(code, word);
    for (const Forbidden& forbidden : forbidden_names()) {
      if (module == forbidden.also_allowed_in || forbidden.names.count(name) == 0 || !is_use(code, word, name))
        continue;
      findings.push_back(file.path + ":" + std::to_string(fathom::lint::line_of(code, word.offset)) + ": " +
                         forbidden.what + "; only harness/cli may");
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
