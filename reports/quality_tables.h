#pragma once
// What stands beside a score so that it can be trusted: replies that are empty or ran into their budget, prompts that
// do not fill their length, and scores with chance taken out.

#include "reports/tables.h"

namespace fathom::reports {

/// One row a variant, task and length with an empty reply or a budget hit; empty where there are none.
Table reply_table(const TableSource& source);
/// Lengths whose prompts leave more room than two units of their haystack.
Table fit_table(const TableSource& source);
/// (score - guess) / (100 - guess) by variant, task and length; guess = in-text guess where it is below 100, else blind
/// chance. 0 is guessing, 100 everything right.
Table corrected_table(const TableSource& source);

/// Mean over training seeds with its interval, the scatter between seeds and that of samples apart; by setting, task
/// and length.
Table seed_table(const TableSource& source);

}  // namespace fathom::reports
