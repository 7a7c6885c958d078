#include "harness/train/batcher.h"

#include <algorithm>

#include "harness/core/error.h"

namespace fathom::train {
namespace {

constexpr std::int64_t kSentenceWords = 7;  // six fillers and the stop word
constexpr std::int64_t kNeedleWords = 3;    // note k v; set k v
constexpr std::int64_t kQueryWords = 3;     // ask k v

/// Where `count` needles go: numbers of filler words in front of each, ascending.
std::vector<std::int64_t> needle_gaps(std::int64_t n_filler, std::int64_t phase, std::int64_t count, RngStream& rng) {
  std::vector<std::int64_t> gaps;
  // Half of the rows place needles as the evaluation does, between sentences and no two in one place; the others
  // anywhere, so that nothing but the needle's own words can be relied on.
  const std::int64_t first_boundary = kSentenceWords - phase;
  const std::int64_t n_boundaries = n_filler < first_boundary ? 1 : 2 + (n_filler - first_boundary) / kSentenceWords;
  if (rng.uniform_index(2) == 0 && n_boundaries >= count) {
    for (const std::uint64_t pick :
         rng.sample_without_replacement(static_cast<std::uint64_t>(n_boundaries), static_cast<std::uint64_t>(count))) {
      gaps.push_back(pick == 0 ? 0 : first_boundary + (static_cast<std::int64_t>(pick) - 1) * kSentenceWords);
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) gaps.push_back(rng.uniform_int(0, n_filler));
  }
  std::sort(gaps.begin(), gaps.end());
  return gaps;
}

}  // namespace

Batcher::Batcher(const text::WordTokenizer& words, bool bos)
    : bos_(text::WordTokenizer::kBos),
      stop_(words.id(".")),
      note_(words.id("note")),
      ask_(words.id("ask")),
      set_(words.id("set")),
      starts_with_bos_(bos),
      keys_{words.pool_begin('k'), words.pool_size('k')},
      values_{words.pool_begin('v'), words.pool_size('v')},
      fillers_{words.pool_begin('f'), words.pool_size('f')},
      // The pools k, v, f and e stand one after the other.
      copied_{words.pool_begin('k'),
              words.pool_size('k') + words.pool_size('v') + words.pool_size('f') + words.pool_size('e')} {}

std::int64_t Batcher::fitting_queries(std::int64_t length_tokens, std::int64_t n_needles, std::int64_t most) const {
  const std::int64_t room = length_tokens - (starts_with_bos_ ? 1 : 0) - kNeedleWords * n_needles;
  return std::max<std::int64_t>(1, std::min(most, room / (kQueryWords + 1)));
}

std::int64_t Batcher::fitting_chains(std::int64_t length_tokens, std::int64_t n_hops, std::int64_t most) const {
  const std::int64_t room = length_tokens - (starts_with_bos_ ? 1 : 0) - 4;
  return std::max<std::int64_t>(1, std::min(most, room / ((kNeedleWords + 1) * n_hops + 2)));
}

std::int64_t Batcher::fitting_pairs(std::int64_t length_tokens, std::int64_t n_queries) const {
  const std::int64_t room = length_tokens - (starts_with_bos_ ? 1 : 0) - 1 - kQueryWords * n_queries;
  return std::max<std::int64_t>(1, std::min(keys_.size, room / 2));
}

std::int64_t Batcher::draw(const Pool& pool, RngStream& rng) const {
  return pool.begin + static_cast<std::int64_t>(rng.uniform_index(static_cast<std::uint64_t>(pool.size)));
}

Batcher::Words Batcher::draw_different(const Pool& pool, std::int64_t count, RngStream& rng) const {
  Words out;
  for (const std::uint64_t pick :
       rng.sample_without_replacement(static_cast<std::uint64_t>(pool.size), static_cast<std::uint64_t>(count))) {
    out.push_back(pool.begin + static_cast<std::int64_t>(pick));
  }
  return out;
}

void Batcher::append_prose(std::int64_t n_words, const std::vector<Words>& needles, RngStream& rng, Words& row) const {
  std::int64_t needle_words = 0;
  for (const Words& needle : needles) needle_words += static_cast<std::int64_t>(needle.size());
  const std::int64_t n_filler = n_words - needle_words;
  FATHOM_CHECK(n_filler >= 0, "the needles of a training row do not fit its length");
  const std::int64_t phase =
      static_cast<std::int64_t>(rng.uniform_index(kSentenceWords));  // of the sentence that the row cuts into
  const std::vector<std::int64_t> gaps = needle_gaps(n_filler, phase, static_cast<std::int64_t>(needles.size()), rng);
  std::size_t next = 0;
  for (std::int64_t i = 0; i <= n_filler; ++i) {
    while (next < needles.size() && gaps[next] == i) {
      row.insert(row.end(), needles[next].begin(), needles[next].end());
      ++next;
    }
    if (i < n_filler) row.push_back((i + phase) % kSentenceWords == kSentenceWords - 1 ? stop_ : draw(fillers_, rng));
  }
}

void Batcher::append_queries(const BatchPlan& plan, const Words& keys, const Words& values, RngStream& rng, Words& row,
                             std::vector<Answer>& answers) const {
  for (std::int64_t i = 0; i < plan.n_queries; ++i) {
    // With replacement: without it the last queries are answered by elimination.
    const auto pick = static_cast<std::size_t>(rng.uniform_index(keys.size()));
    row.insert(row.end(), {ask_, keys[pick]});
    answers.push_back({static_cast<std::int64_t>(row.size()) - 1, values[pick]});
    row.push_back(values[pick]);
  }
}

void Batcher::niah_row(const BatchPlan& plan, RngStream& rng, Words& row, std::vector<Answer>& answers) const {
  const Words keys = draw_different(keys_, plan.n_needles, rng);
  Words values;
  std::vector<Words> needles;
  for (const std::int64_t key : keys) {
    values.push_back(draw(values_, rng));
    needles.push_back({note_, key, values.back()});
  }
  const auto begin = static_cast<std::int64_t>(row.size());
  append_prose(plan.length_tokens - begin - kQueryWords * plan.n_queries, needles, rng, row);
  append_queries(plan, keys, values, rng, row, answers);
}

void Batcher::key_value_row(const BatchPlan& plan, RngStream& rng, Words& row, std::vector<Answer>& answers) const {
  const Words keys = draw_different(keys_, plan.n_needles, rng);
  Words values;
  // What the pairs leave over goes in front as filler: a row has exactly the batch's length.
  const std::int64_t spare = plan.length_tokens - static_cast<std::int64_t>(row.size()) - 1 - 2 * plan.n_needles -
                             kQueryWords * plan.n_queries;
  append_prose(spare, {}, rng, row);
  row.push_back(note_);
  for (const std::int64_t key : keys) {
    values.push_back(draw(values_, rng));
    row.insert(row.end(), {key, values.back()});
  }
  append_queries(plan, keys, values, rng, row, answers);
}

void Batcher::variable_tracking_row(const BatchPlan& plan, RngStream& rng, Words& row,
                                    std::vector<Answer>& answers) const {
  const Words names = draw_different(keys_, plan.n_chains * plan.n_hops, rng);
  const Words values = draw_different(values_, plan.n_chains, rng);
  std::vector<std::int64_t> order;  // chain of each line: interleaved, and in order within a chain
  for (std::int64_t chain = 0; chain < plan.n_chains; ++chain)
    order.insert(order.end(), static_cast<std::size_t>(plan.n_hops), chain);
  rng.shuffle(order);
  std::vector<std::int64_t> done(static_cast<std::size_t>(plan.n_chains), 0);
  std::vector<Words> lines;
  const auto name = [&](std::int64_t chain, std::int64_t hop) {
    return names[static_cast<std::size_t>(chain * plan.n_hops + hop)];
  };
  for (const std::int64_t chain : order) {
    const std::int64_t hop = done[static_cast<std::size_t>(chain)]++;
    lines.push_back(
        {set_, name(chain, hop), hop == 0 ? values[static_cast<std::size_t>(chain)] : name(chain, hop - 1)});
  }
  const auto begin = static_cast<std::int64_t>(row.size());
  append_prose(plan.length_tokens - begin - plan.n_chains * (2 + plan.n_hops), lines, rng, row);
  for (std::int64_t chain = 0; chain < plan.n_chains; ++chain) {
    row.insert(row.end(), {ask_, values[static_cast<std::size_t>(chain)]});
    for (std::int64_t hop = 0; hop < plan.n_hops; ++hop) {
      answers.push_back({static_cast<std::int64_t>(row.size()) - 1, name(chain, hop)});
      row.push_back(name(chain, hop));
    }
  }
}

void Batcher::copy_row(const BatchPlan& plan, std::int64_t period, RngStream& rng, Words& row,
                       std::vector<Answer>& answers) const {
  const auto begin = static_cast<std::int64_t>(row.size());
  for (std::int64_t i = begin; i < plan.length_tokens; ++i) {
    const std::int64_t word = i < begin + period ? draw(copied_, rng) : row[static_cast<std::size_t>(i - period)];
    if (i > begin + period) answers.push_back({i - 1, word});
    row.push_back(word);
  }
}

Batch Batcher::make(const BatchPlan& plan, RngStream& rng) const {
  Batch batch;
  batch.ids.reserve(static_cast<std::size_t>(plan.n_rows * plan.length_tokens));
  // One period for the whole batch: with a period per row only one training in three left the plateau.
  const std::int64_t body = plan.length_tokens - (starts_with_bos_ ? 1 : 0);
  const std::int64_t period = rng.uniform_int(std::max<std::int64_t>(2, body / 8), std::max<std::int64_t>(2, body / 2));
  for (std::int64_t r = 0; r < plan.n_rows; ++r) {
    Words row;
    row.reserve(static_cast<std::size_t>(plan.length_tokens));
    if (starts_with_bos_) row.push_back(bos_);
    std::vector<Answer> answers;
    if (r < plan.n_copy_rows) {
      copy_row(plan, period, rng, row, answers);
    } else {
      switch (plan.task) {
        case RowTask::kNiah:
          niah_row(plan, rng, row, answers);
          break;
        case RowTask::kVariableTracking:
          variable_tracking_row(plan, rng, row, answers);
          break;
        case RowTask::kKeyValue:
          key_value_row(plan, rng, row, answers);
          break;
      }
    }
    FATHOM_CHECK(static_cast<std::int64_t>(row.size()) == plan.length_tokens, "a training row has the wrong length");
    for (const Answer& answer : answers)
      batch.answers.push_back({r * plan.length_tokens + answer.place, answer.target});
    if (r < plan.n_copy_rows) batch.n_copy_answers = static_cast<std::int64_t>(batch.answers.size());
    batch.ids.insert(batch.ids.end(), row.begin(), row.end());
  }
  return batch;
}

}  // namespace fathom::train
