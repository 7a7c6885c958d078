// A code in idle talk (tasks specification 2.3; Mohtashami and Jaggi 2023, "Landmark Attention", section 4): a floor
// test.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/task/haystack_choice.h"
#include "harness/task/needle_draft.h"
#include "tasks/tasks.h"
#include "tasks/value_pool.h"

namespace fathom::tasks {
namespace {

using task::HaystackKind;
using task::TaskVariant;

constexpr std::int32_t kPasskeyVersion = 1;
constexpr std::int64_t kPasskeyTaskBudget = 16;
constexpr std::int64_t kPasskeyDigits = 5;

struct PasskeyOptions {
  std::optional<std::int64_t> digits;

  void visit(OptionVisitor& v) {
    v.optional_integer("digits", digits, {1, 18},
                       "Digits of the code; auto: 5, and one value word in a closed vocabulary.");
  }
};

class PasskeyTask : public task::FittedTask {
 public:
  PasskeyTask(task::TaskFrame task_frame, ValuePool codes, HaystackKind kind)
      : FittedTask(std::move(task_frame)),
        codes_(std::move(codes)),
        haystack_(frame().context, kind, TaskVariant::kBalanced) {}

  bool sweeps_depth() const override { return true; }
  std::vector<task::Control> controls() const override {
    return {task::Control::kNoNeedle, task::Control::kNeedleOnly};
  }
  double in_text_guess(std::int64_t) const override { return 1.0; }
  double blind_guess() const override { return 1.0 / codes_.size; }

 protected:
  std::unique_ptr<task::SampleDraft> draft(const task::SampleKeyParts& key) const override;

 private:
  std::string pack_text(std::string_view name) const {
    return frame().context.pack->text("passkey", name, frame().name);
  }

  ValuePool codes_;
  task::TextHaystack haystack_;
};

std::unique_ptr<task::SampleDraft> PasskeyTask::draft(const task::SampleKeyParts& key) const {
  DistinctDraws used;
  RngStream rng = task::sample_stream(key, task::SampleStream::kFacts);
  const std::string code = used.draw(codes_, rng);
  task::NeedlePlan plan;
  const text::SlotValues values = {{"intro", pack_text("intro")}, {"question", pack_text("question")}};
  plan.frame = task::render_layout(pack_text("layout"), values, pack_text("answer_prefix"));
  plan.needles = {text::PromptPack::render(pack_text("needle"), {{"value", code}})};
  plan.groups = {{1, true}};
  plan.min_units = haystack_.kind() == HaystackKind::kNoise ? 1 : 4;
  plan.joiner = haystack_.joiner();
  plan.answer.references = {code};
  plan.answer.join = [](const std::vector<std::string>& codes) { return codes.front(); };
  plan.answer.task_budget = kPasskeyTaskBudget;
  plan.haystack = [this, key](std::int64_t units, std::int64_t tokens) { return haystack_.get(key, units, tokens); };
  plan.finish = [this, key, answer = plan.answer](task::Sample& sample) {
    DistinctDraws taken;
    taken.add(answer.references.front());
    RngStream aux = task::sample_stream(key, task::SampleStream::kAux);
    sample.candidates = task::make_candidates(sample, answer, {}, aux, [&]() {
      std::optional<std::vector<std::string>> fresh;
      if (auto value = taken.try_draw(codes_, aux)) fresh = {*std::move(value)};
      return fresh;
    });
  };
  return std::make_unique<task::NeedleDraft>(frame().context, key, std::move(plan));
}

std::unique_ptr<task::Task> make_passkey(const task::TaskEntry& entry, TaskVariant variant, const OptionSource& source,
                                         const task::TaskContext& context) {
  PasskeyOptions options;
  bind_options(options, source);
  const HaystackKind kind = task::resolve_haystack(context.haystack, HaystackKind::kNoise);
  const std::string fingerprint = task::TextHaystack(context, kind, variant).fingerprint();
  task::TaskFrame frame{std::string(entry.name),    entry.version, variant,
                        canonical_options(options), fingerprint,   context};
  return std::make_unique<PasskeyTask>(std::move(frame), numbers(context, options.digits, kPasskeyDigits), kind);
}

std::vector<OptionDescription> describe_passkey() {
  return describe_options(PasskeyOptions{});
}

}  // namespace

task::TaskEntry entries::passkey_entry() {
  return {"passkey",
          kPasskeyVersion,
          "passkey",
          "A code, said twice in idle talk.",
          "Landmark Attention (Mohtashami and Jaggi 2023), section 4",
          false,
          &describe_passkey,
          &make_passkey};
}

}  // namespace fathom::tasks
