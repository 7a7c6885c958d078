#include "harness/eval/evaluator.h"

#include <algorithm>
#include <map>

#include "harness/core/error.h"
#include "harness/text/word_tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/fake_language_model.h"

using namespace fathom;  // NOLINT: test file

namespace {

/// `note kI vI` once, then `ask kI`; answers vI. Needs 6 tokens and one to answer.
class ToyTask : public task::Task {
 public:
  explicit ToyTask(const text::PromptAssembler& assembler) : assembler_(assembler) {}

  task::Sample make_sample(const task::TaskCell& cell, std::int64_t index, std::uint64_t seed) const override {
    if (cell.length_tokens < kSmallest) throw TooShortError("toy: too short", kSmallest);
    if (index == long_index) throw TooShortError("toy: this one is longer", 99);
    task::Sample sample;
    sample.task = "toy";
    sample.index = index;
    sample.seed = seed;
    sample.length_tokens = cell.length_tokens;
    sample.depth_bp = cell.depth_bp;
    sample.references = {"v" + std::to_string(index)};
    const std::string number = std::to_string(index);
    const auto assembled = assembler_.assemble("", "note k" + number + " v" + number + " . ask k" + number, "");
    sample.prompt_text = assembled.text;
    sample.prompt_ids = assembled.ids;
    sample.answer_text = " v" + number;
    sample.candidates = {sample.answer_text, " v199"};
    sample.generation_budget = 1;
    sample.whole_words = true;
    sample.control = cell.control;
    sample.key =
        "toy|" + std::to_string(cell.length_tokens) + "|" + std::to_string(cell.depth_bp.value_or(-1)) + "|" + number;
    sample.key += task::to_string(cell.control);
    sample.address = sample.key;
    return sample;
  }
  std::int64_t smallest_length_tokens(std::uint64_t) const override { return kSmallest; }
  bool sweeps_depth() const override { return true; }
  double in_text_guess(std::int64_t) const override { return 1; }
  double blind_guess() const override { return 0.005; }
  std::string canonical_options() const override { return ""; }

  std::vector<task::Control> controls() const override { return {task::Control::kClosedBook}; }

  static constexpr std::int64_t kSmallest = 7;
  std::int64_t long_index = -1;  ///< does not fit

 private:
  const text::PromptAssembler& assembler_;
};

struct Fixture {
  text::WordTokenizer tokenizer{text::VocabularySpec{}, false};
  text::PromptAssembler assembler{tokenizer, text::PromptStyle::kBase, std::nullopt};
  ToyTask task{assembler};
  eval::SweepPlan plan;
  eval::EvalOptions options;
  test::MemorySink sink;
  test::FakeLanguageModel model{[this](const lm::Request& request) { return oracle(request); }};
  test::FakeModelProvider provider{model};

  Fixture() {
    plan.tasks = {{{"toy", task::TaskVariant::kBalanced}, &task, {4, 8, 16}, {0, 5000, 10000}}};
    plan.n_samples = 4;
    plan.seed = 1;
    plan.batch_tokens = 50;
    options.variant = "fake";
  }

  /// The value word has the same number as the key asked for.
  lm::Completion oracle(const lm::Request& request) const {
    const std::string word = tokenizer.piece(request.prompt.back());
    lm::Completion completion;
    completion.ids = {tokenizer.id("v" + word.substr(1))};
    completion.finish = lm::FinishReason::kBudget;
    for (const lm::Continuation& continuation : request.continuations) {
      const bool right = continuation.ids.front() == completion.ids.front();
      completion.continuations.push_back({{right ? -0.1 : -3.0}, {right ? 1 : 2}});
    }
    completion.seconds = 0.5;
    return completion;
  }

  eval::EvalSummary run() { return eval::evaluate(plan, provider, assembler, sink.finished_keys(), sink, options); }
};

double score_of(const eval::SampleRecord& row, const std::string& scorer) {
  for (const eval::ScoreValue& score : row.scores) {
    if (score.scorer == scorer) return score.value.value();
  }
  FAIL("no scorer " << scorer);
  return 0;
}

}  // namespace

TEST_CASE("plan: a sample's depths are never split and short lengths are refused with the number", "[eval][plan]") {
  const Fixture fixture;
  const eval::WorkList work = eval::make_work_list(fixture.plan);
  REQUIRE(work.refused.size() == 1);
  CHECK(work.refused[0].reason == "toy: length 4 is too short; smallest feasible length here is 7");
  // 8 tokens x 3 depths: two indices fit into 50 tokens; 16 x 3: one.
  std::vector<std::size_t> sizes;
  for (const eval::PlannedBatch& batch : work.batches) sizes.push_back(batch.samples.size());
  CHECK(sizes == std::vector<std::size_t>{6, 6, 3, 3, 3, 3});
  CHECK(work.n_samples == 24);
  CHECK(work.n_cells == 6);
  CHECK(work.prompt_tokens == 12 * 8 + 12 * 16);
}

TEST_CASE("plan: controls count with the tokens they have, not with their length", "[eval][plan]") {
  Fixture fixture;
  fixture.plan.controls = true;
  fixture.plan.control_samples = 7;
  // "note k0 v0 . ask k0", at each of two lengths
  CHECK(eval::make_work_list(fixture.plan).prompt_tokens == 12 * 8 + 12 * 16 + 2 * 7 * 6);
  fixture.task.long_index = 0;  // the first one does not fit: the length itself
  CHECK(eval::make_work_list(fixture.plan).prompt_tokens == 12 * 8 + 12 * 16 + 7 * 8 + 7 * 16);
}

TEST_CASE("evaluate: an oracle scores 1 on every sample, graded scores included", "[eval]") {
  Fixture fixture;
  const eval::EvalSummary summary = fixture.run();
  CHECK(summary.samples_done == 24);
  CHECK(summary.samples_failed == 0);
  REQUIRE(fixture.sink.rows.size() == 24);
  CHECK(fixture.sink.cells.size() == 3);
  for (const eval::SampleRecord& row : fixture.sink.rows) {
    CHECK(row.status == eval::SampleStatus::kOk);
    CHECK(score_of(row, "all") == 1);
    CHECK(score_of(row, "rank") == 1);
  }
}

TEST_CASE("evaluate: finished batches are not asked again, a partly finished one is asked whole", "[eval][resume]") {
  Fixture undisturbed;
  undisturbed.run();
  Fixture resumed;
  resumed.run();
  resumed.sink.rows.resize(8);  // the first batch of six and two rows of the second
  resumed.model.batch_sizes.clear();
  const eval::EvalSummary summary = resumed.run();
  CHECK(summary.samples_skipped == 6);
  CHECK(summary.samples_done == 18);
  CHECK(resumed.model.batch_sizes == std::vector<std::size_t>{6, 3, 3, 3, 3});
}

TEST_CASE("evaluate: asked to stop, it throws after the batch in flight, which is stored", "[eval][resume]") {
  struct StopAfterOne : StopToken {
    bool stop_requested() const override { return asked; }
    bool asked = false;
  };
  Fixture fixture;
  StopAfterOne stop;
  fixture.options.stop = &stop;
  fixture.sink.after_batch = [&stop] { stop.asked = true; };
  CHECK_THROWS_AS(fixture.run(), Interrupted);
  CHECK(fixture.sink.rows.size() == 6);
}

TEST_CASE("evaluate: a failed request becomes a row with its reason, not a score of 0", "[eval][errors]") {
  Fixture fixture;
  test::FakeLanguageModel failing([](const lm::Request&) {
    lm::Completion completion;
    completion.error = "no memory for 8 tokens";
    completion.out_of_memory = true;
    return completion;
  });
  test::FakeModelProvider provider(failing);
  const eval::EvalSummary summary =
      eval::evaluate(fixture.plan, provider, fixture.assembler, {}, fixture.sink, fixture.options);
  CHECK(summary.samples_failed == 24);
  for (const eval::SampleRecord& row : fixture.sink.rows) {
    CHECK(row.status == eval::SampleStatus::kOutOfMemory);
    CHECK(row.status_detail == "no memory for 8 tokens");
    CHECK(row.scores.empty());
  }
}

TEST_CASE("evaluate: lengths beyond a position table are stored as no_position", "[eval][errors]") {
  Fixture fixture;
  fixture.model.position_limit = 8;
  const eval::EvalSummary summary = fixture.run();
  CHECK(summary.samples_failed == 0);
  const auto without =
      std::count_if(fixture.sink.rows.begin(), fixture.sink.rows.end(),
                    [](const eval::SampleRecord& row) { return row.status == eval::SampleStatus::kNoPosition; });
  CHECK(without == 12);
}

TEST_CASE("result_key: changes with variant, sample, position, dtype and batch ceiling", "[eval]") {
  eval::SampleRecord row;
  row.variant = "rope";
  row.sample.address = "a";
  const lm::ModelIdentity model{"m", "w", "rope", "cpu", "float32", "k/1", 0};
  const std::string key = eval::result_key(row, model, {16384, true});
  CHECK(key == eval::result_key(row, model, {16384, true}));
  CHECK(key != eval::result_key(row, model, {8192, true}));
  CHECK(key != eval::result_key(row, model, {16384, false}));
  lm::ModelIdentity other = model;
  other.position = "rope yarn";
  CHECK(key != eval::result_key(row, other, {16384, true}));
  other = model;
  other.dtype = "bf16";
  CHECK(key != eval::result_key(row, other, {16384, true}));
  eval::SampleRecord second = row;
  second.sample.address = "b";
  CHECK(key != eval::result_key(second, model, {16384, true}));
  eval::SampleRecord twin = row;
  twin.variant = "rope base";
  CHECK(key != eval::result_key(twin, model, {16384, true}));
}

TEST_CASE("eval: a sample that does not fit is a row with the reason, and no failure", "[eval]") {
  Fixture fixture;
  fixture.task.long_index = 2;
  const eval::EvalSummary summary =
      eval::evaluate(fixture.plan, fixture.provider, fixture.assembler, {}, fixture.sink, fixture.options);
  CHECK(summary.samples_failed == 0);
  std::int64_t refused = 0;
  for (const eval::SampleRecord& row : fixture.sink.rows) {
    if (row.sample.index != 2) {
      CHECK(row.status == eval::SampleStatus::kOk);
      continue;
    }
    ++refused;
    CHECK(row.status == eval::SampleStatus::kTooShort);
    CHECK(row.status_detail == "toy: this one is longer");
    CHECK(row.smallest_length_tokens == 99);
    CHECK(row.scores.empty());
    CHECK(row.sample.task == "toy");
  }
  CHECK(refused == 6);  // two lengths, three depths
}

TEST_CASE("eval: controls are asked as often as wanted per length, without depth, and are named in their rows",
          "[eval]") {
  Fixture fixture;
  fixture.plan.controls = true;
  fixture.plan.control_samples = 7;
  eval::evaluate(fixture.plan, fixture.provider, fixture.assembler, {}, fixture.sink, fixture.options);
  std::map<std::string, std::int64_t> rows;
  for (const eval::SampleRecord& row : fixture.sink.rows) {
    ++rows[row.control];
    if (!row.control.empty()) CHECK(!row.sample.depth_bp);
  }
  CHECK(rows.at("closed_book") == 2 * 7);
  CHECK(rows.at("") == 2 * 3 * 4);
}
