#include "reports/miss_tables.h"

#include <set>

#include "harness/core/text_util.h"
#include "reports/format.h"

namespace fathom::reports {

std::vector<MissGroup> miss_groups(const TableSource& source) {
  const Labels& l = source.labels;
  std::vector<MissGroup> out;
  for (const store::MissRow& miss : source.run.misses) {
    const std::string variant = visible_text(miss.variant);
    if (out.empty() || out.back().variant != variant) {
      out.push_back({variant, {}});
      out.back().table.columns = {{l("task"), Align::kLeft},      {l("length")},
                                  {l("depth_percent")},           {l("sample")},
                                  {l("expected"), Align::kLeft},  {l("got"), Align::kLeft},
                                  {l("prompt_end"), Align::kLeft}};
    }
    out.back().table.rows.push_back({{miss.task},
                                     {format_tokens(miss.length_tokens)},
                                     {miss.depth_bp ? format_depth(*miss.depth_bp) : std::string(kNothing)},
                                     {std::to_string(miss.index)},
                                     {visible_text(miss.expected)},
                                     {visible_text(miss.reply)},
                                     {"…" + visible_text(miss.prompt_tail)}});
  }
  return out;
}

MissChoices miss_choices(const TableSource& source) {
  MissChoices out;
  std::set<std::string> tasks;
  std::set<std::int64_t> lengths;
  for (const MissGroup& group : miss_groups(source)) out.variants.push_back(group.variant);
  for (const store::MissRow& miss : source.run.misses) {
    tasks.insert(miss.task);
    lengths.insert(miss.length_tokens);
  }
  out.tasks.assign(tasks.begin(), tasks.end());
  for (const std::int64_t length : lengths) out.lengths.push_back(format_tokens(length));
  return out;
}

std::string misses_lead(const TableSource& source) {
  const std::string lead =
      replace_all(source.labels("misses_caption"), "{n}", std::to_string(source.run.misses_per_cell));
  return source.run.misses_thinned ? lead + " " + source.labels("misses_thinned") : lead;
}

}  // namespace fathom::reports
