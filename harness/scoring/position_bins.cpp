#include "harness/scoring/position_bins.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/core/text_util.h"

namespace fathom::scoring {
namespace {

constexpr std::int64_t kFirstBin = 16;

std::int64_t bin_edge(int quarter) {
  return std::llround(static_cast<double>(kFirstBin) * std::exp2(quarter / 4.0));
}

}  // namespace

std::int64_t position_bin(std::int64_t position) {
  if (position < kFirstBin) return 0;
  int quarter = static_cast<int>(4 * std::log2(static_cast<double>(position) / static_cast<double>(kFirstBin)));
  // The edges are rounded: the neighbour may hold it.
  while (bin_edge(quarter + 1) <= position) ++quarter;
  while (bin_edge(quarter) > position) --quarter;
  return bin_edge(quarter);
}

void PositionBits::add(std::int64_t position, double bits) {
  Bin& bin = bins_[position_bin(position)];
  bin.bits += bits;
  ++bin.n_tokens;
}

void PositionBits::add_text(std::string_view text) {
  for (const std::string& part : split(text, ' ')) {
    const auto equals = part.find('=');
    const auto slash = part.find('/', equals == std::string::npos ? 0 : equals);
    if (equals == std::string::npos || slash == std::string::npos) continue;
    const auto first = parse_int(std::string_view(part).substr(0, equals));
    const auto mean = parse_double(std::string_view(part).substr(equals + 1, slash - equals - 1));
    const auto n = parse_int(std::string_view(part).substr(slash + 1));
    if (!first || !mean || !n || *n < 1) continue;
    Bin& bin = bins_[*first];
    bin.bits += *mean * static_cast<double>(*n);
    bin.n_tokens += *n;
  }
}

std::string PositionBits::text() const {
  std::vector<std::string> parts;
  for (const auto& [first, bin] : bins_) parts.push_back(fmt::format("{}={:.6g}/{}", first, bin.mean(), bin.n_tokens));
  return join(parts, " ");
}

}  // namespace fathom::scoring
