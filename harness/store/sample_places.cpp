#include "harness/store/sample_places.h"

#include <fmt/format.h>

#include "harness/core/error.h"

namespace fathom::store {
namespace {

std::optional<std::uint64_t> hex_digits(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && (c < 'a' || c > 'f')) return std::nullopt;
    value = value * 16 + static_cast<std::uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return value;
}

std::optional<Hash128> parse_address(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  const auto high = hex_digits(text.substr(0, 16));
  const auto low = hex_digits(text.substr(16));
  if (!high || !low) return std::nullopt;
  return Hash128{*high, *low};
}

}  // namespace

std::size_t SamplePlaces::number(std::int64_t sample_id) {
  const auto found = number_of_.find(sample_id);
  if (found != number_of_.end()) return found->second;
  Statement& select = database_.prepared(
      "SELECT task_id, length_tokens, depth_bp, sample_index, control <> '', prompt_tokens, slack_tokens, "
      "haystack_units, address FROM sample WHERE sample_id = ?");
  select.bind(0, sample_id);
  if (!select.step()) {
    throw StoreError(fmt::format("store: {} holds a result of sample {}, which is not there; the file is damaged",
                                 database_.path(), sample_id));
  }
  SamplePlace place;
  place.sample_id = sample_id;
  place.task_id = select.integer(0);
  place.length_tokens = select.integer(1);
  if (const auto depth = select.optional_integer(2)) place.depth_bp = static_cast<std::int32_t>(*depth);
  place.index = select.integer(3);
  place.is_control = select.integer(4) != 0;
  place.prompt_tokens = select.integer(5);
  place.slack_tokens = select.integer(6);
  place.haystack_units = select.integer(7);
  place.address = parse_address(select.text(8));
  select.reset();
  number_of_.emplace(sample_id, places_.size());
  places_.push_back(place);
  return places_.size() - 1;
}

std::vector<RunVariant> read_run_variants(Database& database, std::int64_t run_id) {
  Statement select(database, "SELECT variant_id, ordinal FROM variant WHERE run_id = ? ORDER BY ordinal");
  select.bind(0, run_id);
  std::vector<RunVariant> out;
  while (select.step()) out.push_back({select.integer(0), static_cast<std::int32_t>(select.integer(1))});
  return out;
}

}  // namespace fathom::store
