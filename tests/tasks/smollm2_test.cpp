// The suite's main points with a real tokenizer and chat template; skipped, visibly, without the model's file.

#include "harness/text/bpe_tokenizer.h"
#include "tasks/tasks.h"
#include "tests/support/catch.h"
#include "tests/support/gguf_vocabulary.h"
#include "tests/support/oracle_solver.h"
#include "tests/support/task_fixture.h"

namespace {

using namespace fathom;

constexpr const char* kSmolLm2File = "SmolLM2-135M-Instruct.Q4_1.gguf";

std::unique_ptr<test::TaskFixture> smollm2_fixture(text::PromptStyle style) {
  const test::GgufMetadata metadata(test::model_path(kSmolLm2File));
  auto tokenizer = text::make_bpe_tokenizer(metadata.vocabulary(), kSmolLm2File);
  return std::make_unique<test::TaskFixture>("en", std::move(tokenizer), style, text::chat_template("chatml"));
}

void check_sample(const test::TaskFixture& fixture, const task::Sample& sample) {
  CHECK(sample.slack_tokens() >= 0);
  if (sample.references.empty()) return;
  CHECK(test::score_reply(test::main_scorer(sample), sample, test::oracle_reply(sample)) == std::optional<double>(1.0));
  if (scoring::infer_answer_form(sample)) {
    CHECK(test::score_reply("ordered", sample, test::oracle_reply(sample)) == std::optional<double>(1.0));
  }
  std::string gold;
  for (const task::NeedlePlace& needle : sample.needles) {
    if (!needle.gold) continue;
    gold += fixture.tokenizer().decode(
        {sample.prompt_ids.begin() + needle.first_token, sample.prompt_ids.begin() + needle.last_token + 1});
    gold += ' ';
  }
  for (const std::string& reference : sample.references) {
    if (!sample.needles.empty()) CHECK(gold.find(reference) != std::string::npos);
  }
  // What the model says is a continuation: the prompt's tokens stay, or the last one merges with the answer.
  const TokenIds together = fixture.tokenizer().encode(sample.prompt_text + sample.answer_text);
  const std::size_t kept = static_cast<std::size_t>(
      std::mismatch(sample.prompt_ids.begin(), sample.prompt_ids.end(), together.begin()).first -
      sample.prompt_ids.begin());
  CHECK(kept + 1 >= sample.prompt_ids.size());
  CHECK(static_cast<std::int64_t>(together.size() - kept) <= sample.generation_budget);
}

}  // namespace

TEST_CASE("tasks: SmolLM2's tokenizer and template keep every rule", "[tasks][real]") {
  if (test::model_missing(kSmolLm2File)) return;
  for (const text::PromptStyle style :
       {text::PromptStyle::kBase, text::PromptStyle::kChat, text::PromptStyle::kChatNoPrefix}) {
    const auto fixture = smollm2_fixture(style);
    fixture->context().n_samples = 2;
    for (const task::TaskEntry& entry : tasks::registry().entries()) {
      for (const task::TaskVariant variant : {task::TaskVariant::kBalanced, task::TaskVariant::kRuler}) {
        if (variant == task::TaskVariant::kRuler && !entry.has_ruler_variant) continue;
        const auto task = entry.make(entry, variant, {}, fixture->context());
        const std::int64_t smallest = task->smallest_length_tokens(1);
        for (const std::int64_t length : {smallest, std::int64_t{512}, std::int64_t{4096}}) {
          if (length < smallest || (!task->sweeps_length() && length > smallest)) continue;
          std::optional<std::int32_t> depth;
          if (task->sweeps_depth()) depth = 5000;
          INFO(entry.name << "@" << task::to_string(variant) << " " << text::to_string(style) << " L=" << length);
          const task::Sample sample = task->make_sample({length, depth}, 1, 1);
          check_sample(*fixture, sample);
          // Units have at most about 90 tokens (two uuids); RULER's grid of list sizes is coarser.
          if (length > smallest && sample.generation_budget > 0 && variant == task::TaskVariant::kBalanced) {
            CHECK(sample.slack_tokens() <= 2 * 90 + 8);
          }
        }
        if (!task->sweeps_length()) continue;
        CHECK_THROWS_AS(task->make_sample({smallest / 2, std::nullopt}, 0, 1), TooShortError);
      }
    }
  }
}
