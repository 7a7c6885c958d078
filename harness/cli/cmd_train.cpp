#include <fmt/format.h>

#include <filesystem>

#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/run_session.h"
#include "harness/config/parse.h"
#include "harness/core/error.h"

namespace fathom::cli {
namespace {

int run_train(const Arguments& arguments) {
  const auto out = arguments.get("out");
  if (!out)
    throw ConfigError("train: --out DIR is missing; for example: fathom train configs/quickstart.ini --out model");
  std::vector<config::Setting> settings;
  for (const std::string& text : arguments.all("set")) settings.push_back(config::parse_setting(text));
  if (const auto threads = arguments.get("threads")) settings.push_back({"engine.threads", *threads});
  const config::RunConfig config = config::load_config(*arguments.get("CONFIG"), settings);
  engine::set_threads(config.engine.threads.value_or(0));
  RunSession session(config);
  std::vector<SessionModel*> trainable;
  for (const auto& model : session.models()) {
    if (model->train_spec) trainable.push_back(model.get());
  }
  if (trainable.size() != 1) {
    throw ConfigError(
        fmt::format("train: the config describes {} models to train; --out takes one, so narrow it down, for "
                    "example with --set position=rope",
                    trainable.size()));
  }
  SessionModel& model = *trainable.front();
  model.path = *out;
  ProgressLine line(arguments.has("quiet") ? ProgressLine::Mode::kQuiet : ProgressLine::Mode::kNormal);
  session.load(model, session.variants().front().settings.dtype, line);
  fmt::print("{}\n", *out);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::train_entry() {
  return {"train",
          "train one model of a config from scratch",
          "Writes config.json, model.safetensors, tokenizer.json and training.jsonl. An interrupted training goes on "
          "where it\n"
          "stopped when the same command is given again.",
          {"fathom train configs/quickstart.ini --set position=rope --out models/rope256"},
          {{"CONFIG", "INI file with source = train"}},
          {{"out", "DIR", "folder for the checkpoint", {}},
           {"set", "KEY=VALUE", "override a key; may be repeated", {}, OptionSpec::Count::kRepeated},
           {"threads", "N", "threads (default: all cores)", {}},
           {"quiet", "", "no progress lines", {}}},
          run_train};
}

}  // namespace fathom::cli
