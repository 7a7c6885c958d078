#include "harness/text/sentence_splitter.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace {

using Parts = std::vector<std::string>;

Parts parts_of(const std::string& text) {
  Parts parts;
  for (const auto& span : fathom::text::split_sentences(text))
    parts.push_back(text.substr(span.begin, span.end - span.begin));
  return parts;
}

}  // namespace

TEST_CASE("sentence splitter: stops before a capital, a digit or an opening quote", "[text][sentence_splitter]") {
  CHECK(parts_of("One left. Two stayed! Did three? 4 did… “Five” too.") ==
        Parts{"One left.", "Two stayed!", "Did three?", "4 did…", "“Five” too."});
  CHECK(parts_of("It rained. and it rained. 'Yes.'") == Parts{"It rained. and it rained.", "'Yes.'"});
  CHECK(parts_of("Wait... what?! No way.") == Parts{"Wait... what?!", "No way."});
  CHECK(parts_of("Он ушёл. Она осталась. Ça va. État. Ōsaka. Žena.") ==
        Parts{"Он ушёл.", "Она осталась.", "Ça va.", "État.", "Ōsaka.", "Žena."});
  CHECK(parts_of("see. ţara. ŝi. no").size() == 1);
}

TEST_CASE("sentence splitter: closing quotes and brackets belong to the sentence", "[text][sentence_splitter]") {
  CHECK(parts_of("\"He left.\" \"So did I!\" (It is true.) Then they “came back.” All of them.") ==
        Parts{"\"He left.\"", "\"So did I!\" (It is true.)", "Then they “came back.”", "All of them."});
  CHECK(parts_of("[End.] Next.») Last.") == Parts{"[End.]", "Next.»)", "Last."});
}

TEST_CASE("sentence splitter: not after abbreviations, initials or inside numbers", "[text][sentence_splitter]") {
  CHECK(parts_of("Mr. Hale met Mrs. Oak, Ms. Ash, Dr. Elm and Prof. Fir in St. Ives.").size() == 1);
  CHECK(parts_of("See No. 5, foxes vs. Hounds, e.g. Rex, i.e. Dogs, cats etc. Then go.").size() == 1);
  CHECK(parts_of("J. R. Tolk wrote it. É. Zola did not.") == Parts{"J. R. Tolk wrote it.", "É. Zola did not."});
  CHECK(parts_of("It costs 3.14 or 1.000 now. 5 left.") == Parts{"It costs 3.14 or 1.000 now.", "5 left."});
  CHECK(parts_of("He said no. Then the best. Mister X1. Go.") ==
        Parts{"He said no.", "Then the best.", "Mister X1.", "Go."});
  CHECK(parts_of("A cast. Bust. PhD. Next! Mr! Go") == Parts{"A cast.", "Bust.", "PhD.", "Next!", "Mr!", "Go"});
}

TEST_CASE("sentence splitter: a newline or the text's end always ends", "[text][sentence_splitter]") {
  CHECK(parts_of("no stop\nhere. \n\n\t and there \nMr.\nX") == Parts{"no stop", "here.", "and there", "Mr.", "X"});
  CHECK(parts_of("one.\r\ntwo.\r\n") == Parts{"one.", "two."});
  CHECK(parts_of("").empty());
  CHECK(parts_of(" \n\t\n ").empty());
  CHECK(parts_of("no final stop") == Parts{"no final stop"});
  CHECK(parts_of("...") == Parts{"..."});
}

TEST_CASE("sentence splitter: Chinese stops need no blank behind them", "[text][sentence_splitter]") {
  CHECK(parts_of("他走了。她留下！是吗？“好。”他说（真的。）然后……走。") ==
        Parts{"他走了。", "她留下！", "是吗？", "“好。”", "他说（真的。）", "然后……走。"});
  CHECK(parts_of("什么？！走。") == Parts{"什么？！", "走。"});
}

TEST_CASE("sentence splitter: bytes that are not UTF-8 are passed through", "[text][sentence_splitter]") {
  CHECK(parts_of("a\xFF\xC3. B\xE3\x80. C") == Parts{"a\xFF\xC3.", "B\xE3\x80.", "C"});
}
