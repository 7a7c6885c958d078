#pragma once
// The project's own files as text, for the lints.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::lint {

struct SourceFile {
  std::string path;  ///< relative to the project's root, '/' between folders
  std::string text;
};

/// What a lint found: "harness/core/x.cpp:12: …".
using Findings = std::vector<std::string>;

/// Files below `folders` whose name ends with one of `endings`, sorted by path. Build folders and hidden ones are left
/// out.
std::vector<SourceFile> read_tree(const std::vector<std::string>& folders, const std::vector<std::string>& endings);

/// The text of one file. \throws std::runtime_error if it is not there.
std::string read_project_file(const std::string& path);

/// Comments, string and character literals replaced by blanks; line breaks stay, so that line numbers do too.
std::string blank_comments_and_literals(std::string_view code);

struct Word {
  std::string_view text;
  std::size_t offset = 0;
};

/// Identifiers and numbers of a text. std::regex would take seconds on the whole tree.
std::vector<Word> words_of(std::string_view text);

/// Line number, counted from 1, of a byte offset.
std::int64_t line_of(std::string_view text, std::size_t offset);

/// "tasks", "reports", or the folder below harness/; empty for other paths.
std::string module_of(std::string_view path);

/// One finding a line, for Catch's INFO.
std::string listed(const Findings& findings);

}  // namespace fathom::lint
