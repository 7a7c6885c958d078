#include "tests/lint/source_tree.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace fathom::lint {
namespace fs = std::filesystem;
namespace {

fs::path project_root() {
  return fs::path(FATHOM_TEST_DIR).parent_path();
}

bool has_ending(const std::string& name, const std::vector<std::string>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](const std::string& ending) {
    return name.size() >= ending.size() && name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
  });
}

/// End of the literal or comment that starts at `begin`, or `begin` if none starts there.
std::size_t blank_end(std::string_view code, std::size_t begin) {
  if (code.substr(begin, 2) == "//") return std::min(code.find('\n', begin), code.size());
  if (code.substr(begin, 2) == "/*") return std::min(code.find("*/", begin + 2), code.size() - 2) + 2;
  if (code.substr(begin, 2) == "R\"") {
    const std::size_t open = code.find('(', begin);
    const std::string close = ")" + std::string(code.substr(begin + 2, open - begin - 2)) + "\"";
    const std::size_t end = code.find(close, open);
    return end == std::string_view::npos ? code.size() : end + close.size();
  }
  const char quote = code[begin];
  // A quote between digits separates thousands: 1'000'000.
  const bool separator = quote == '\'' && begin > 0 && std::isalnum(static_cast<unsigned char>(code[begin - 1])) != 0;
  if ((quote != '"' && quote != '\'') || separator) return begin;
  std::size_t end = begin + 1;
  while (end < code.size() && code[end] != quote && code[end] != '\n') end += code[end] == '\\' ? 2 : 1;
  return std::min(end + 1, code.size());
}

}  // namespace

std::string read_project_file(const std::string& path) {
  std::ifstream in(project_root() / path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<SourceFile> read_tree(const std::vector<std::string>& folders, const std::vector<std::string>& endings) {
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    if (!fs::exists(project_root() / folder)) continue;
    for (fs::recursive_directory_iterator it(project_root() / folder), end; it != end; ++it) {
      const std::string name = it->path().filename().string();
      const bool left_out = name == "build" || name == "out" || (name.front() == '.' && name != ".ci");
      if (it->is_directory() && left_out) it.disable_recursion_pending();
      if (!it->is_regular_file() || left_out || !has_ending(name, endings)) continue;
      const std::string path = fs::relative(it->path(), project_root()).generic_string();
      files.push_back({path, read_project_file(path)});
    }
  }
  std::sort(files.begin(), files.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::string blank_comments_and_literals(std::string_view code) {
  std::string out(code);
  for (std::size_t i = 0; i < code.size();) {
    const std::size_t end = blank_end(code, i);
    for (std::size_t j = i; j < end; ++j) {
      if (out[j] != '\n') out[j] = ' ';
    }
    i = std::max(end, i + 1);
  }
  return out;
}

std::vector<Word> words_of(std::string_view text) {
  const auto in_word = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  std::vector<Word> words;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (in_word(end)) ++end;
    if (end > begin) words.push_back({text.substr(begin, end - begin), begin});
    begin = std::max(end, begin + 1);
  }
  return words;
}

std::int64_t line_of(std::string_view text, std::size_t offset) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
}

std::string module_of(std::string_view path) {
  const std::string_view head = path.substr(0, path.find('/'));
  if (head == "tasks" || head == "reports") return std::string(head);
  if (head != "harness") return "";
  const std::string_view rest = path.substr(head.size() + 1);
  return rest.find('/') == std::string_view::npos ? "" : std::string(rest.substr(0, rest.find('/')));
}

std::string listed(const Findings& findings) {
  std::string out;
  for (const std::string& finding : findings) out += "\n" + finding;
  return out;
}

}  // namespace fathom::lint
