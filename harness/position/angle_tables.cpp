#include "harness/position/angle_tables.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <string_view>

#include "harness/core/hash.h"
#include "harness/rope/angle.h"

namespace fathom::position {
namespace {

// Tables of more lengths than this are not kept: a length-dependent scaling makes one per length.
constexpr std::size_t kMostTables = 64;
// A table is worth its rows where at least one in this many is asked for.
constexpr std::int64_t kSparseRows = 64;

/// Row i holds the angles of positions[i], or of position i where positions is null.
AngleTable build_angle_table(const rope::RopeFrequencies& frequencies, std::int64_t n_rows,
                             const std::int64_t* positions, const PositionMap& map) {
  const auto n_pairs = static_cast<std::int64_t>(frequencies.inv_freq.size());
  AngleTable table{at::empty({n_rows, n_pairs}, torch::kFloat32), at::empty({n_rows, n_pairs}, torch::kFloat32)};
  float* cos = table.cos.data_ptr<float>();
  float* sin = table.sin.data_ptr<float>();
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < n_rows; ++row) {
    const std::int64_t position = positions == nullptr ? row : positions[row];
    const double place = map.mapped ? map.mapped(position) : static_cast<double>(position);
    for (std::int64_t i = 0; i < n_pairs; ++i) {
      const rope::CosSin entry = rope::table_entry(place, frequencies.inv_freq[static_cast<std::size_t>(i)],
                                                   frequencies.attention_factor, frequencies.table_dtype);
      cos[row * n_pairs + i] = entry.cos;
      sin[row * n_pairs + i] = entry.sin;
    }
  }
  return table;
}

}  // namespace

std::uint64_t rotation_identity(const rope::RopeFrequencies& frequencies) {
  const auto bytes = [](const double* values, std::size_t n) {
    return std::string_view(reinterpret_cast<const char*>(values), n * sizeof(double));
  };
  StreamingHash hash;
  hash.update(bytes(frequencies.inv_freq.data(), frequencies.inv_freq.size()));
  hash.update(bytes(&frequencies.attention_factor, 1));
  // Float32 adds nothing: prompts are packed in the order of these hashes, and sums depend on their neighbours in the
  // last bit.
  if (frequencies.table_dtype != rope::FloatFormat::kFloat32) hash.update(rope::to_string(frequencies.table_dtype));
  return hash.digest().low;
}

const AngleTable& AngleTables::table(const rope::RopeFrequencies& frequencies, std::int64_t n_positions,
                                     const PositionMap& map) {
  const Key key{rotation_identity(frequencies), map.identity};
  const auto found = tables_.find(key);
  if (found != tables_.end() && found->second.cos.size(0) >= n_positions) return found->second;
  if (found == tables_.end() && tables_.size() >= kMostTables) tables_.clear();
  std::int64_t n_rows = 64;
  while (n_rows < n_positions) n_rows *= 2;
  return tables_[key] = build_angle_table(frequencies, n_rows, nullptr, map);
}

AngleRows AngleTables::rows(const rope::RopeFrequencies& frequencies, const torch::Tensor& positions,
                            std::int64_t total_len, const PositionMap& map) {
  const std::int64_t n = positions.numel();
  const std::int64_t longest = n == 0 ? 0 : positions.max().item<std::int64_t>() + 1;
  const auto found = tables_.find({rotation_identity(frequencies), map.identity});
  const bool known = found != tables_.end() && found->second.cos.size(0) >= longest;
  if (known) return {found->second, positions};
  if (n * kSparseRows < longest) {
    const torch::Tensor flat = positions.reshape(-1).contiguous();
    return {build_angle_table(frequencies, n, flat.data_ptr<std::int64_t>(), map),
            at::arange(n, torch::kInt64).view(positions.sizes())};
  }
  return {table(frequencies, std::max(longest, total_len), map), positions};
}

}  // namespace fathom::position
