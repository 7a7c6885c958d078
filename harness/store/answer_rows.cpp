#include "harness/store/answer_rows.h"

#include <fmt/format.h>

#include <string_view>

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

bool same_miss_cell(const OutcomeRow& a, const OutcomeRow& b) {
  return a.variant == b.variant && a.task == b.task && a.length_tokens == b.length_tokens && a.depth_bp == b.depth_bp;
}

}  // namespace

std::vector<MissRow> read_misses(Database& database, const std::vector<OutcomeRow>& outcomes, const MissQuery& query) {
  std::vector<MissRow> out;
  const OutcomeRow* cell = nullptr;  // a row of the cell being counted
  int n_in_cell = 0;
  for (const OutcomeRow& row : outcomes) {
    if (row.status != eval::SampleStatus::kOk || !row.value || *row.value >= 1) continue;
    if (cell == nullptr || !same_miss_cell(*cell, row)) {
      cell = &row;
      n_in_cell = 0;
    }
    if (++n_in_cell > query.max_per_cell) continue;
    const TaskInfo& task = query.tasks[static_cast<std::size_t>(row.task)];
    MissRow miss;
    miss.variant = query.variants[static_cast<std::size_t>(row.variant)].name;
    miss.task = task.variant == "balanced" ? task.name : task.name + "@" + task.variant;
    miss.length_tokens = row.length_tokens;
    miss.depth_bp = row.depth_bp;
    miss.index = row.index;
    AnswerText text = read_answer(database, row.result_id);
    miss.prompt_tail = std::move(text.prompt_tail);
    miss.expected = std::move(text.expected);
    miss.reply = std::move(text.reply);
    out.push_back(std::move(miss));
  }
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
