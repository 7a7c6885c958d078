#include "harness/kernels/gemm.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <memory>
#include <unordered_map>

#include "harness/core/error.h"
#include "harness/kernels/aligned_buffer.h"
#include "harness/kernels/block_attention.h"
#include "harness/kernels/vector_kernels.h"

namespace fathom::kernels {
namespace {

using dnnl::memory;

// Up to this many rows the vector kernel wins: oneDNN copies b into blocks first.
constexpr std::int64_t kGemmFewRows = 8;
constexpr std::int64_t kMaxRowsPerProduct = 2048;
// Below this many multiply-adds a parallel region costs more than it saves.
constexpr std::int64_t kMinParallelWork = 1 << 17;
constexpr std::size_t kMaxCachedProducts = 1024;

const dnnl::engine& gemm_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

int gemm_threads() {
  return omp_in_parallel() != 0 ? 1 : omp_get_max_threads();
}

/// All that a compiled product depends on.
struct ProductKey {
  std::array<std::int64_t, 10> fields;
  bool operator==(const ProductKey& other) const { return fields == other.fields; }
};

struct ProductKeyHash {
  std::size_t operator()(const ProductKey& key) const {
    std::uint64_t hash = 0x9e3779b97f4a7c15ULL;
    for (const std::int64_t field : key.fields) {
      hash = (hash ^ static_cast<std::uint64_t>(field)) * 0xff51afd7ed558ccdULL;
      hash ^= hash >> 32;
    }
    return static_cast<std::size_t>(hash);
  }
};

ProductKey product_key(const GemmCall& call) {
  return {{call.m, call.n, call.k, call.a_stride, call.b_stride, call.c_stride, static_cast<std::int64_t>(call.type),
           static_cast<std::int64_t>(call.layout), static_cast<std::int64_t>(call.output), gemm_threads()}};
}

dnnl::matmul::primitive_desc describe_product(const std::array<memory::desc, 3>& operands, GemmOutput output) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::library);
  // The environment can allow bf16 inside float32 products; results must not depend on it.
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  if (output == GemmOutput::kAccumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  return {gemm_engine(), operands[0], operands[1], operands[2], attributes};
#else
  return {dnnl::matmul::desc(operands[0], operands[1], operands[2]), attributes, gemm_engine()};
#endif
}

/// A compiled product with its operands' memory objects, which are pointed at new addresses call by call.
class Product {
 public:
  explicit Product(const GemmCall& call) {
    const auto type = call.type == ElementType::kFloat32 ? memory::data_type::f32 : memory::data_type::bf16;
    const memory::dims b_strides =
        call.layout == MatrixLayout::kRowsAreOutputs ? memory::dims{1, call.b_stride} : memory::dims{call.b_stride, 1};
    const std::array<memory::desc, 3> operands = {
        memory::desc({call.m, call.k}, type, memory::dims{call.a_stride, 1}),
        memory::desc({call.k, call.n}, type, b_strides),
        memory::desc({call.m, call.n}, memory::data_type::f32, memory::dims{call.c_stride, 1})};
    matmul_ = dnnl::matmul(describe_product(operands, call.output));
    for (std::size_t i = 0; i < 3; ++i) memory_[i] = memory(operands[i], gemm_engine(), nullptr);
    arguments_ = {
        {{DNNL_ARG_SRC, memory_[0].get()}, {DNNL_ARG_WEIGHTS, memory_[1].get()}, {DNNL_ARG_DST, memory_[2].get()}}};
    stream_ = dnnl::stream(gemm_engine());
  }

  void run(const void* a, const void* b, float* c) {
    // oneDNN's handles are not const; it only reads the first two.
    memory_[0].set_data_handle(const_cast<void*>(a));
    memory_[1].set_data_handle(const_cast<void*>(b));
    memory_[2].set_data_handle(c);
    const dnnl_status_t status =
        dnnl_primitive_execute(matmul_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    FATHOM_CHECK(status == dnnl_success, fmt::format("oneDNN matmul failed with status {}", static_cast<int>(status)));
  }

 private:
  dnnl::matmul matmul_;
  std::array<memory, 3> memory_;
  std::array<dnnl_exec_arg_t, 3> arguments_;
  dnnl::stream stream_;
};

/// One cache a thread: the memory objects inside a product are not for sharing.
Product& cached_product(const GemmCall& call) {
  thread_local std::unordered_map<ProductKey, std::unique_ptr<Product>, ProductKeyHash> products;
  const ProductKey key = product_key(call);
  const auto found = products.find(key);
  if (found != products.end()) return *found->second;
  if (products.size() >= kMaxCachedProducts) products.clear();
  return *products.emplace(key, std::make_unique<Product>(call)).first->second;
}

const void* advance_rows(const void* matrix, std::int64_t elements, ElementType type) {
  return static_cast<const char*>(matrix) + static_cast<std::size_t>(elements) * element_size_bytes(type);
}

/// Without bf16 products in oneDNN (no AVX-512): the same numbers through float32, which holds every bf16 exactly.
void gemm_through_float32(const GemmCall& call) {
  thread_local AlignedBuffer a_buffer;
  thread_local AlignedBuffer b_buffer;
  const bool outputs = call.layout == MatrixLayout::kRowsAreOutputs;
  const std::int64_t b_rows = outputs ? call.n : call.k;
  const std::int64_t b_cols = outputs ? call.k : call.n;
  float* a = a_buffer.get<float>(static_cast<std::size_t>(call.m * call.k));
  float* b = b_buffer.get<float>(static_cast<std::size_t>(b_rows * b_cols));
  for (std::int64_t i = 0; i < call.m; ++i) {
    widen(static_cast<const BFloat16Bits*>(call.a) + i * call.a_stride, call.k, a + i * call.k);
  }
  for (std::int64_t i = 0; i < b_rows; ++i) {
    widen(static_cast<const BFloat16Bits*>(call.b) + i * call.b_stride, b_cols, b + i * b_cols);
  }
  GemmCall wide = call;
  wide.type = ElementType::kFloat32;
  wide.a = a;
  wide.a_stride = call.k;
  wide.b = b;
  wide.b_stride = b_cols;
  cached_product(wide).run(wide.a, wide.b, wide.c);
}

/// Whole blocks of 64 rows, then what is left. Less than nine rows are not left alone: with AMX oneDNN sums a product
/// of one row in another order than a block of many.
std::int64_t rows_of_next_product(std::int64_t left) {
  if (left <= 64 + kGemmFewRows) return left;
  const std::int64_t rest = left % 64;
  return rest > 0 && rest <= kGemmFewRows ? left - rest - 64 : left - rest;
}

void gemm_many_rows(const GemmCall& call) {
  // Row counts are cut into few classes, so that ragged batches do not compile a new product each time.
  for (std::int64_t row = 0; row < call.m;) {
    const std::int64_t left = call.m - row;
    GemmCall part = call;
    part.m = left > kMaxRowsPerProduct + kGemmFewRows ? kMaxRowsPerProduct : rows_of_next_product(left);
    part.a = advance_rows(call.a, row * call.a_stride, call.type);
    part.c = call.c + row * call.c_stride;
    if (part.type == ElementType::kBFloat16 && !has_native_bf16()) {
      gemm_through_float32(part);
    } else {
      cached_product(part).run(part.a, part.b, part.c);
    }
    row += part.m;
  }
}

void gemm_few_rows(const GemmCall& call) {
  thread_local AlignedBuffer a_buffer;
  FewRows few;
  few.b_type = call.type;
  few.m = call.m;
  few.n = call.n;
  few.k = call.k;
  few.b = call.b;
  few.b_stride = call.b_stride;
  few.c = call.c;
  few.c_stride = call.c_stride;
  few.keep = call.output == GemmOutput::kAccumulate ? 1.0F : 0.0F;
  if (call.type == ElementType::kFloat32) {
    few.a = static_cast<const float*>(call.a);
    few.a_stride = call.a_stride;
  } else {
    float* wide = a_buffer.get<float>(static_cast<std::size_t>(call.m * call.k));
    for (std::int64_t i = 0; i < call.m; ++i) {
      widen(static_cast<const BFloat16Bits*>(call.a) + i * call.a_stride, call.k, wide + i * call.k);
    }
    few.a = wide;
    few.a_stride = call.k;
  }
  if (call.layout == MatrixLayout::kRowsAreInputs) return few_rows_combine(few);
  const int threads = gemm_threads();
  if (threads == 1 || call.m * call.n * call.k < kMinParallelWork) return few_rows_dot(few, 0, call.n);
  const std::int64_t share = ((call.n + threads - 1) / threads + 3) / 4 * 4;
#pragma omp parallel for schedule(static, 1) num_threads(threads)
  for (int t = 0; t < threads; ++t) {
    few_rows_dot(few, std::min(call.n, t * share), std::min(call.n, (t + 1) * share));
  }
}

}  // namespace

void gemm(const GemmCall& call) {
  if (call.m <= 0 || call.n <= 0) return;
  if (call.m <= kGemmFewRows) return gemm_few_rows(call);
  try {
    gemm_many_rows(call);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    throw InvariantError(
        fmt::format("oneDNN has no product of m = {}, n = {}, k = {}: {}", call.m, call.n, call.k, error.message));
  }
}

std::string gemm_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} (instruction set {:#x})", version->major, version->minor, version->patch,
                     static_cast<int>(dnnl::get_effective_cpu_isa()));
}

bool has_native_bf16() {
  // The values are bit sets: a later set contains the bits of the earlier ones.
  static const bool native = [] {
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    const auto bf16 = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (isa & bf16) == bf16;
  }();
  return native;
}

}  // namespace fathom::kernels
