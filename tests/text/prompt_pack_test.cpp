#include "harness/text/prompt_pack.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/embedded.h"
#include "tests/support/catch.h"

using fathom::ConfigError;
using fathom::InvariantError;
using fathom::text::PromptPack;

namespace {

std::string error_of(const std::string& text) {
  try {
    PromptPack::parse(text, "p.ini");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kHead = "[pack]\nname = mine\nversion = 1\nbase = en\n";  // lines 1 to 4

}  // namespace

TEST_CASE("prompt pack: the built-in packs parse and say what they are", "[text][prompt_pack]") {
  CHECK(PromptPack::builtin_names() == std::vector<std::string>{"en", "synthetic", "zh"});
  const auto en = PromptPack::builtin("en");
  CHECK(en->name() == "en");
  CHECK(en->version() == 1);
  CHECK(en->language() == "en");
  CHECK_FALSE(en->closed_vocabulary());
  const auto zh = PromptPack::builtin("zh");
  CHECK(zh->language() == "zh");
  const auto synthetic = PromptPack::builtin("synthetic");
  CHECK(synthetic->language() == "none");
  CHECK(synthetic->closed_vocabulary());
  CHECK(en->fingerprint() != zh->fingerprint());
  CHECK(en->fingerprint().size() == 32);
  CHECK(en->task_names().empty());
  CHECK_THROWS_AS(PromptPack::builtin("fr"), ConfigError);
}

TEST_CASE("prompt pack: texts come with their escapes done and blanks kept", "[text][prompt_pack]") {
  const auto en = PromptPack::builtin("en");
  CHECK(en->text("niah", "needle") == "The registry {type} of {key} is {value}.");
  CHECK(en->text("niah", "layout") == "{intro}\n{context}\n{question}");
  CHECK(en->text("niah", "answer_prefix.one") == " The registry {type} of {query} is");
  CHECK(en->text("kv", "open") == "{");
  CHECK(en->text("kv", "close") == "}");
  CHECK(en->text("kv", "pair_sep") == ",\n ");
  CHECK(en->text("kv", "answer_prefix") == "\nValue: \"");
  CHECK(en->text("common", "list_sep") == ", ");
  CHECK(en->text("common", "system").empty());
  CHECK(PromptPack::builtin("zh")->text("vt", "line_first") == "令 {var} = {value}。");
  CHECK(PromptPack::builtin("synthetic")->text("vt", "example") == "{prompt} {answers} next ");
}

TEST_CASE("prompt pack: a missing suffix falls back, a missing optional text is empty", "[text][prompt_pack]") {
  const auto zh = PromptPack::builtin("zh");
  CHECK(zh->text("niah", "type_numbers.one") == "编号");
  CHECK_FALSE(zh->has("niah", "type_numbers.one"));
  CHECK(zh->has("niah", "type_numbers"));
  const auto synthetic = PromptPack::builtin("synthetic");
  CHECK(synthetic->text("niah", "intro.one").empty());
  CHECK(synthetic->text("niah", "answer_prefix").empty());
  CHECK_FALSE(synthetic->has("niah", "answer_prefix"));
  CHECK(synthetic->text("niah", "question.one") == "ask {query}");
  CHECK(synthetic->text("assoc", "needle_pair.inv") == "{cue} note {name}");
  CHECK_THROWS_AS(zh->text("niah", "nedle"), InvariantError);
  CHECK_THROWS_AS(zh->has("nosuch", "needle"), InvariantError);
}

TEST_CASE("prompt pack: render fills slots once and leaves other braces alone", "[text][prompt_pack]") {
  CHECK(PromptPack::render("{a} and {b_2}", {{"a", "{b_2}"}, {"b_2", "two"}}) == "{b_2} and two");
  CHECK(PromptPack::render("{{a}} { a } {A} {} {1} {a", {{"a", "x"}}) == "{x} { a } {A} {} {1} {a");
  CHECK(PromptPack::render("{a}{a}", {{"a", ""}}).empty());
  CHECK_THROWS_AS(PromptPack::render("{a} {b}", {{"a", "x"}}), InvariantError);
}

TEST_CASE("prompt pack: lists are joined by the pack's rule", "[text][prompt_pack]") {
  const auto en = PromptPack::builtin("en");
  CHECK(en->join_list({}).empty());
  CHECK(en->join_list({"a"}) == "a");
  CHECK(en->join_list({"a", "b"}) == "a and b");
  CHECK(en->join_list({"a", "b", "c", "d"}) == "a, b, c, and d");
  CHECK(PromptPack::builtin("zh")->join_list({"a", "b", "c"}) == "a、b和c");
  CHECK(PromptPack::builtin("synthetic")->join_list({"k1", "k2", "k3"}) == "k1 k2 k3");
}

TEST_CASE("prompt pack: a pack with a base takes from it what it leaves out", "[text][prompt_pack]") {
  const auto en = PromptPack::builtin("en");
  const auto mine = PromptPack::parse(kHead + "[niah]\nneedle = {key} is listed with {value}.\n", "p.ini");
  CHECK(mine->name() == "mine");
  CHECK(mine->language() == "en");
  CHECK(mine->text("niah", "needle") == "{key} is listed with {value}.");
  CHECK(mine->text("niah", "question") == en->text("niah", "question"));
  CHECK(mine->fingerprint() != en->fingerprint());
  const auto spaced =
      PromptPack::parse("\xEF\xBB\xBF# note\r\n; note\r\n\r\n" + fathom::replace_all(kHead, "\n", "\r\n") +
                            "[niah]\r\n  needle  =   {key} is listed with {value}.  \t\r\n",
                        "q.ini");
  CHECK(spaced->fingerprint() == mine->fingerprint());
}

TEST_CASE("prompt pack: a task's own section goes before the section", "[text][prompt_pack]") {
  const auto pack = PromptPack::parse(
      kHead + "[niah.niah_multikey_2]\nneedle = N {key} {value}\nquestion = Q {query}\n[vt.b]\nintro = I\n", "p.ini");
  CHECK(pack->text("niah", "needle", "niah_multikey_2") == "N {key} {value}");
  CHECK(pack->text("niah", "needle", "niah_multikey_1") == "The registry {type} of {key} is {value}.");
  CHECK(pack->text("niah", "needle") == "The registry {type} of {key} is {value}.");
  CHECK(pack->text("niah", "question.one", "niah_multikey_2") == "Q {query}");
  CHECK(pack->text("niah", "intro.one", "niah_multikey_2") == pack->text("niah", "intro.one"));
  CHECK(pack->task_names() == std::vector<std::string>{"b", "niah_multikey_2"});
}

TEST_CASE("prompt pack: += appends to the key above it", "[text][prompt_pack]") {
  const auto pack = PromptPack::parse(kHead + "[qa]\nintro = One.\nlead = x\nintro += \\sTwo.\nintro+=\\n\n", "p.ini");
  CHECK(pack->text("qa", "intro") == "One. Two.\n");
  CHECK(error_of(kHead + "[qa]\nintro += x\n") == "p.ini:6:1: 'intro +=' has no 'intro =' above it in [qa]");
}

TEST_CASE("prompt pack: the whole text of a built-in pack under another name needs no base", "[text][prompt_pack]") {
  for (const std::string name : {"en", "zh", "synthetic"}) {
    const std::string text(fathom::text::embedded_file("prompts/" + name + ".ini"));
    const auto pack = PromptPack::parse(fathom::replace_all(text, "name = " + name, "name = copy"), "p.ini");
    CHECK(pack->text("facts", "go") == PromptPack::builtin(name)->text("facts", "go"));
  }
}

TEST_CASE("prompt pack: errors say file, line and column", "[text][prompt_pack][errors]") {
  const auto niah = [](const std::string& lines) { return error_of(kHead + "[niah]\n" + lines); };
  CHECK(error_of(kHead + "[nia]\nx = 1\n") == "p.ini:5:1: unknown section [nia]; did you mean 'niah'?");
  CHECK(error_of(kHead + "[niah.]\n") ==
        "p.ini:5:1: '[niah.]' is no section; write [section] or [section.task] in lower case");
  CHECK(error_of(kHead + "  [niah\n") == "p.ini:5:3: section '[niah' does not end in ']'");
  CHECK(niah("nedle = x\n") == "p.ini:6:1: unknown key 'nedle' in [niah]; did you mean 'needle'?");
  CHECK(niah("needle.two = x\n") == "p.ini:6:7: unknown suffix '.two'; known: .one, .many, .inv");
  CHECK(niah("needle.many = {key} {value}\n") ==
        "p.ini:6:1: unknown suffix '.many' of key 'needle' in [niah]; known: 'needle'");
  CHECK(niah("needle = {key} 是 {vale}\n") ==
        "p.ini:6:18: unknown slot {vale} in 'needle'; known: key, type, types, value");
  CHECK(niah("needle = {key}\n") == "p.ini:6:1: 'needle' in [niah] lacks the slot {value}, which carries the task");
  CHECK(niah("needle = {key} \\q {value}\n") == "p.ini:6:16: unknown escape '\\q'; known: \\n \\t \\s \\\\ \\{ \\}");
  CHECK(niah("needle = {key} {value} \\\n").find("p.ini:6:24: unknown escape '\\'") == 0);
  CHECK(niah("needle = {key\n") == "p.ini:6:10: '{' is not closed; a slot is written {name}, a literal brace \\{");
  CHECK(niah("needle = {Key} {value}\n") == "p.ini:6:10: '{Key}' is no slot; slots are lower-case words");
  CHECK(niah("needle = key} {value}\n") == "p.ini:6:13: '}' without '{'; a literal brace is written \\}");
  CHECK(niah("needle = \\{key\\} {key} {value}\n") ==
        "p.ini:6:15: the literal text '{key}' cannot be told from a slot; put a blank or a capital inside the braces");
  CHECK(niah("intro = a\nintro = b\n") == "p.ini:7:1: key 'intro' was given on line 6 already; use += to append");
  CHECK(niah("intro\n") == "p.ini:6:1: 'intro' is no 'key = value', section or comment");
  CHECK(niah(" # late comment\n").find("p.ini:6:2: ") == 0);
  CHECK(niah("answer_prefix.one = It is\\s\n") ==
        "p.ini:6:1: 'answer_prefix.one' ends in a blank, which makes models answer worse; end it in a word");
  CHECK(niah("intro = \xE6\x98\xAF\xFFx\n") == "p.ini:6:10: byte 0xFF is not UTF-8");
  CHECK(niah(std::string("intro = ab\0c\n", 13)) == "p.ini:6:11: a NUL byte; a prompt pack is UTF-8 text");
  CHECK(error_of("name = x\n") == "p.ini:1:1: key 'name' stands before the first section");
  CHECK(error_of(kHead + "[assoc]\nneedle_pair = {name} {cue}\n") ==
        "p.ini:6:1: key 'needle_pair' in [assoc] is not for packs with an open vocabulary");
}

TEST_CASE("prompt pack: errors in the [pack] section", "[text][prompt_pack][errors]") {
  CHECK(error_of("[pack]\nversion = 1\nbase = en\n") ==
        "p.ini:1:1: missing key 'name' in [pack]; it names the pack in results");
  CHECK(error_of("[pack]\nname = a\nversion = 0\nbase = en\n") ==
        "p.ini:3:1: version = 0 is not a whole number from 1");
  CHECK(error_of("[pack]\nname = a\nversion = 1\nbase = fr\n") ==
        "p.ini:4:1: unknown base 'fr'; known: en, synthetic, zh");
  CHECK(error_of("[pack]\nname = a\nversion = 1\nlanguage = fr\n") ==
        "p.ini:4:1: unknown language 'fr'; known: en, zh, none");
  CHECK(error_of("[pack]\nname = a\nversion = 1\n").find("p.ini:1:1: missing key 'language' in [pack]") == 0);
  CHECK(error_of("[pack]\nname = a\nauthor = b\n").find("p.ini:3:1: unknown key 'author' in [pack]") == 0);
  CHECK(error_of(kHead + "vocabulary = shut\n") == "p.ini:5:1: unknown vocabulary 'shut'; known: open, closed");
  CHECK(error_of(kHead + "vocabulary = closed\n").find("p.ini:5:1: vocabulary = closed does not go with base = en") ==
        0);
}

TEST_CASE("prompt pack: without a base every key must be there", "[text][prompt_pack][errors]") {
  const std::string head = "[pack]\nname = a\nversion = 1\nlanguage = en\n";
  CHECK(error_of(head).find("missing key") != std::string::npos);
  for (const std::string name : {"en", "zh", "synthetic"}) {
    std::string text(fathom::text::embedded_file("prompts/" + name + ".ini"));
    const auto at = text.find("\nneedle = ");
    text.erase(at, text.find('\n', at + 1) - at);
    CHECK(error_of(text).find("missing key 'needle' in [niah]; give it, or set 'base = ") != std::string::npos);
  }
}

TEST_CASE("prompt pack: words of a closed pack are checked", "[text][prompt_pack][errors]") {
  const std::string head = "[pack]\nname = a\nversion = 1\nbase = synthetic\n";
  CHECK(error_of(head + "[niah]\nneedle = key {key} {value}\n") ==
        "p.ini:6:1: word 'key' in 'needle' is not in the closed vocabulary");
  CHECK(error_of(head + "[niah]\nneedle = note{key} {value}\n") ==
        "p.ini:6:1: 'needle' has a word that touches the slot {key}; a closed vocabulary needs a blank between");
  CHECK(error_of(head + "[niah]\nneedle = {key}note {value}\n").find("touches the slot {key}") != std::string::npos);
  CHECK(error_of(head + "[algo]\ncmd_words = c0, left, hop\n") ==
        "p.ini:6:1: word 'hop' in 'cmd_words' is not in the closed vocabulary");
  CHECK(error_of(head + "[lists]\nwho = k0\n") ==
        "p.ini:6:1: key 'who' in [lists] is not for packs with a closed vocabulary");
  CHECK(error_of(head + "[niah]\nneedle = set {key} {value}\n") == "no error");
}

TEST_CASE("prompt pack: a file is loaded by path, and a missing one is named", "[text][prompt_pack]") {
  const auto path = std::filesystem::temp_directory_path() / "fathom_prompt_pack_test.ini";
  std::ofstream(path, std::ios::binary) << kHead << "[niah]\nintro = Hello.\n";
  CHECK(PromptPack::load(path.string())->text("niah", "intro") == "Hello.");
  std::filesystem::remove(path);
  CHECK_THROWS_AS(PromptPack::load(std::filesystem::temp_directory_path().string()), ConfigError);
  try {
    PromptPack::load(path.string());
    FAIL("a missing file was read");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()) == "prompt pack '" + path.string() + "' cannot be read");
  }
}
