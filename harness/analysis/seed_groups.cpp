#include "harness/analysis/seed_groups.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace fathom::analysis {
namespace {

using SampleMeans = std::map<std::int64_t, std::pair<double, std::int64_t>>;  // sum and count by sample index
using TaskLength = std::pair<std::int32_t, std::int64_t>;

/// Everything that a variant of one setting shares with its sisters of other seeds.
auto setting_of(const eval::VariantRecord& record) {
  return std::make_tuple(record.model, record.position, record.rope_base, record.scaling, record.factor,
                         record.position_description, record.trained_context, record.parameters, record.dtype);
}

std::string common_beginning(const std::string& a, const std::string& b) {
  std::size_t n = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  n = std::min(n, std::min(a.size(), b.size()));
  // Names end in "seed=1": what is left of the part that differs goes with it.
  const std::size_t blank = a.find_last_of(' ', n == 0 ? 0 : n - 1);
  return n == a.size() || n == b.size() || blank == std::string::npos ? a.substr(0, n) : a.substr(0, blank);
}

/// Scores of the samples that every seed answered: [n_seeds][n_samples].
std::vector<std::vector<double>> common_scores(const std::vector<const SampleMeans*>& seeds) {
  std::vector<std::vector<double>> out(seeds.size());
  for (const auto& [index, mean] : *seeds.front()) {
    const bool everywhere =
        std::all_of(seeds.begin(), seeds.end(), [key = index](const SampleMeans* m) { return m->count(key) > 0; });
    if (!everywhere) continue;
    for (std::size_t s = 0; s < seeds.size(); ++s) {
      const auto& [sum, count] = seeds[s]->at(index);
      out[s].push_back(sum / static_cast<double>(count));
    }
  }
  return out;
}

}  // namespace

std::vector<SeedGroupRow> seed_groups(const store::RunInfo& info, const std::vector<store::OutcomeRow>& outcomes) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t v = 0; v < info.variants.size(); ++v) {
    if (!info.variants[v].train_seed) continue;
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const std::vector<std::size_t>& group) {
      const bool seed_is_new = std::none_of(group.begin(), group.end(), [&](std::size_t sister) {
        return info.variants[sister].train_seed == info.variants[v].train_seed;
      });
      return seed_is_new && setting_of(info.variants[group.front()]) == setting_of(info.variants[v]);
    });
    if (found == groups.end()) {
      groups.push_back({v});
    } else {
      found->push_back(v);
    }
  }
  groups.erase(std::remove_if(groups.begin(), groups.end(), [](const auto& group) { return group.size() < 2; }),
               groups.end());
  if (groups.empty()) return {};

  std::map<std::size_t, std::map<TaskLength, SampleMeans>> by_variant;
  for (const store::OutcomeRow& row : outcomes) {
    if (row.status != eval::SampleStatus::kOk || !row.value) continue;
    auto& [sum, count] = by_variant[static_cast<std::size_t>(row.variant)][{row.task, row.length_tokens}][row.index];
    sum += *row.value;
    ++count;
  }
  std::vector<SeedGroupRow> out;
  const RngKey key("fathom/1|report|seeds");
  for (const std::vector<std::size_t>& group : groups) {
    std::string setting = info.variants[group.front()].name;
    for (const std::size_t v : group) setting = common_beginning(setting, info.variants[v].name);
    for (const auto& [place, first_seed] : by_variant[group.front()]) {
      std::vector<const SampleMeans*> seeds;
      for (const std::size_t v : group) {
        const auto found = by_variant[v].find(place);
        if (found != by_variant[v].end()) seeds.push_back(&found->second);
      }
      if (seeds.size() < 2) continue;
      const auto scores = common_scores(seeds);
      if (scores.front().empty()) continue;
      out.push_back({setting, place.first, place.second,
                     seed_spread(scores, key.child(setting).child(place.first).child(place.second))});
    }
  }
  return out;
}

}  // namespace fathom::analysis
