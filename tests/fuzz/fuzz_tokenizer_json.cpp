// tokenizer.json of Hugging Face, and the word tokenizer of models trained here.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "harness/text/tokenizer_json.h"
#include "harness/text/word_tokenizer.h"
#include "tests/fuzz/fuzz_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom::text;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  try {
    if (WordTokenizer::is_word_json(json)) {
      WordTokenizer::from_json(json, "fuzz.json");
    } else {
      fathom::fuzz::use_tokenizer(*read_tokenizer_json(json, {}, "fuzz.json"));
    }
  } catch (const fathom::DataError&) {
  }
  return 0;
}
