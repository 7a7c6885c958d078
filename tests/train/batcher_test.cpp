// Rows of a training batch: exact lengths, the wording of the synthetic pack, answers where the loss is.

#include "harness/train/batcher.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace {

using fathom::RngKey;
using fathom::RngStream;
using fathom::text::WordTokenizer;
using fathom::train::Batch;
using fathom::train::Batcher;
using fathom::train::BatchPlan;
using fathom::train::RowTask;

const WordTokenizer& words() {
  static const WordTokenizer kWords({}, false);
  return kWords;
}

std::vector<std::string> row_words(const Batch& batch, const BatchPlan& plan, std::int64_t row) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < plan.length_tokens; ++i) {
    out.push_back(
        words().piece(static_cast<fathom::TokenId>(batch.ids[static_cast<std::size_t>(row * plan.length_tokens + i)])));
  }
  for (std::string& word : out) {
    const std::size_t begin = word.find_first_not_of(' ');
    word = begin == std::string::npos ? "" : word.substr(begin);
  }
  return out;
}

BatchPlan niah_plan(std::int64_t length, std::int64_t needles, std::int64_t queries) {
  BatchPlan plan;
  plan.length_tokens = length;
  plan.n_rows = 40;
  plan.n_needles = needles;
  plan.n_queries = queries;
  return plan;
}

Batch make_batch(const BatchPlan& plan, std::int64_t seed, bool bos = false) {
  RngStream rng(RngKey("batcher-test").child(seed));
  return Batcher(words(), bos).make(plan, rng);
}

/// Every answer is the word that really follows, which makes the batch a language modelling problem with a mask.
void check_answers_follow(const Batch& batch) {
  for (const auto& answer : batch.answers)
    CHECK(batch.ids[static_cast<std::size_t>(answer.place + 1)] == answer.target);
}

}  // namespace

TEST_CASE("batcher: a needle row states each key once, asks for stated keys and answers with their values",
          "[train][batcher]") {
  const BatchPlan plan = niah_plan(96, 5, 7);
  const Batch batch = make_batch(plan, 1);
  REQUIRE(batch.ids.size() == 96U * 40U);
  CHECK(batch.answers.size() == 40U * 7U);
  CHECK(batch.n_copy_answers == 0);
  check_answers_follow(batch);
  for (std::int64_t r = 0; r < plan.n_rows; ++r) {
    const auto row = row_words(batch, plan, r);
    std::map<std::string, std::string> stated;
    std::int64_t n_asked = 0;
    for (std::size_t i = 0; i + 2 < row.size(); ++i) {
      if (row[i] == "note") CHECK(stated.emplace(row[i + 1], row[i + 2]).second);
      if (row[i] == "ask") {
        CHECK(stated.at(row[i + 1]) == row[i + 2]);
        ++n_asked;
      }
    }
    CHECK(stated.size() == 5);
    CHECK(n_asked == 7);
    CHECK(row[96 - 21] == "ask");  // questions stand at the end
  }
}

TEST_CASE("batcher: filler comes in sentences of six words and a stop", "[train][batcher]") {
  const BatchPlan plan = niah_plan(128, 2, 1);
  const Batch batch = make_batch(plan, 2);
  bool seen_boundary_needle = false, seen_inner_needle = false;
  for (std::int64_t r = 0; r < plan.n_rows; ++r) {
    const auto row = row_words(batch, plan, r);
    std::vector<std::string> filler;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] == "note" || row[i] == "ask") {
        if (row[i] == "note") (i == 0 || row[i - 1] == "." ? seen_boundary_needle : seen_inner_needle) = true;
        i += 2;
      } else {
        filler.push_back(row[i]);
      }
    }
    CHECK(filler.size() == 128 - 9);
    std::size_t last_stop = 0;
    bool any_stop = false;
    for (std::size_t i = 0; i < filler.size(); ++i) {
      if (filler[i] != ".") {
        CHECK(filler[i][0] == 'f');
        continue;
      }
      if (any_stop) CHECK(i - last_stop == 7);
      last_stop = i;
      any_stop = true;
    }
    CHECK(any_stop);
  }
  CHECK(seen_boundary_needle);
  CHECK(seen_inner_needle);
}

TEST_CASE("batcher: chains are answered by their names in order", "[train][batcher]") {
  BatchPlan plan;
  plan.task = RowTask::kVariableTracking;
  plan.length_tokens = 120;
  plan.n_rows = 30;
  plan.n_chains = 3;
  plan.n_hops = 5;
  const Batch batch = make_batch(plan, 3);
  CHECK(batch.answers.size() == 30U * 15U);
  check_answers_follow(batch);
  for (std::int64_t r = 0; r < plan.n_rows; ++r) {
    const auto row = row_words(batch, plan, r);
    std::map<std::string, std::string> next;  // what a name or value was assigned to
    std::set<std::string> names;
    for (std::size_t i = 0; i + 2 < row.size(); ++i) {
      if (row[i] != "set") continue;
      CHECK(next.emplace(row[i + 2], row[i + 1]).second);
      CHECK(names.insert(row[i + 1]).second);
      CHECK((row[i + 2][0] == 'v' || names.count(row[i + 2]) == 1));  // a name is set before it is used
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] != "ask") continue;
      std::string at = row[i + 1];
      CHECK(at[0] == 'v');
      for (std::size_t hop = 1; hop <= 5; ++hop) CHECK((at = next.at(at)) == row[i + 1 + hop]);
    }
  }
}

TEST_CASE("batcher: key-value rows are pairs behind one note", "[train][batcher]") {
  const Batcher batcher(words(), false);
  BatchPlan plan;
  plan.task = RowTask::kKeyValue;
  plan.length_tokens = 64;
  plan.n_rows = 10;
  plan.n_queries = 4;
  plan.n_needles = batcher.fitting_pairs(64, 4);
  CHECK(plan.n_needles == (64 - 1 - 12) / 2);
  const Batch batch = make_batch(plan, 4);
  check_answers_follow(batch);
  for (std::int64_t r = 0; r < plan.n_rows; ++r) {
    const auto row = row_words(batch, plan, r);
    std::size_t note = 0;
    while (row[note] != "note") ++note;
    std::map<std::string, std::string> pairs;
    for (std::size_t i = note + 1; i + 1 < 64 - 12; i += 2) CHECK(pairs.emplace(row[i], row[i + 1]).second);
    CHECK(pairs.size() == static_cast<std::size_t>(plan.n_needles));
    for (std::size_t i = 64 - 12; i < 64; i += 3) CHECK(pairs.at(row[i + 1]) == row[i + 2]);
  }
}

TEST_CASE("batcher: copy rows repeat random words with one period for the whole batch", "[train][batcher]") {
  BatchPlan plan = niah_plan(64, 2, 4);
  plan.n_copy_rows = 20;
  for (const bool bos : {false, true}) {
    const Batch batch = make_batch(plan, 5, bos);
    check_answers_follow(batch);
    const std::int64_t begin = bos ? 1 : 0;
    std::set<std::int64_t> periods;
    for (std::int64_t r = 0; r < 20; ++r) {
      const auto row = row_words(batch, plan, r);
      if (bos) CHECK(row[0] == "<bos>");
      std::int64_t period = 1;
      const auto repeats = [&] {
        for (std::int64_t i = begin + period; i < 64; ++i) {
          if (row[static_cast<std::size_t>(i)] != row[static_cast<std::size_t>(i - period)]) return false;
        }
        return true;
      };
      while (!repeats()) ++period;
      periods.insert(period);
    }
    REQUIRE(periods.size() == 1);
    CHECK(*periods.begin() >= (64 - begin) / 8);
    CHECK(*periods.begin() <= (64 - begin) / 2);
    CHECK(batch.n_copy_answers == 20 * (64 - begin - *periods.begin() - 1));
    CHECK(batch.answers.size() == static_cast<std::size_t>(batch.n_copy_answers) + 20U * 4U);
  }
}

TEST_CASE("batcher: the same stream gives the same batch, another stream another", "[train][batcher]") {
  const BatchPlan plan = niah_plan(64, 3, 6);
  CHECK(make_batch(plan, 6).ids == make_batch(plan, 6).ids);
  CHECK(make_batch(plan, 6).ids != make_batch(plan, 7).ids);
}

TEST_CASE("batcher: counts that fit leave room for filler, and needles that do not fit are refused",
          "[train][batcher]") {
  const Batcher batcher(words(), false);
  CHECK(batcher.fitting_queries(64, 4, 16) == 13);
  CHECK(batcher.fitting_queries(256, 4, 16) == 16);
  CHECK(batcher.fitting_queries(16, 5, 16) == 1);
  CHECK(batcher.fitting_chains(64, 5, 3) == 2);
  CHECK(batcher.fitting_chains(256, 5, 3) == 3);
  CHECK(batcher.fitting_pairs(4096, 16) == 200);  // every key once
  std::string message;
  try {
    make_batch(niah_plan(16, 6, 2), 1);
  } catch (const fathom::InvariantError& error) {
    message = error.what();
  }
  CHECK(message.find("do not fit its length") != std::string::npos);
}
