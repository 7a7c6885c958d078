#include "harness/text/prose.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/embedded.h"
#include "harness/text/prose_template.h"
#include "harness/text/sentence_splitter.h"
#include "tests/support/catch.h"

using namespace fathom::text;
using fathom::ConfigError;
using fathom::DataError;
using fathom::InvariantError;

namespace {

constexpr std::uint64_t kManySentences = 100000;

std::string template_error(const std::string& line) {
  try {
    parse_prose_templates("# head\n\n" + line + "\n", "t.txt");
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> lower_words(const std::string& text) {
  std::string plain = fathom::ascii_lower(text);
  for (char& c : plain) {
    if ((c < 'a' || c > 'z') && c != '\'' && c != '-') c = ' ';
  }
  std::vector<std::string> words;
  for (const std::string& word : fathom::split(plain, ' ')) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

// The first 100,000 sentences of seed 7, made once for all tests.
const std::vector<ProseSentence>& many_sentences(const std::string& language) {
  static std::map<std::string, std::vector<ProseSentence>> made;
  std::vector<ProseSentence>& sentences = made[language];
  if (sentences.empty()) {
    const ProseGenerator prose(language, 7);
    for (std::uint64_t i = 0; i < kManySentences; ++i) sentences.push_back(prose.sentence(i));
  }
  return sentences;
}

// Index of the template a sentence was made from, found by its fixed text.
std::size_t template_of(const std::string& sentence, const std::vector<ProseTemplate>& templates) {
  const auto fits = [&sentence](const ProseTemplate& pieces) {
    std::size_t at = 0;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      if (pieces[p].kind == ProsePiece::Kind::kSlot) continue;
      std::size_t end = std::string::npos;
      for (std::string text : pieces[p].alternatives) {
        if (p == 0) text[0] = static_cast<char>(text[0] >= 'a' && text[0] <= 'z' ? text[0] - 32 : text[0]);
        const auto found = sentence.find(text, at);
        if (found != std::string::npos && (p > 0 || found == 0)) end = std::min(end, found + text.size());
      }
      if (end == std::string::npos) return false;
      at = end;
    }
    return at == sentence.size();
  };
  std::size_t which = templates.size();
  for (std::size_t t = 0; t < templates.size(); ++t) {
    if (fits(templates[t]) && (which == templates.size() || templates[t].size() > templates[which].size())) which = t;
  }
  return which;
}

}  // namespace

TEST_CASE("prose: English verb forms and articles", "[text][prose]") {
  const std::vector<std::vector<std::string>> forms{{"carry", "carries", "carried", "carrying"},
                                                    {"tap", "taps", "tapped", "tapping"},
                                                    {"tie", "ties", "tied", "tying"},
                                                    {"press", "presses", "pressed", "pressing"},
                                                    {"gather", "gathers", "gathered", "gathering"},
                                                    {"obey", "obeys", "obeyed", "obeying"},
                                                    {"fix", "fixes", "fixed", "fixing"},
                                                    {"tow", "tows", "towed", "towing"},
                                                    {"bake", "bakes", "baked", "baking"},
                                                    {"free", "frees", "freed", "freeing"},
                                                    {"dye", "dyes", "dyed", "dyeing"},
                                                    {"hoe", "hoes", "hoed", "hoeing"},
                                                    {"watch", "watches", "watched", "watching"},
                                                    {"buzz", "buzzes", "buzzed", "buzzing"},
                                                    {"stop", "stops", "stopped", "stopping"},
                                                    {"load", "loads", "loaded", "loading"}};
  for (const auto& form : forms) {
    CHECK(verb_third_person(form[0]) == form[1]);
    CHECK(verb_past(form[0]) == form[2]);
    CHECK(verb_ing_form(form[0]) == form[3]);
  }
  CHECK(article_before(" old boat") == "an");
  CHECK(article_before(" boat") == "a");
  CHECK(article_before(" hour.") == "an");
  CHECK(article_before(" honest, ") == "an");
  CHECK(article_before(" house") == "a");
  CHECK(article_before(" useful thing") == "a");
  CHECK(article_before(" user") == "an");
}

TEST_CASE("prose: a faulty template is an error with file and line", "[text][prose][errors]") {
  CHECK(template_error("The {adj} {noun} [a|b].") == "no error");
  CHECK(template_error("The {adj} {now}.") == "t.txt:3: unknown slot {now}");
  CHECK(template_error("The {adj} {noun.") == "t.txt:3: '{' is not closed");
  CHECK(template_error("The {adj} {noun} [a|b.") == "t.txt:3: '[' is not closed");
  CHECK(template_error("The {adj} {noun} a].") == "t.txt:3: ']' closes nothing");
  CHECK(template_error("The {adj} {noun} [a||b].") == "t.txt:3: '[a||b]' has an empty alternative");
  CHECK(template_error("The {adj} {noun} [a|{noun}].") == "t.txt:3: '[a|{noun}]' may hold plain text only");
  CHECK(template_error("The {adj} {noun} 4.") == "t.txt:3: a digit, which could pass for a needle's value");
  CHECK(template_error("The {adj} thing.") == "t.txt:3: no {noun} in the template");
  CHECK(template_error("The {noun}.") == "t.txt:3: no {adj} in the template");
  CHECK_THROWS_AS(parse_prose_templates("# nothing\n", "t.txt"), DataError);
}

TEST_CASE("prose: word lists and fingerprints", "[text][prose]") {
  CHECK(word_list("nouns_en").size() == 1091);
  CHECK(word_list("adjectives_en").size() == 508);
  CHECK(word_list("verbs_en").size() == 357);
  CHECK(word_list("zh_nouns").size() == 278);
  CHECK(word_list("zh_adjectives").size() == 282);
  CHECK(word_list("zh_verbs").size() == 117);
  CHECK_THROWS_AS(word_list("nouns_fr"), InvariantError);
  CHECK(ProseGenerator::fingerprint("en") != ProseGenerator::fingerprint("zh"));
  CHECK_THROWS_AS(ProseGenerator("none", 1), ConfigError);
}

TEST_CASE("prose: frozen sentences of seed 42", "[text][prose][golden]") {
  struct Golden {
    std::string language;
    std::uint64_t index;
    std::string separator, text;
  };
  // Written out by this generator once; a change would silently change every stored sample's haystack.
  const std::vector<Golden> golden{
      {"en", 0, "", "Light from the thermometer fell across a favorite quill nobody had reduced."},
      {"en", 1, " ", "With the alley gone, the sturdy horn looked like something to research."},
      {"en", 2, " ", "The trouble is not whether to transport the low brick but which port to begin with."},
      {"en", 3, " ", "It takes a circular cocoa and a little patience to deepen the trampoline."},
      {"en", 4, " ", "The rigid eraser belongs to whoever can push the trapeze without help."},
      {"en", 5, " ", "What the generous hotel lacks in size, the horizon makes up for when you ignore it."},
      {"en", 6, " ", "She took out the unique metro on Sundays and compressed the schooner with it."},
      {"en", 50, "\n", "One could call the glacier for hours and never see the sunny riddle."},
      {"en", 12345, " ", "By the time the razor was circled, the outer skate had gone."},
      {"en", 600000, " ", "Few of us prefer the separate basin to the sugar that others request."},
      {"zh", 0, "", "只要端庄的梦想还在，就会有人绘制篮子。"},
      {"zh", 1, "", "无论蚂蚁多么拥挤，总有一天会被人提醒。"},
      {"zh", 2, "", "没有人连接过如此勇敢的厨房，更不用说舞蹈。"},
      {"zh", 3, "", "美丽的水壶正在连接柔和的钱包。"},
      {"zh", 4, "", "听说橙黄的裤子曾经环绕过一个霜冻。"},
      {"zh", 5, "", "这一带因为坚强的地板而出名，人们常来提醒梅花。"},
      {"zh", 6, "", "今年的海豚不如往年诚实，呼唤的人也少了。"},
      {"zh", 50, "\n", "钢笔虽然开朗，却从来不肯关闭萝卜。"},
      {"zh", 12345, "", "窗外是时髦的邮票，屋里的人正忙着分开谜语。"},
      {"zh", 600000, "", "这一带因为纯净的毯子而出名，人们常来赠送铁路。"},
  };
  for (const Golden& each : golden) {
    const ProseSentence sentence = ProseGenerator(each.language, 42).sentence(each.index);
    CHECK(sentence.separator == each.separator);
    CHECK(sentence.text == each.text);
  }
}

TEST_CASE("prose: no sentence twice, and every template once per round", "[text][prose]") {
  const std::string language = GENERATE("en", "zh");
  const auto templates =
      parse_prose_templates(embedded_file("data/haystack/" + language + ".txt"), "data/haystack/" + language + ".txt");
  std::unordered_set<std::string> seen;
  std::vector<std::size_t> counts(templates.size() + 1);
  std::size_t before = templates.size() + 1;
  std::size_t n_neighbours = 0;
  for (const ProseSentence& sentence : many_sentences(language)) {
    seen.insert(sentence.text);
    const std::size_t which = template_of(sentence.text, templates);
    ++counts[which];
    if (which == before) ++n_neighbours;
    before = which;
  }
  CHECK(seen.size() == kManySentences);
  CHECK(n_neighbours == 0);
  CHECK(counts.back() == 0);
  counts.pop_back();
  CHECK(*std::max_element(counts.begin(), counts.end()) - *std::min_element(counts.begin(), counts.end()) <= 1);
}

TEST_CASE("prose: English holds no digit, no inner capital, no word from elsewhere", "[text][prose]") {
  std::set<std::string> known{"a", "an"};
  for (const std::string list : {"adjectives_en", "nouns_en"}) {
    for (const std::string& word : word_list(list)) known.insert(word);
  }
  for (const std::string& verb : word_list("verbs_en")) {
    known.insert({verb, verb_third_person(verb), verb_past(verb), verb_ing_form(verb)});
  }
  for (const auto& pieces : parse_prose_templates(embedded_file("data/haystack/en.txt"), "en.txt")) {
    for (const ProsePiece& piece : pieces) {
      for (const std::string& text : piece.alternatives) {
        for (const std::string& word : lower_words(text)) known.insert(word);
      }
    }
  }
  std::set<std::string> strangers;
  std::size_t n_bad = 0;
  const std::string language = "en";
  const auto& sentences = many_sentences(language);
  for (const ProseSentence& sentence : sentences) {
    if (sentence.text.find_first_of("0123456789\"\n{}[]|") != std::string::npos) ++n_bad;
    const std::string plain =
        fathom::replace_all(sentence.text, " on Sundays ", " ");  // the one capital inside a template
    if (plain.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 0) ++n_bad;
    if (plain.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1) != std::string::npos) ++n_bad;
    for (const std::string& word : lower_words(sentence.text)) {
      if (known.count(word) == 0) strangers.insert(word);
    }
  }
  CHECK(n_bad == 0);
  CHECK(strangers.empty());
}

TEST_CASE("prose: a sentence made alone is the one of the full run, on any thread", "[text][prose]") {
  const std::string language = GENERATE("en", "zh");
  const auto& all = many_sentences(language);
  const ProseGenerator alone(language, 7);
  CHECK(alone.sentence(12345).text == all[12345].text);
  CHECK(alone.sentence(12345).separator == all[12345].separator);
  const ProseGenerator shared(language, 7);
  std::vector<std::string> texts(4000);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < texts.size(); i += 4) {
        const ProseSentence sentence = shared.sentence(texts.size() - 1 - i);
        texts[texts.size() - 1 - i] = sentence.separator + sentence.text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < texts.size(); ++i) REQUIRE(texts[i] == all[i].separator + all[i].text);
  CHECK(ProseGenerator(language, 8).sentence(0).text != all[0].text);
}

TEST_CASE("prose: the sentence splitter gives back what went in", "[text][prose][sentence_splitter]") {
  const std::string language = GENERATE("en", "zh");
  std::string text;
  for (const ProseSentence& sentence : many_sentences(language)) text += sentence.separator + sentence.text;
  const auto spans = split_sentences(text);
  REQUIRE(spans.size() == kManySentences);
  std::size_t n_different = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (text.substr(spans[i].begin, spans[i].end - spans[i].begin) != many_sentences(language)[i].text) ++n_different;
  }
  CHECK(n_different == 0);
}

TEST_CASE("prose: paragraphs have 4 to 8 sentences", "[text][prose]") {
  const std::string language = GENERATE("en", "zh");
  std::set<std::size_t> sizes;
  std::size_t size = 0;
  for (const ProseSentence& sentence : many_sentences(language)) {
    if (sentence.separator == "\n") {
      sizes.insert(size);
      size = 0;
    } else if (size > 0) {
      REQUIRE(sentence.separator == (language == "en" ? " " : ""));
    }
    ++size;
  }
  CHECK(sizes == std::set<std::size_t>{4, 5, 6, 7, 8});
  CHECK(many_sentences(language).front().separator.empty());
}

TEST_CASE("prose: excluded words do not occur, and the rest still holds", "[text][prose]") {
  // A template's fixed word, an adjective, two nouns, a verb by one of its forms, in any case.
  const std::vector<std::string> excluded{"valley",
                                          word_list("adjectives_en")[3],
                                          fathom::ascii_lower(word_list("nouns_en")[5]),
                                          word_list("nouns_en")[700],
                                          verb_past(word_list("verbs_en")[11]),
                                          "DUST"};
  const ProseGenerator prose("en", 7, excluded);
  std::unordered_set<std::string> seen;
  std::size_t n_hits = 0;
  for (std::uint64_t i = 0; i < kManySentences; ++i) {
    const ProseSentence sentence = prose.sentence(i);
    seen.insert(sentence.text);
    for (const std::string& word : lower_words(sentence.text)) {
      if (word == "dust" || std::find(excluded.begin(), excluded.end(), word) != excluded.end()) ++n_hits;
    }
  }
  CHECK(n_hits == 0);
  CHECK(seen.size() == kManySentences);
}

TEST_CASE("prose: excluded Chinese words do not arise between words either", "[text][prose]") {
  // The last character of a verb and the first of a noun: only their meeting makes the excluded word.
  const std::vector<std::string> excluded{
      word_list("zh_nouns")[3], word_list("zh_verbs")[1].substr(3) + word_list("zh_nouns")[0].substr(0, 3), "一整天"};
  const ProseGenerator prose("zh", 7, excluded);
  const ProseGenerator plain("zh", 7);
  std::size_t n_hits = 0;
  std::size_t n_plain_hits = 0;
  for (std::uint64_t i = 0; i < kManySentences; ++i) {
    for (const std::string& word : excluded) {
      if (prose.sentence(i).text.find(word) != std::string::npos) ++n_hits;
      if (plain.sentence(i).text.find(word) != std::string::npos) ++n_plain_hits;
    }
  }
  CHECK(n_hits == 0);
  CHECK(n_plain_hits > 0);
}

TEST_CASE("prose: an exclusion that leaves too little is an error", "[text][prose][errors]") {
  try {
    ProseGenerator("en", 1, word_list("nouns_en"));
    FAIL("nothing was thrown");
  } catch (const DataError& error) {
    CHECK(std::string(error.what())
              .find("prose: the excluded words leave 0 nouns in language 'en'; at least 8 are needed") !=
          std::string::npos);
  }
}

// Stands in for a compression test: what a compressor finds in repetitive text is repeated stretches.
TEST_CASE("prose: word sequences hardly repeat, those of the noise line do", "[text][prose]") {
  const auto distinct_share = [](const std::vector<std::string>& words) {
    std::unordered_set<std::string> distinct;
    for (std::size_t i = 0; i + 4 < words.size(); ++i) {
      distinct.insert(words[i] + ' ' + words[i + 1] + ' ' + words[i + 2] + ' ' + words[i + 3] + ' ' + words[i + 4]);
    }
    return static_cast<double>(distinct.size()) / static_cast<double>(words.size());
  };
  std::vector<std::string> prose;
  std::vector<std::string> noise;
  for (std::size_t i = 0; i < 20000; ++i) {
    for (const std::string& word : lower_words(many_sentences("en")[i].text)) prose.push_back(word);
    for (const std::string& word : lower_words("Rain taps on the roof. The clock ticks on.")) noise.push_back(word);
  }
  CHECK(distinct_share(prose) > 0.5);
  CHECK(distinct_share(noise) < 0.02);
}
