#pragma once
// Numbers and texts as people read them, the same in every format.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/analysis/effective_context.h"
#include "harness/analysis/run_summary.h"

namespace fathom::reports {

/// What stands where nothing can be said.
inline constexpr std::string_view kNothing = "–";

/// "2048"
std::string format_tokens(std::int64_t tokens);
/// "2K" where the K form is exact, else the integer.
std::string format_tokens_short(std::int64_t tokens);
/// "2K" where it says something new, else nothing.
std::string k_form(std::int64_t tokens);

/// Percent with no more digits than n values support: none below 1000 values, one from there. Never "100" or "0" for a
/// score that is not.
std::string format_percent(double fraction, std::int64_t n_values);
/// "82–95"
std::string format_percent_range(double low, double high, std::int64_t n_values);
/// "50 %" of a depth in 1/100 percent: "0", "50", "12.5".
std::string format_depth(std::int32_t depth_bp);

/// "512", "≥2048", "<128", "–".
std::string format_effective_text(const analysis::EffectiveValue& value);
/// "256–1024"; one value if both ends are equal; "–" without an interval.
std::string format_effective_range(const std::optional<analysis::EffectiveValue>& low,
                                   const std::optional<analysis::EffectiveValue>& high);

/// "1.5×": tokens over the trained length, two significant digits; with ≥ or < in front of censored values.
std::string format_multiple(const analysis::EffectiveValue& value, std::int64_t trained_tokens);
std::string format_seconds(double seconds);
std::string format_bytes(std::int64_t bytes);
/// "1 234 567" with thin spaces is unreadable in plain text: "1,234,567".
std::string format_count(std::int64_t count);

/// Valid UTF-8 without control characters: bytes that are no character become U+FFFD, control characters their visible
/// symbols (line feeds "⏎"), so that replies of a broken model cannot break a page or a terminal.
std::string visible_text(std::string_view bytes);
/// Columns in a terminal: 2 for wide East Asian characters, 0 for combining marks.
int display_width(std::string_view utf8);
/// What tells names apart: without the words that all of them begin with, nor those that all end with; every name keeps
/// a word at least. One name is left as it is.
struct DistinctNames {
  std::vector<std::string> names;
  std::string shared;  ///< the words left out, "…" where the names stand between them; empty = none
};
DistinctNames distinct_names(const std::vector<std::string>& names);
/// Cut to at most `columns`, the last of them "…", then padded with blanks on the right.
std::string fit_left(std::string_view utf8, int columns);
/// As above, padded on the left.
std::string fit_right(std::string_view utf8, int columns);

std::string escape_html(std::string_view text);
/// Inline Markdown: no markup, no HTML, no table separators.
std::string escape_markdown(std::string_view text);

}  // namespace fathom::reports
