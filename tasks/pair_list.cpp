#include "tasks/pair_list.h"

#include <fmt/format.h>

#include <algorithm>

namespace fathom::tasks {
namespace {

// No haystack that fits a model has as many pairs.
constexpr double kEndlessPairs = 1e9;

}  // namespace

std::vector<task::HaystackUnit> PairListHaystack::units(std::int64_t begin, std::int64_t end) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  fill_to(end);
  std::vector<task::HaystackUnit> out;
  out.reserve(static_cast<std::size_t>(end - begin));
  for (std::int64_t i = begin; i < end; ++i) {
    const auto& [key, value] = pairs_[static_cast<std::size_t>(i)];
    out.push_back({spec_.separator, spec_.render(key, value), true});
  }
  return out;
}

std::optional<std::int64_t> PairListHaystack::size() const {
  if (std::min(spec_.keys.size, spec_.values.size) > kEndlessPairs) return std::nullopt;
  return std::max<std::int64_t>(0, spec_.most);
}

std::string PairListHaystack::limit_reason() const {
  return fmt::format("there are {:.0f} keys and {:.0f} values of its forms, and no two pairs share one",
                     spec_.keys.size, spec_.values.size);
}

std::pair<std::string, std::string> PairListHaystack::pair(std::int64_t i) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  fill_to(i + 1);
  return pairs_[static_cast<std::size_t>(i)];
}

void PairListHaystack::fill_to(std::int64_t end) const {
  while (static_cast<std::int64_t>(pairs_.size()) < end) {
    RngStream rng(spec_.key.child(static_cast<std::int64_t>(pairs_.size())));
    std::string key = used_.draw(spec_.keys, rng);
    pairs_.emplace_back(std::move(key), used_.draw(spec_.values, rng));
  }
}

}  // namespace fathom::tasks
