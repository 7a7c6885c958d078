#include "harness/scoring/scorer.h"

namespace fathom::scoring {

const Registry<ScorerEntry>& scorers() {
  static const Registry<ScorerEntry> table("scorer", {
#define FATHOM_SCORER(name) entries::name##_entry(),
#include "harness/scoring/scorers.inc"
#undef FATHOM_SCORER
                                                     });
  return table;
}

}  // namespace fathom::scoring
