#pragma once
// Attention as the textbook writes it, in double, one query at a time. Slow on purpose; never used outside tests.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace fathom::test {

struct NaiveAttention {
  std::int64_t n_q = 0;
  std::int64_t first_position = 0;  ///< query i stands at first_position + i; key j at j
  std::int64_t n_heads = 0;
  std::int64_t n_kv_heads = 0;
  std::int64_t d_head = 0;
  std::int64_t window = 0;    ///< 0 = none; key j visible iff i - window < j <= i
  std::int64_t chunk = 0;     ///< 0 = none; key j visible iff j / chunk == i / chunk
  double softcap = 0;         ///< 0 = none; cap tanh(score / cap)
  std::vector<double> sinks;  ///< a logit a head that only takes its share; empty = none
  double scale = 1;
  /// Additive bias of (head, query position, key position); empty = none.
  std::function<double(std::int64_t, std::int64_t, std::int64_t)> bias;
};

/// q: [n_q, n_heads, d_head]; k, v: [n_k, n_kv_heads, d_head]; result [n_q, n_heads, d_head].
inline std::vector<double> naive_attention(const NaiveAttention& a, const std::vector<double>& q,
                                           const std::vector<double>& k, const std::vector<double>& v) {
  std::vector<double> out(static_cast<std::size_t>(a.n_q * a.n_heads * a.d_head), 0.0);
  const auto at = [&a](std::int64_t row, std::int64_t n_heads, std::int64_t head, std::int64_t x) {
    return static_cast<std::size_t>((row * n_heads + head) * a.d_head + x);
  };
  for (std::int64_t i = 0; i < a.n_q; ++i) {
    for (std::int64_t h = 0; h < a.n_heads; ++h) {
      const std::int64_t kv = h / (a.n_heads / a.n_kv_heads);
      const std::int64_t position = a.first_position + i;
      std::int64_t low = a.window > 0 ? std::max<std::int64_t>(0, position - a.window + 1) : 0;
      if (a.chunk > 0) low = std::max(low, position / a.chunk * a.chunk);
      std::vector<double> logits;
      double largest = -std::numeric_limits<double>::infinity();
      for (std::int64_t j = low; j <= position; ++j) {
        double dot = 0;
        for (std::int64_t x = 0; x < a.d_head; ++x) dot += q[at(i, a.n_heads, h, x)] * k[at(j, a.n_kv_heads, kv, x)];
        double score = dot * a.scale;
        if (a.softcap > 0) score = a.softcap * std::tanh(score / a.softcap);
        logits.push_back(score + (a.bias ? a.bias(h, position, j) : 0.0));
        largest = std::max(largest, logits.back());
      }
      double sum = a.sinks.empty() ? 0 : std::exp(a.sinks[static_cast<std::size_t>(h)] - largest);
      for (double& logit : logits) sum += logit = std::exp(logit - largest);
      for (std::int64_t j = low; j <= position; ++j) {
        const double p = logits[static_cast<std::size_t>(j - low)] / sum;
        for (std::int64_t x = 0; x < a.d_head; ++x) out[at(i, a.n_heads, h, x)] += p * v[at(j, a.n_kv_heads, kv, x)];
      }
    }
  }
  return out;
}

}  // namespace fathom::test
