#include "harness/kernels/block_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <numeric>

#include "harness/core/error.h"
#include "harness/kernels/aligned_buffer.h"
#include "harness/kernels/gemm.h"
#include "harness/kernels/vector_kernels.h"

namespace fathom::kernels {
namespace {

constexpr double kLog2OfE = 1.4426950408889634;
// Row and column counts of the products are rounded up to these, so that few shapes are compiled. 32 columns are also
// one matrix tile's depth in bf16.
constexpr std::int64_t kRowStep = 16;
constexpr std::int64_t kColumnStep = 32;
// Fewer rows than this are not padded: they take gemm()'s path for few rows, bound by reading the cache.
constexpr std::int64_t kFewRows = 8;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// Block sizes: a function of the shape only, so that results do not depend on what else is in the call.
struct BlockSizes {
  std::int64_t queries = 0;  ///< positions in a query block
  std::int64_t keys = 0;
};

BlockSizes block_sizes(std::int64_t group) {
  // About 192 rows of scores: enough to pay for oneDNN's copy of the keys, few enough that little is computed above the
  // diagonal and that scores and probabilities stay in the second-level cache. Sizes within a factor of two of these
  // differ by under 8 %.
  return {std::clamp<std::int64_t>(round_up(192 / group, kRowStep), 16, 64), 512};
}

/// One thread's unit of work: some queries of one sequence, all query heads of one KV head, keys from key_begin to
/// key_end.
struct AttentionTask {
  std::int64_t sequence = 0;
  std::int64_t kv_head = 0;
  std::int64_t query_begin = 0;  ///< counted in the sequence's queries
  std::int64_t n_queries = 0;
  std::int64_t cost = 0;
};

/// First key that the query at a position sees.
std::int64_t lowest_key(const AttentionShape& shape, std::int64_t position) {
  std::int64_t lowest = shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1) : 0;
  if (shape.chunk > 0) lowest = std::max(lowest, position / shape.chunk * shape.chunk);
  return lowest;
}

std::vector<AttentionTask> plan_tasks(const AttentionShape& shape, const std::vector<AttentionSequence>& sequences,
                                      const BlockSizes& sizes) {
  std::vector<AttentionTask> tasks;
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const AttentionSequence& sequence = sequences[s];
    for (std::int64_t begin = 0; begin < sequence.n_q;) {
      const std::int64_t position = sequence.first_position + begin;
      const std::int64_t to_boundary = sizes.queries - position % sizes.queries;
      const std::int64_t n = std::min(to_boundary, sequence.n_q - begin);
      const std::int64_t seen = position + n - lowest_key(shape, position);
      for (std::int64_t h = 0; h < shape.n_kv_heads; ++h) {
        tasks.push_back({static_cast<std::int64_t>(s), h, begin, n, n * seen});
      }
      begin += n;
    }
  }
  // Dear ones first, so that no thread ends up alone with one. The order does not touch the numbers.
  std::stable_sort(tasks.begin(), tasks.end(), [](const auto& x, const auto& y) { return x.cost > y.cost; });
  return tasks;
}

/// Kept from call to call: a fresh megabyte of memory a layer would cost more in page faults than a small attention
/// takes.
struct AttentionScratch {
  AlignedBuffer q, scores, probabilities, out, row_max, row_sum, bias, values;
  std::size_t n_probabilities = 0;
  std::vector<std::int32_t> visible_begin, visible_end, q_positions, k_positions;
};

/// The computation of one task in one thread's scratch.
class AttentionWorker {
 public:
  AttentionWorker(const AttentionShape& shape, const BlockSizes& sizes, AttentionScratch& scratch)
      : scratch_(scratch),
        shape_(shape),
        sizes_(sizes),
        group_(shape.n_heads / shape.n_kv_heads),
        element_bytes_(element_size_bytes(shape.type)),
        row_bytes_(static_cast<std::size_t>(shape.d_head) * element_bytes_) {}

  void run(const AttentionTask& task, const AttentionSequence& sequence) {
    begin_task(task, sequence);
    const std::int64_t first_query = sequence.first_position + task.query_begin;
    const std::int64_t end = first_query + task.n_queries;
    const std::int64_t lowest = lowest_key(shape_, first_query);
    // Key blocks start at fixed positions: which keys are summed together must not depend on the query block.
    for (std::int64_t block = lowest / sizes_.keys * sizes_.keys; block < end; block += sizes_.keys) {
      // Columns that no query sees are cut off in front, in whole steps; they would add exact zeros.
      const std::int64_t begin = block + std::max<std::int64_t>(0, lowest - block) / kCutStep * kCutStep;
      attend(sequence, task, begin, std::min(block + sizes_.keys, end));
    }
    finish(task, sequence);
  }

 private:
  static constexpr std::int64_t kCutStep = 64;

  void begin_task(const AttentionTask& task, const AttentionSequence& sequence) {
    const bool few = group_ * task.n_queries <= kFewRows;
    head_rows_ = few ? task.n_queries : round_up(task.n_queries, kRowStep);
    rows_ = group_ * head_rows_;
    const auto rows = static_cast<std::size_t>(rows_);
    const auto d = static_cast<std::size_t>(shape_.d_head);
    std::byte* q = scratch_.q.get<std::byte>(rows * row_bytes_);
    const auto* source = static_cast<const std::byte*>(sequence.q);
    for (std::int64_t g = 0; g < group_; ++g) {
      for (std::int64_t i = 0; i < head_rows_; ++i) {
        std::byte* row = q + static_cast<std::size_t>(g * head_rows_ + i) * row_bytes_;
        const std::int64_t from = (task.query_begin + i) * shape_.n_heads + task.kv_head * group_ + g;
        if (i < task.n_queries) {
          std::memcpy(row, source + static_cast<std::size_t>(from) * row_bytes_, row_bytes_);
        } else {
          std::memset(row, 0, row_bytes_);
        }
      }
    }
    std::fill_n(scratch_.out.get<float>(rows * d), rows * d, 0.0F);
    std::fill_n(scratch_.row_sum.get<float>(rows), rows, 0.0F);
    std::fill_n(scratch_.row_max.get<float>(rows), rows, -std::numeric_limits<float>::infinity());
    if (shape_.sinks != nullptr) begin_with_sinks(task);
    first_query_ = sequence.first_position + task.query_begin;
  }

  /// A sink is a key that has been seen before all others, with a value of zero.
  void begin_with_sinks(const AttentionTask& task) {
    for (std::int64_t g = 0; g < group_; ++g) {
      const float sink = shape_.sinks[task.kv_head * group_ + g] * static_cast<float>(kLog2OfE);
      std::fill_n(scratch_.row_max.get<float>(0) + g * head_rows_, head_rows_, sink);
      std::fill_n(scratch_.row_sum.get<float>(0) + g * head_rows_, head_rows_, 1.0F);
    }
  }

  const std::byte* head_rows_of(const void* base, const AttentionSequence& sequence, const AttentionTask& task,
                                std::int64_t key) const {
    return static_cast<const std::byte*>(base) +
           static_cast<std::size_t>(task.kv_head * sequence.k_capacity + key) * row_bytes_;
  }

  void attend(const AttentionSequence& sequence, const AttentionTask& task, std::int64_t key_begin,
              std::int64_t key_end) {
    const auto n = static_cast<std::size_t>(rows_ * sizes_.keys);
    float* scores = scratch_.scores.get<float>(n);
    const std::int64_t n_keys = key_end - key_begin;
    const std::int64_t padded = round_up(n_keys, kColumnStep);
    GemmCall qk;
    qk.type = shape_.type;
    qk.m = rows_;
    // Slots past n_k exist up to the capacity; what stands there is masked below.
    qk.n = rows_ <= kFewRows ? n_keys : std::min(padded, sequence.k_capacity - key_begin);
    qk.k = shape_.d_head;
    qk.a = scratch_.q.get<std::byte>(0);
    qk.a_stride = shape_.d_head;
    qk.b = head_rows_of(sequence.k, sequence, task, key_begin);
    qk.b_stride = shape_.d_head;
    qk.c = scores;
    qk.c_stride = sizes_.keys;
    gemm(qk);
    soften(task, key_begin, n_keys, padded);
    GemmCall pv = qk;
    pv.layout = MatrixLayout::kRowsAreInputs;
    pv.output = GemmOutput::kAccumulate;
    pv.n = shape_.d_head;
    pv.k = rows_ <= kFewRows ? n_keys : padded;
    pv.a = shape_.type == ElementType::kFloat32 ? static_cast<const void*>(scores)
                                                : scratch_.probabilities.get<BFloat16Bits>(0);
    pv.a_stride = sizes_.keys;
    pv.b = padded_values(head_rows_of(sequence.v, sequence, task, key_begin), n_keys, pv.k);
    pv.c = scratch_.out.get<float>(0);
    pv.c_stride = shape_.d_head;
    gemm(pv);
  }

  /// The values themselves, or a copy with zeros in the rows that the product reads past the last key: what stands in
  /// the cache there may be NaN.
  const std::byte* padded_values(const std::byte* values, std::int64_t n_keys, std::int64_t n_rows) {
    if (n_keys == n_rows) return values;
    std::byte* copy = scratch_.values.get<std::byte>(static_cast<std::size_t>(sizes_.keys) * row_bytes_);
    const std::size_t used = static_cast<std::size_t>(n_keys) * row_bytes_;
    std::memcpy(copy, values, used);
    std::memset(copy + used, 0, static_cast<std::size_t>(n_rows - n_keys) * row_bytes_);
    return copy;
  }

  void soften(const AttentionTask& task, std::int64_t key_begin, std::int64_t n_keys, std::int64_t padded) {
    SoftmaxBlock block;
    block.scores = scratch_.scores.get<float>(0);
    const auto n = static_cast<std::size_t>(rows_ * sizes_.keys);
    if (shape_.type == ElementType::kBFloat16) block.probabilities = probabilities_zeroed(n);
    block.bias = shape_.bias ? fill_bias(task, key_begin, n_keys) : nullptr;
    block.stride = sizes_.keys;
    block.width = padded;
    block.scale = static_cast<float>(static_cast<double>(shape_.softmax_scale) * kLog2OfE);
    if (shape_.softcap > 0) {
      for (std::int64_t row = 0; row < rows_; ++row)
        softcap_row(block.scores + row * sizes_.keys, shape_.softmax_scale, shape_.softcap, n_keys);
      block.scale = static_cast<float>(kLog2OfE);
    }
    block.row_max = scratch_.row_max.get<float>(0);
    block.row_sum = scratch_.row_sum.get<float>(0);
    block.out = scratch_.out.get<float>(0);
    block.d = shape_.d_head;
    scratch_.visible_begin.resize(static_cast<std::size_t>(task.n_queries));
    scratch_.visible_end.resize(static_cast<std::size_t>(task.n_queries));
    for (std::int64_t i = 0; i < task.n_queries; ++i) {
      const std::int64_t position = first_query_ + i;
      const std::int64_t low = lowest_key(shape_, position) - key_begin;
      scratch_.visible_begin[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(std::clamp<std::int64_t>(low, 0, n_keys));
      scratch_.visible_end[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(std::clamp<std::int64_t>(position - key_begin + 1, 0, n_keys));
    }
    for (std::int64_t g = 0; g < group_; ++g) {
      softmax_rows(block, {g * head_rows_, task.n_queries, scratch_.visible_begin.data(), scratch_.visible_end.data()});
    }
  }

  /// Rows that only pad are never written, so they have to be finite from the start.
  BFloat16Bits* probabilities_zeroed(std::size_t n) {
    if (n > scratch_.n_probabilities) {
      std::fill_n(scratch_.probabilities.get<BFloat16Bits>(n), n, BFloat16Bits{0});
      scratch_.n_probabilities = n;
    }
    return scratch_.probabilities.get<BFloat16Bits>(0);
  }

  float* fill_bias(const AttentionTask& task, std::int64_t key_begin, std::int64_t n_keys) {
    float* bias = scratch_.bias.get<float>(static_cast<std::size_t>(rows_ * sizes_.keys));
    scratch_.q_positions.resize(static_cast<std::size_t>(task.n_queries));
    scratch_.k_positions.resize(static_cast<std::size_t>(n_keys));
    std::iota(scratch_.q_positions.begin(), scratch_.q_positions.end(), static_cast<std::int32_t>(first_query_));
    std::iota(scratch_.k_positions.begin(), scratch_.k_positions.end(), static_cast<std::int32_t>(key_begin));
    for (std::int64_t g = 0; g < group_; ++g) {
      shape_.bias(task.kv_head * group_ + g, scratch_.q_positions.data(), task.n_queries, scratch_.k_positions.data(),
                  n_keys, bias + g * head_rows_ * sizes_.keys, sizes_.keys);
    }
    return bias;
  }

  void finish(const AttentionTask& task, const AttentionSequence& sequence) {
    const float* out = scratch_.out.get<float>(0);
    const float* sums = scratch_.row_sum.get<float>(0);
    for (std::int64_t g = 0; g < group_; ++g) {
      for (std::int64_t i = 0; i < task.n_queries; ++i) {
        const std::int64_t row = g * head_rows_ + i;
        const std::int64_t to = (task.query_begin + i) * shape_.n_heads + task.kv_head * group_ + g;
        scale_row(out + row * shape_.d_head, 1.0F / sums[row], shape_.d_head, sequence.out + to * shape_.d_head);
      }
    }
  }

  AttentionScratch& scratch_;
  const AttentionShape& shape_;
  const BlockSizes sizes_;
  const std::int64_t group_;
  const std::size_t element_bytes_;
  const std::size_t row_bytes_;
  std::int64_t head_rows_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t first_query_ = 0;
};

void check_attention(const AttentionShape& shape, const std::vector<AttentionSequence>& sequences) {
  FATHOM_CHECK(shape.d_head > 0 && shape.n_kv_heads > 0, "attention without heads");
  FATHOM_CHECK(shape.n_heads % shape.n_kv_heads == 0,
               fmt::format("n_heads = {} is not a multiple of n_kv_heads = {}", shape.n_heads, shape.n_kv_heads));
  for (const AttentionSequence& sequence : sequences) {
    FATHOM_CHECK(sequence.n_k >= sequence.first_position + sequence.n_q && sequence.k_capacity >= sequence.n_k,
                 fmt::format("{} queries from position {} need as many keys; got {} in room for {}", sequence.n_q,
                             sequence.first_position, sequence.n_k, sequence.k_capacity));
  }
}

}  // namespace

void block_attention(const AttentionShape& shape, const std::vector<AttentionSequence>& sequences) {
  check_attention(shape, sequences);
  const BlockSizes sizes = block_sizes(shape.n_heads / shape.n_kv_heads);
  const std::vector<AttentionTask> tasks = plan_tasks(shape, sequences, sizes);
  const auto n_tasks = static_cast<std::int64_t>(tasks.size());
  std::exception_ptr failure;
#pragma omp parallel if (n_tasks > 1)
  {
    thread_local AttentionScratch scratch;
    AttentionWorker worker(shape, sizes, scratch);
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t t = 0; t < n_tasks; ++t) {
      try {
        const AttentionTask& task = tasks[static_cast<std::size_t>(t)];
        worker.run(task, sequences[static_cast<std::size_t>(task.sequence)]);
      } catch (...) {
#pragma omp critical(fathom_attention_failure)
        failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

const char* attention_kernel_name(ElementType type) {
  if (type == ElementType::kFloat32) return "block-float32/1";
  return has_native_bf16() ? "block-bf16/1" : "block-bf16-emulated/1";
}

}  // namespace fathom::kernels
