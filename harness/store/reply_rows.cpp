#include "harness/store/reply_rows.h"

namespace fathom::store {

std::vector<ReplyRow> read_replies(Database& database, std::int64_t run_id,
                                   const std::map<std::int64_t, std::int32_t>& task_of_id) {
  // The largest unit of a haystack is not stored; the mean one, prompt included, is at least as large as most.
  Statement select(
      database,
      "SELECT v.ordinal, s.task_id, s.length_tokens, count(*), sum(c.reply_tokens = 0 OR trim(c.reply_text) = ''), "
      "sum(c.budget_hit), avg(c.reply_tokens), max(s.slack_tokens), "
      "sum(s.haystack_units > 0 AND s.slack_tokens > 2 * s.prompt_tokens / max(s.haystack_units, 1) + 8) "
      "FROM variant v CROSS JOIN result r INDEXED BY result_by_variant ON r.variant_id = v.variant_id "
      "CROSS JOIN sample s ON s.sample_id = r.sample_id CROSS JOIN completion c ON c.result_id = r.result_id "
      "JOIN task t ON t.task_id = s.task_id WHERE v.run_id = ? AND s.control = '' AND r.status = 'ok' "
      "GROUP BY v.ordinal, t.name, t.variant, t.version, t.metric, s.length_tokens "
      "ORDER BY v.ordinal, t.name, t.variant, t.version, t.metric, s.length_tokens");
  select.bind(0, run_id);
  std::vector<ReplyRow> out;
  while (select.step()) {
    const auto task = task_of_id.find(select.integer(1));
    if (task == task_of_id.end()) continue;
    ReplyRow row;
    row.variant = static_cast<std::int32_t>(select.integer(0));
    row.task = task->second;
    row.length_tokens = select.integer(2);
    row.n_samples = select.integer(3);
    row.n_empty = select.integer(4);
    row.n_budget_hits = select.integer(5);
    row.mean_reply_tokens = select.real(6);
    row.largest_slack_tokens = select.integer(7);
    row.n_fit_drift = select.integer(8);
    out.push_back(row);
  }
  return out;
}

}  // namespace fathom::store
