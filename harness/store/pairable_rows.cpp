#include "harness/store/pairable_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::store {
namespace {

/// Bytes of the prompt's end that a miss shows.
constexpr std::size_t kPromptTailBytes = 240;

/// The last bytes of a text, beginning with a whole UTF-8 character.
std::string text_tail(std::string_view text) {
  if (text.size() <= kPromptTailBytes) return std::string(text);
  std::size_t begin = text.size() - kPromptTailBytes;
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) ++begin;
  return std::string(text.substr(begin));
}

std::optional<std::uint64_t> hex_digits(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && (c < 'a' || c > 'f')) return std::nullopt;
    value = value * 16 + static_cast<std::uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  return value;
}

Hash128 parse_address(std::string_view text) {
  const auto high = text.size() == 32 ? hex_digits(text.substr(0, 16)) : std::nullopt;
  const auto low = text.size() == 32 ? hex_digits(text.substr(16)) : std::nullopt;
  if (!high || !low) {
    throw StoreError(fmt::format("store: sample address '{}' is not 32 hexadecimal digits; the row is damaged", text));
  }
  return {*high, *low};
}

/// Token ids are stored as little-endian 32-bit integers.
TokenIds parse_token_ids(std::string_view bytes) {
  TokenIds ids(bytes.size() / 4);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::uint32_t value = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[4 * i + k])) << (8 * k);
    }
    ids[i] = static_cast<TokenId>(value);
  }
  return ids;
}

[[noreturn]] void throw_no_result(const Database& database, std::int64_t result_id) {
  throw StoreError(fmt::format("store: {} holds no texts of result {}; the row was pruned or is damaged",
                               database.path(), result_id));
}

}  // namespace

std::vector<PairableRow> read_pairable_rows(Database& database, const PairableQuery& query) {
  Statement select(database,
                   "SELECT v.ordinal, s.task_id, s.length_tokens, s.depth_bp, s.sample_index, r.status, r.result_id, "
                   "(SELECT value FROM score WHERE score.result_id = r.result_id AND scorer_id IN "
                   "(SELECT scorer_id FROM scorer WHERE name = iif(?2 = '', t.metric, ?2))), s.address "
                   "FROM variant v CROSS JOIN result r INDEXED BY result_by_variant ON r.variant_id = v.variant_id "
                   "CROSS JOIN sample s ON s.sample_id = r.sample_id CROSS JOIN task t ON t.task_id = s.task_id "
                   "WHERE v.run_id = ?1 AND s.control = ''");
  select.bind(0, query.run_id).bind(1, query.scorer);
  std::vector<PairableRow> out;
  while (select.step()) {
    PairableRow row;
    row.outcome.variant = static_cast<std::int32_t>(select.integer(0));
    row.outcome.task = query.task_of_id.at(select.integer(1));
    row.outcome.length_tokens = select.integer(2);
    if (const auto depth = select.optional_integer(3)) row.outcome.depth_bp = static_cast<std::int32_t>(*depth);
    row.outcome.index = select.integer(4);
    row.outcome.status = eval::parse_sample_status(select.text(5));
    row.result_id = select.integer(6);
    row.outcome.value = select.optional_real(7);
    row.address = parse_address(select.text(8));
    out.push_back(row);
  }
  const auto order = [](const PairableRow& row) {
    const OutcomeRow& o = row.outcome;
    return std::make_tuple(o.variant, o.task, o.length_tokens, o.depth_bp, o.index, row.result_id);
  };
  std::sort(out.begin(), out.end(), [&](const PairableRow& a, const PairableRow& b) { return order(a) < order(b); });
  return out;
}

AnswerText read_answer(Database& database, std::int64_t result_id) {
  Statement& select = database.prepared(
      "SELECT p.text, c.reply_text, s.sample_id FROM result r JOIN sample s USING (sample_id) "
      "JOIN prompt p USING (prompt_id) JOIN completion c ON c.result_id = r.result_id WHERE r.result_id = ?");
  select.bind(0, result_id);
  if (!select.step()) throw_no_result(database, result_id);
  AnswerText out;
  out.prompt_tail = text_tail(select.text(0));
  out.reply = std::string(select.text(1));
  Statement& references = database.prepared("SELECT text FROM reference WHERE sample_id = ? ORDER BY ordinal");
  references.bind(0, select.integer(2));
  std::vector<std::string> expected;
  while (references.step()) expected.emplace_back(references.text(0));
  references.reset();
  select.reset();
  out.expected = join(expected, ", ");
  return out;
}

PromptText read_prompt(Database& database, std::int64_t result_id) {
  Statement& select = database.prepared(
      "SELECT p.text, p.ids FROM result r JOIN sample s USING (sample_id) JOIN prompt p USING (prompt_id) "
      "WHERE r.result_id = ?");
  select.bind(0, result_id);
  if (!select.step()) throw_no_result(database, result_id);
  PromptText out{std::string(select.text(0)), parse_token_ids(select.text(1))};
  select.reset();
  return out;
}

std::map<std::string, std::vector<std::int64_t>> read_scorer_versions(Database& database, std::int64_t run_id) {
  // Asks for one score of each scorer instead of counting all.
  Statement select(
      database,
      "SELECT name, version FROM scorer WHERE EXISTS (SELECT 1 FROM variant JOIN result USING (variant_id) "
      "JOIN score USING (result_id) WHERE run_id = ? AND score.scorer_id = scorer.scorer_id) ORDER BY name, version");
  select.bind(0, run_id);
  std::map<std::string, std::vector<std::int64_t>> out;
  while (select.step()) out[std::string(select.text(0))].push_back(select.integer(1));
  return out;
}

}  // namespace fathom::store
