#pragma once
// Scratch memory on a cache-line boundary that grows and is never copied. std::vector<float> gives 16 bytes only, and a
// vector load across a cache line costs twice.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace fathom::kernels {

class AlignedBuffer {
 public:
  /// At least `size_bytes` of memory; the content is unspecified. \throws std::bad_alloc
  template <typename T>
  T* get(std::size_t count) {
    const std::size_t size_bytes = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    if (size_bytes > size_bytes_) {
      memory_.reset();
      size_bytes_ = 0;
      memory_.reset(std::aligned_alloc(kAlignment, size_bytes));
      if (!memory_) throw std::bad_alloc();
      size_bytes_ = size_bytes;
      // NaN in float32 and bf16: what is read before it is written shows, in every run and not in one of a thousand.
      std::memset(memory_.get(), 0xff, size_bytes);
    }
    return static_cast<T*>(memory_.get());
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  std::size_t size_bytes_ = 0;
};

}  // namespace fathom::kernels
