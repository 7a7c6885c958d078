#include "harness/text/text_corpus.h"

#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/core/error.h"
#include "tests/support/catch.h"

using fathom::DataError;
using fathom::text::TextCorpus;

namespace {

namespace fs = std::filesystem;

/// A folder of its own for one test, removed with everything in it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name) : path_(fs::temp_directory_path() / ("fathom_text_corpus_" + name)) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~ScratchFolder() { fs::remove_all(path_); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string load_error(const std::string& path) {
  try {
    TextCorpus::load(path);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

std::string whole(const TextCorpus& corpus) {
  std::string text;
  for (const auto& sentence : corpus.sentences()) text += "<" + sentence.separator + ">" + sentence.text;
  return text;
}

}  // namespace

TEST_CASE("text corpus: a file becomes sentences with plain separators", "[text][text_corpus]") {
  const ScratchFolder folder("file");
  const auto lf = TextCorpus::load(folder.write("a.txt", "One is.  Two is.\n\n Three is. Four\nis no end"));
  CHECK(whole(*lf) == "<>One is.< >Two is.<\n>Three is.< >Four<\n>is no end");
  const auto crlf =
      TextCorpus::load(folder.write("b.txt", "\xEF\xBB\xBFOne is.  Two is.\r\n\r\n Three is. Four\r\nis no end"));
  CHECK(whole(*crlf) == whole(*lf));
  CHECK(crlf->fingerprint() == lf->fingerprint());
  CHECK(crlf->path() == folder.path() + "/b.txt");
  CHECK(TextCorpus::load(folder.write("c.txt", "One is."))->fingerprint() != lf->fingerprint());
  CHECK(whole(*TextCorpus::load(folder.write("d.txt", "他走了。她留下。\n好"))) == "<>他走了。<>她留下。<\n>好");
}

TEST_CASE("text corpus: a folder is read in sorted order, links within it once", "[text][text_corpus]") {
  const ScratchFolder folder("folder");
  folder.write("b.txt", "B one. B two.\n");
  folder.write("A-2.0", "A.\n");
  folder.write("c", "C.");
  folder.write("empty.txt", "");
  folder.write("z.md", "Not read.");
  folder.write(".hidden", "Not read.");
  fs::create_directories(folder.path() + "/sub");
  fs::create_symlink("A-2.0", folder.path() + "/A");
  const ScratchFolder other("other");
  fs::create_symlink(other.write("far.txt", "Far."), folder.path() + "/d.txt");
  CHECK(whole(*TextCorpus::load(folder.path())) == "<>A.<\n>B one.< >B two.<\n>C.<\n>Far.");
}

TEST_CASE("text corpus: what cannot be used is an error that names it", "[text][text_corpus][errors]") {
  const ScratchFolder folder("errors");
  CHECK(load_error(folder.path() + "/none") == "haystack '" + folder.path() + "/none' does not exist");
  CHECK(load_error(folder.path()).find("haystack folder '" + folder.path() + "' holds no text file") == 0);
  const std::string binary = folder.write("binary", std::string("ab\0cd", 5));
  CHECK(load_error(binary) == "haystack file '" + binary + "' is binary: NUL at byte 2; it must be UTF-8 text");
  CHECK(load_error(folder.path()) == load_error(binary));
  const std::string latin = folder.write("latin.txt", "caf\xE9 au lait");
  CHECK(load_error(latin) == "haystack file '" + latin + "' is not UTF-8: byte 3 is 0xE9");
  const std::string blank = folder.write("blank.txt", " \n\n");
  CHECK(load_error(blank) == "haystack '" + blank + "' holds no sentence");
  fs::create_symlink("nowhere", folder.path() + "/aaa");
  CHECK(load_error(folder.path()) == "haystack file '" + folder.path() + "/aaa' cannot be read");
}

TEST_CASE("text corpus: a final newline and the kind of line end change nothing", "[text][text_corpus]") {
  const ScratchFolder folder("ends");
  const std::string text = "One is here. Two is here.\nThree is here.";
  const auto plain = TextCorpus::load(folder.write("a.txt", text));
  const auto ended = TextCorpus::load(folder.write("b.txt", text + "\n"));
  CHECK(whole(*plain) == whole(*ended));
  const auto crlf = TextCorpus::load(folder.write("c.txt", "One is here. Two is here.\r\nThree is here.\r\n"));
  CHECK(whole(*plain) == whole(*crlf));
  CHECK(crlf->fingerprint() == ended->fingerprint());
}

TEST_CASE("text corpus: a file of 200 MB is read in seconds", "[text][text_corpus][slow]") {
  const ScratchFolder folder("large");
  std::string block;
  while (block.size() < (std::size_t{1} << 20)) {
    block += "The keeper of the harbour counts the boats again, and the count is the same as before. ";
  }
  block += '\n';
  const std::string path = folder.path() + "/large.txt";
  {
    std::ofstream file(path, std::ios::binary);
    for (int i = 0; i < 200; ++i) file << block;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto corpus = TextCorpus::load(path);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  WARN("200 MB: " << corpus->sentences().size() << " sentences in " << seconds << " s, peak memory "
                  << usage.ru_maxrss / 1024 << " MiB");
  CHECK(corpus->sentences().size() > 2000000);
  CHECK(seconds < 60);
  CHECK(usage.ru_maxrss < 2 * 1024 * 1024);
}

TEST_CASE("text corpus: Debian's licence texts are a haystack", "[text][text_corpus]") {
  if (!fs::exists("/usr/share/common-licenses/GPL-3")) {
    WARN("SKIPPED: no /usr/share/common-licenses here");
    SUCCEED("skipped");
    return;
  }
  const auto corpus = TextCorpus::load("/usr/share/common-licenses");
  CHECK(corpus->sentences().size() > 2000);
}
