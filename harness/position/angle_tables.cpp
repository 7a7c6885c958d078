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

AngleTable build_angle_table(const rope::RopeFrequencies& frequencies, std::int64_t n_positions) {
  const auto n_pairs = static_cast<std::int64_t>(frequencies.inv_freq.size());
  AngleTable table{at::empty({n_positions, n_pairs}, torch::kFloat32),
                   at::empty({n_positions, n_pairs}, torch::kFloat32)};
  float* cos = table.cos.data_ptr<float>();
  float* sin = table.sin.data_ptr<float>();
#pragma omp parallel for schedule(static)
  for (std::int64_t position = 0; position < n_positions; ++position) {
    for (std::int64_t i = 0; i < n_pairs; ++i) {
      const rope::CosSin entry =
          rope::table_entry(static_cast<double>(position), frequencies.inv_freq[static_cast<std::size_t>(i)],
                            frequencies.attention_factor);
      cos[position * n_pairs + i] = entry.cos;
      sin[position * n_pairs + i] = entry.sin;
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
  return hash.digest().low;
}

const AngleTable& AngleTables::table(const rope::RopeFrequencies& frequencies, std::int64_t n_positions) {
  const std::uint64_t key = rotation_identity(frequencies);
  const auto found = tables_.find(key);
  if (found != tables_.end() && found->second.cos.size(0) >= n_positions) return found->second;
  if (found == tables_.end() && tables_.size() >= kMostTables) tables_.clear();
  std::int64_t rows = 64;
  while (rows < n_positions) rows *= 2;
  return tables_[key] = build_angle_table(frequencies, rows);
}

}  // namespace fathom::position
