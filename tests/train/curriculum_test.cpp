// When lengths grow, what batches look like, and how the learning rate runs.

#include "harness/train/curriculum.h"

#include <cmath>

#include "harness/core/error.h"
#include "tests/support/catch.h"

namespace {

using fathom::RngKey;
using fathom::RngStream;
using fathom::train::Batcher;
using fathom::train::BatchPlan;
using fathom::train::Curriculum;
using fathom::train::make_recipe;
using fathom::train::Recipe;
using fathom::train::RowTask;
using fathom::train::TrainSpec;

TrainSpec spec_with(const std::string& recipe, const std::string& position = "rope") {
  TrainSpec spec;
  spec.recipe = recipe;
  spec.position = position;
  return spec;
}

BatchPlan frontier_plan(RowTask task = RowTask::kNiah, std::int64_t n_needles = 4) {
  BatchPlan plan;
  plan.task = task;
  plan.n_needles = n_needles;
  plan.at_frontier = true;
  return plan;
}

const Batcher& batcher() {
  static const fathom::text::WordTokenizer kWords({}, false);
  static const Batcher kBatcher(kWords, false);
  return kBatcher;
}

/// Feeds perfect answers until the length grows; returns the number of steps.
std::int64_t steps_to_grow(Curriculum& curriculum, std::int64_t& step) {
  for (std::int64_t n = 1; n < 1000; ++n) {
    if (curriculum.observe(step++, frontier_plan(), {{}, 1.0})) return n;
  }
  return -1;
}

}  // namespace

TEST_CASE("curriculum: lengths grow by half, in eights, up to the context", "[train][curriculum]") {
  TrainSpec spec = spec_with("A");
  CHECK(Curriculum(spec, make_recipe(spec)).ladder() == std::vector<std::int64_t>{64, 96, 144, 216, 256});
  spec.context = 512;
  CHECK(Curriculum(spec, make_recipe(spec)).ladder() == std::vector<std::int64_t>{64, 96, 144, 216, 320, 480, 512});
  spec.context = 48;
  CHECK(Curriculum(spec, make_recipe(spec)).ladder() == std::vector<std::int64_t>{48});
}

TEST_CASE("curriculum: a length counts as mastered by accuracy over enough batches", "[train][curriculum]") {
  const TrainSpec spec = spec_with("A");
  Curriculum curriculum(spec, make_recipe(spec));
  std::int64_t step = 0;
  // The average passes 0.9 at batch 22: 1 - 0.9^22 = 0.902.
  CHECK(steps_to_grow(curriculum, step) == 22);
  CHECK(curriculum.current_length() == 96);
  // The average carries over, so the least number of batches binds now.
  CHECK(steps_to_grow(curriculum, step) == 15);
  CHECK(steps_to_grow(curriculum, step) == 15);
  CHECK(steps_to_grow(curriculum, step) == 15);
  CHECK(curriculum.current_length() == 256);
  CHECK_FALSE(curriculum.state().decay_start);
  CHECK(steps_to_grow(curriculum, step) == 15);
  CHECK(curriculum.state().mastered);
  CHECK(curriculum.state().decay_start == step);
  CHECK_FALSE(curriculum.finished(step + 149));
  CHECK(curriculum.finished(step + 150));
}

TEST_CASE("curriculum: single needles, shorter lengths and the other task do not count", "[train][curriculum]") {
  TrainSpec spec = spec_with("A");
  spec.tasks = {"niah", "variable_tracking"};
  Curriculum curriculum(spec, make_recipe(spec));
  for (std::int64_t step = 0; step < 100; ++step) {
    CHECK_FALSE(curriculum.observe(step, frontier_plan(RowTask::kNiah, 1), {{}, 1.0}));
    BatchPlan shorter = frontier_plan();
    shorter.at_frontier = false;
    CHECK_FALSE(curriculum.observe(step, shorter, {{}, 1.0}));
  }
  for (std::int64_t step = 100; step < 200; ++step) CHECK_FALSE(curriculum.observe(step, frontier_plan(), {{}, 1.0}));
  CHECK(curriculum.worst_accuracy() == 0);  // variable tracking was never seen
}

TEST_CASE("curriculum: copy rows fill half of the batch, an eighth once copied, none after the first length",
          "[train][curriculum]") {
  const TrainSpec spec = spec_with("A");
  Curriculum curriculum(spec, make_recipe(spec));
  RngStream rng(RngKey("curriculum"));
  CHECK(curriculum.plan(batcher(), rng).n_copy_rows == 16);
  for (int i = 0; i < 30; ++i) curriculum.observe(0, frontier_plan(), {1.0, {}});
  CHECK(curriculum.plan(batcher(), rng).n_copy_rows == 4);
  std::int64_t step = 0;
  steps_to_grow(curriculum, step);
  CHECK(curriculum.plan(batcher(), rng).n_copy_rows == 0);
  CHECK(curriculum.mastery().count("copy") == 0);
}

TEST_CASE("curriculum: plans keep the token budget and fit their rows", "[train][curriculum]") {
  for (const char* recipe : {"A", "B"}) {
    TrainSpec spec = spec_with(recipe, "learned");
    spec.tasks = {"niah", "variable_tracking", "kv"};
    Curriculum curriculum(spec, make_recipe(spec));
    fathom::train::CurriculumState state = curriculum.state();
    for (std::int64_t rung = 0; rung < 5; ++rung) {
      state.rung = rung;
      curriculum.set_state(state);
      std::int64_t n_shorter = 0;
      for (std::int64_t i = 0; i < 300; ++i) {
        RngStream rng(RngKey("plans").child(i));
        const BatchPlan plan = curriculum.plan(batcher(), rng);
        CHECK(plan.n_rows == 2048 / plan.length_tokens);
        CHECK(plan.length_tokens <= curriculum.current_length());
        CHECK(plan.first_position >= 0);
        CHECK(plan.first_position + plan.length_tokens <= 256);
        n_shorter += plan.at_frontier ? 0 : 1;
        CHECK_NOTHROW(batcher().make(plan, rng));
      }
      CHECK((rung == 0 ? n_shorter == 0 : n_shorter > 100 && n_shorter < 200));
    }
  }
}

TEST_CASE("curriculum: the rate warms up, holds, and falls to nothing after mastery", "[train][curriculum]") {
  const TrainSpec spec = spec_with("A");
  Curriculum curriculum(spec, make_recipe(spec));
  CHECK(std::abs(curriculum.learning_rate(0) - 2e-5) < 1e-12);
  CHECK(std::abs(curriculum.learning_rate(99) - 2e-3) < 1e-12);
  CHECK(std::abs(curriculum.learning_rate(5000) - 2e-3) < 1e-12);
  fathom::train::CurriculumState state = curriculum.state();
  state.decay_start = 1000;
  curriculum.set_state(state);
  CHECK(std::abs(curriculum.learning_rate(1000) - 2e-3) < 1e-12);
  CHECK(std::abs(curriculum.learning_rate(1075) - 1e-3) < 1e-12);
  CHECK(std::abs(curriculum.learning_rate(1149) - 2e-3 * 0.02) < 1e-12);
}

TEST_CASE("curriculum: a budget without mastery ends in a decay and is not called mastered", "[train][curriculum]") {
  TrainSpec spec = spec_with("A");
  spec.max_steps = 400;
  Curriculum curriculum(spec, make_recipe(spec));
  std::int64_t step = 0;
  for (; !curriculum.finished(step); ++step) curriculum.observe(step, frontier_plan(), {{}, 0.1});
  CHECK(step == 400);
  CHECK(curriculum.state().decay_start == 250);
  CHECK_FALSE(curriculum.state().mastered);
}

TEST_CASE("recipe: learned positions under recipe B get random starts and a longer decay", "[train][recipe]") {
  const Recipe learned = make_recipe(spec_with("B", "learned"));
  CHECK(learned.n_layers == 3);
  CHECK(learned.bos);
  CHECK(learned.auxiliary_heads == 2);
  CHECK(learned.decay_steps == 300);
  CHECK(learned.position_limit == 256);
  CHECK(make_recipe(spec_with("B")).position_limit == 0);
  CHECK(make_recipe(spec_with("A", "learned")).position_limit == 0);
}

TEST_CASE("spec: the canonical text names everything that shapes the weights", "[train][spec]") {
  TrainSpec spec;
  CHECK(
      spec.canonical() ==
      "recipe=A/1;position=rope/"
      "1;options=;rope_base=10000;rope_layout=split_half;rope_partial=1;nope_layers=none;context=256;tasks=niah;seed=1;"
      "n_layers=2;d_model=128;n_heads=4;d_ff=256;max_steps=6000;vocabulary=k200,v200,f200,e100,c0,t0,d0");
  TrainSpec alibi = spec;
  alibi.position = "alibi";
  TrainSpec alibi_base = alibi;
  alibi_base.rope_base = 5;
  CHECK(alibi.canonical() == alibi_base.canonical());  // nothing rotates, so the base is no part of it
  alibi.scheme_options = fathom::OptionSource("[model.alibi]", {{"max_bias", "8"}});
  CHECK(alibi.canonical() == alibi_base.canonical());  // a default that is spelled out
  CHECK(fathom::train::cache_folder(spec, "/c").find("/c/models/") == 0);
  CHECK(fathom::train::cache_folder(spec, "/c") != fathom::train::cache_folder(alibi, "/c"));
}

TEST_CASE("spec: bad values are config errors that say what is allowed", "[train][spec]") {
  const auto message = [](const TrainSpec& spec) -> std::string {
    try {
      static_cast<void>(Curriculum(spec, make_recipe(spec)));
      static_cast<void>(spec.canonical());
    } catch (const fathom::ConfigError& error) {
      return error.what();
    }
    return "no ConfigError";
  };
  TrainSpec spec = spec_with("C");
  CHECK(message(spec) == "train: unknown recipe 'C'; known: A, B");
  spec = spec_with("A");
  spec.tasks = {"niah", "copying"};
  CHECK(message(spec) == "train: unknown training task 'copying'; known: niah, variable_tracking, kv");
  spec = spec_with("A");
  spec.n_heads = 3;
  CHECK(message(spec) == "train: n_heads = 3 does not divide d_model = 128");
  spec = spec_with("A");
  spec.context = 16;
  CHECK(message(spec) == "train: context = 16 is outside 32..8192");
  spec = spec_with("A", "ropee");
  CHECK(message(spec).find("unknown position scheme 'ropee'; did you mean 'rope'?") == 0);
}
