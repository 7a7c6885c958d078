// safetensors: header and tensors.

#include <cstddef>
#include <cstdint>

#include "harness/checkpoint/safetensors_file.h"
#include "harness/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom::checkpoint;
  try {
    const SafetensorsFile file =
        SafetensorsFile::parse({reinterpret_cast<const char*>(data), size}, "fuzz.safetensors");
    for (const SafetensorsTensor& tensor : file.tensors()) {
      if (tensor.type->dequantize == nullptr) continue;
      std::int64_t n = 1;
      for (const std::int64_t dimension : tensor.shape) n *= dimension;
      std::vector<float> values(static_cast<std::size_t>(n));
      dequantize_range(*tensor.type, tensor.data, 0, n, values.data());
    }
  } catch (const fathom::ModelError&) {
  }
  return 0;
}
