// Assembled prompts for stated keys. A difference means that a sample of some key changed: raise the task's version,
// then rewrite the file with FATHOM_UPDATE_GOLDEN=1 and read what changed.

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/core/hash.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;

constexpr const char* kPromptGolden = "task_prompts.json";

nlohmann::ordered_json describe_sample(const task::Sample& sample, const std::string& fixture) {
  nlohmann::ordered_json out;
  out["fixture"] = fixture;
  out["key"] = sample.key;
  // RULER's floors make long prompts: their hash will do.
  if (sample.variant == task::TaskVariant::kBalanced) {
    out["prompt"] = sample.prompt_text;
  } else {
    out["prompt_hash"] = hash_hex(sample.prompt_text);
  }
  out["answer"] = sample.answer_text;
  if (sample.candidates.size() > 1) out["candidate_1"] = sample.candidates.at(1);
  for (const auto& needle : sample.needles) {
    out["needles"].push_back({needle.gold, needle.requested_depth_bp.value_or(-1), needle.actual_depth_bp,
                              needle.first_token, needle.last_token});
  }
  return out;
}

nlohmann::ordered_json describe_all() {
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  for (const auto& fixture : {test::synthetic_fixture(), test::english_fixture()}) {
    for (const task::TaskEntry& entry : tasks::registry().entries()) {
      for (const task::TaskVariant variant : {task::TaskVariant::kBalanced, task::TaskVariant::kRuler}) {
        if (variant == task::TaskVariant::kRuler && !entry.has_ruler_variant) continue;
        const auto task = entry.make(entry, variant, {}, fixture->context());
        std::optional<std::int32_t> depth;
        if (task->sweeps_depth()) depth = 5000;
        const std::int64_t length = task->smallest_length_tokens(1) + 40;
        samples.push_back(describe_sample(task->make_sample({length, depth}, 2, 1), fixture->name()));
      }
    }
  }
  return samples;
}

}  // namespace

TEST_CASE("tasks: stated keys give the stored prompts, values and positions", "[tasks][golden]") {
  const nlohmann::ordered_json samples = describe_all();
  if (std::getenv("FATHOM_UPDATE_GOLDEN") != nullptr) {
    nlohmann::ordered_json file;
    file["recipe"] =
        "FATHOM_UPDATE_GOLDEN=1 tasks_test [golden]: every task and variant at L_min + 40, depth 50 %, index 2, seed 1";
    file["samples"] = samples;
    std::ofstream(std::string(FATHOM_TEST_DIR) + "/golden/" + kPromptGolden) << file.dump(1) << "\n";
  }
  const nlohmann::json stored = test::read_golden(kPromptGolden)["samples"];
  REQUIRE(stored.size() == samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    INFO(samples[i]["key"]);
    CHECK(nlohmann::json(samples[i]) == stored[i]);
  }
}
