// GGUF: container, tensors, positions, decoder configuration, tokenizer.

#include <cstddef>
#include <cstdint>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_file.h"
#include "harness/checkpoint/gguf_positions.h"
#include "harness/checkpoint/inspect.h"
#include "harness/checkpoint/tokenizer_source.h"
#include "tests/fuzz/fuzz_tokenizer.h"

namespace fathom::checkpoint {
namespace {

void read_gguf_tensors(const GgufFile& file) {
  for (const GgufTensor& tensor : file.tensors()) {
    std::int64_t n = 1;
    for (const std::int64_t size : tensor.shape) n *= size;
    std::vector<float> values(static_cast<std::size_t>(n));
    dequantize_range(*tensor.type, tensor.data, 0, n, values.data());
  }
}

template <typename Action>
void refused_or_done(Action action) {
  try {
    action();
  } catch (const ModelError&) {
  } catch (const DataError&) {
  }
}

}  // namespace
}  // namespace fathom::checkpoint

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom::checkpoint;
  refused_or_done([&] {
    const GgufFile file = GgufFile::parse({reinterpret_cast<const char*>(data), size}, "fuzz.gguf");
    read_gguf_tensors(file);
    refused_or_done([&] { fathom::fuzz::use_tokenizer(*make_gguf_tokenizer(file)); });
    refused_or_done([&] { inspect_json(resolve_gguf_positions(file), 1000); });
    for (const ArchitectureEntry& entry : architectures().entries()) {
      if (entry.config_from_gguf != nullptr) refused_or_done([&] { entry.gguf_names(entry.config_from_gguf(file)); });
    }
  });
  return 0;
}
