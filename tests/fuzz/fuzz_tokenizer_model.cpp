// tokenizer.model of SentencePiece.

#include <cstddef>
#include <cstdint>

#include "harness/text/sentencepiece_tokenizer.h"
#include "tests/fuzz/fuzz_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom::text;
  try {
    SentencePieceVocabulary vocabulary =
        read_sentencepiece_model({reinterpret_cast<const char*>(data), size}, "fuzz.model");
    fathom::fuzz::use_tokenizer(*make_sentencepiece_tokenizer(std::move(vocabulary), "fuzz.model"));
  } catch (const fathom::DataError&) {
  }
  return 0;
}
