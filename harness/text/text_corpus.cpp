#include "harness/text/text_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/sentence_splitter.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

namespace fs = std::filesystem;

bool has_text_name(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.empty() || name.front() == '.') return false;
  const std::string extension = path.extension().string();
  if (extension.empty() || ascii_lower(extension) == ".txt") return true;
  return extension.size() > 1 && extension.find_first_not_of("0123456789", 1) == std::string::npos;
}

// A link to a neighbour would bring the same text in twice.
bool links_to_same_folder(const fs::directory_entry& entry) {
  std::error_code error;
  if (!entry.is_symlink(error)) return false;
  const fs::path target = fs::canonical(entry.path(), error);
  if (error) return false;
  return target.parent_path() == fs::canonical(entry.path().parent_path(), error);
}

std::vector<std::string> corpus_files(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error || !fs::exists(status)) throw DataError(fmt::format("haystack '{}' does not exist", path));
  if (!fs::is_directory(status)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (!has_text_name(entry.path()) || links_to_same_folder(entry)) continue;
    std::error_code ignored;
    const fs::file_type type = entry.status(ignored).type();
    // A dangling link stays in the list: reading it fails with its name. A pipe would block for ever.
    if (type != fs::file_type::regular && type != fs::file_type::not_found) continue;
    files.push_back(entry.path().string());
  }
  if (error) throw DataError(fmt::format("haystack folder '{}' cannot be read: {}", path, error.message()));
  if (files.empty()) {
    throw DataError(fmt::format(
        "haystack folder '{}' holds no text file; read are names in .txt, without extension or with a numeric one",
        path));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string read_corpus_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const auto size_bytes = fs::file_size(path, error);
  std::string bytes;
  if (file && !error) {
    bytes.resize(size_bytes);
    file.read(bytes.data(), static_cast<std::streamsize>(size_bytes));
    bytes.resize(static_cast<std::size_t>(file.gcount()));
  } else if (file && fs::status(path).type() != fs::file_type::directory) {  // a pipe has no size
    bytes.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (file.bad() || !file.is_open() || (!error && bytes.size() != size_bytes)) {
    throw DataError(fmt::format("haystack file '{}' cannot be read", path));
  }
  return bytes;
}

void check_corpus_text(std::string_view text, const std::string& path) {
  const auto nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw DataError(fmt::format("haystack file '{}' is binary: NUL at byte {}; it must be UTF-8 text", path, nul));
  }
  if (is_valid_utf8(text)) return;
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = decode_utf8(text, at);
    if (!c.valid)
      throw DataError(fmt::format("haystack file '{}' is not UTF-8: byte {} is 0x{:02X}", path, at, c.code));
    at += c.size_bytes;
  }
}

// In place: the file may be large.
void make_line_ends_plain(std::string& text) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < text.size(); ++from) {
    if (text[from] == '\r' && from + 1 < text.size() && text[from + 1] == '\n') continue;
    text[to++] = text[from];
  }
  text.resize(to);
}

std::string read_corpus_text(const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string text = read_corpus_bytes(path);
  check_corpus_text(text, path);
  if (starts_with(text, kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  make_line_ends_plain(text);
  return text;
}

// Gaps are made one blank or one newline: what a text wraps and indents with is no part of its sentences.
std::string corpus_separator(std::string_view gap) {
  if (gap.empty()) return {};
  return gap.find('\n') != std::string_view::npos ? "\n" : " ";
}

}  // namespace

std::shared_ptr<const TextCorpus> TextCorpus::load(const std::string& path) {
  auto corpus = std::make_shared<TextCorpus>();
  corpus->path_ = path;
  StreamingHash hash;
  for (const std::string& file : corpus_files(path)) {
    const std::string text = read_corpus_text(file);
    hash.update(std::to_string(text.size()) + ":");
    hash.update(text);
    std::size_t last_end = 0;
    bool first_of_file = true;
    for (const SentenceSpan& span : split_sentences(text)) {
      std::string separator =
          first_of_file ? "\n" : corpus_separator(std::string_view(text).substr(last_end, span.begin - last_end));
      if (corpus->sentences_.empty()) separator.clear();
      corpus->sentences_.push_back({std::move(separator), text.substr(span.begin, span.end - span.begin)});
      last_end = span.end;
      first_of_file = false;
    }
  }
  if (corpus->sentences_.empty()) throw DataError(fmt::format("haystack '{}' holds no sentence", path));
  corpus->fingerprint_ = to_hex(hash.digest());
  return corpus;
}

}  // namespace fathom::text
