#include "harness/store/kept_rows.h"

namespace fathom::store {

KeptRun read_kept(Database& database, std::int64_t run_id) {
  KeptRun out;
  Statement effective(database,
                      "SELECT v.name, rule, kind, tokens, first_tested, low_tokens, high_tokens, has_interval, average "
                      "FROM kept_effective JOIN variant v USING (variant_id) WHERE run_id = ? ORDER BY ordinal, rule");
  effective.bind(0, run_id);
  while (effective.step()) {
    KeptEffective one;
    one.variant = std::string(effective.text(0));
    one.rule = std::string(effective.text(1));
    one.kind = std::string(effective.text(2));
    one.tokens = effective.optional_integer(3);
    one.first_tested = effective.optional_integer(4);
    one.low_tokens = effective.optional_integer(5);
    one.high_tokens = effective.optional_integer(6);
    one.has_interval = effective.integer(7) != 0;
    one.average = effective.optional_real(8);
    out.effective.push_back(std::move(one));
  }
  Statement scores(database,
                   "SELECT v.name, task, length_tokens, n_values, mean, low, high FROM kept_score JOIN variant v USING "
                   "(variant_id) WHERE run_id = ? ORDER BY ordinal, task, length_tokens");
  scores.bind(0, run_id);
  while (scores.step()) {
    KeptScore one;
    one.variant = std::string(scores.text(0));
    one.task = std::string(scores.text(1));
    one.length_tokens = scores.integer(2);
    one.n_values = scores.integer(3);
    one.mean = scores.optional_real(4);
    one.low = scores.optional_real(5);
    one.high = scores.optional_real(6);
    out.scores.push_back(std::move(one));
  }
  return out;
}

}  // namespace fathom::store
