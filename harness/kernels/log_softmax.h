#pragma once
// What the engine asks of one row of logits, without writing a row of probabilities.

#include <cstdint>

namespace fathom::kernels {

/// ln(sum(exp(logits))), summed in double. logits: [n], n >= 1; NaN gives NaN.
double log_sum_exp(const float* logits, std::int64_t n);

/// Index of the largest logit, the lowest index among equals.
std::int64_t argmax(const float* logits, std::int64_t n);

/// 1 + number of entries with a larger logit than entry `id`.
std::int64_t rank_of(const float* logits, std::int64_t n, std::int64_t id);

}  // namespace fathom::kernels
