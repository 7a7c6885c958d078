#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

#include "harness/checkpoint/checkpoint.h"
#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/cli/position_settings.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/engine/probe.h"
#include "harness/engine/torch_language_model.h"

namespace fathom::cli {
namespace {

TokenIds parse_ids(const char* option, const std::string& text, std::int64_t vocab_size) {
  TokenIds ids;
  for (const std::string& part : split_list(text)) {
    const auto id = parse_int(part);
    if (!id || *id < 0 || *id >= vocab_size) {
      throw ConfigError(
          fmt::format("logits: --{} holds '{}'; ids are integers in 0..{}", option, part, vocab_size - 1));
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

TokenIds logits_input(const Arguments& arguments, const checkpoint::Checkpoint& checkpoint) {
  if (arguments.has("ids") == arguments.has("text")) {
    throw ConfigError("logits: give either --ids 1,2,3 or --text S; for example: fathom logits MODEL --text \"Hello\"");
  }
  TokenIds ids = arguments.has("ids") ? parse_ids("ids", *arguments.get("ids"), checkpoint.config().vocab_size)
                                      : checkpoint.make_tokenizer()->encode(*arguments.get("text"));
  if (ids.empty()) throw ConfigError("logits: the input has no tokens");
  return ids;
}

std::vector<std::pair<TokenId, double>> top_logits(const std::vector<float>& logits, std::int64_t count) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto n = std::min(static_cast<std::ptrdiff_t>(count), static_cast<std::ptrdiff_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + n, order.end(), [&logits](TokenId a, TokenId b) {
    const float x = logits[static_cast<std::size_t>(a)];
    const float y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<std::pair<TokenId, double>> top;
  for (auto it = order.begin(); it != order.begin() + n; ++it) {
    top.emplace_back(*it, static_cast<double>(logits[static_cast<std::size_t>(*it)]));
  }
  return top;
}

TokenIds greedy_ids(lm::LanguageModel& model, const TokenIds& ids, std::int64_t count) {
  lm::Request request;
  request.prompt = ids;
  request.max_new_tokens = count;
  const lm::Completion completion = model.complete({request}).front();
  if (!completion.error.empty()) throw ModelError("logits: " + completion.error);
  return completion.ids;
}

int run_logits(const Arguments& arguments) {
  engine::set_threads(0);
  const auto checkpoint = checkpoint::open_checkpoint(find_model_path(*arguments.get("MODEL")));
  const TokenIds ids = logits_input(arguments, *checkpoint);
  const std::int64_t n_greedy = arguments.integer("greedy", 1, 100000).value_or(0);
  engine::EngineOptions options;
  options.dtype = arguments.get_or("dtype", "float32");
  if (const auto text = arguments.get("encoder-ids"))
    options.encoder_ids = parse_ids("encoder-ids", *text, checkpoint->config().vocab_size);
  const auto n_tokens = static_cast<std::int64_t>(ids.size());
  const checkpoint::DecoderConfig config =
      apply_position_settings(checkpoint->config(), arguments.all("set"), n_tokens);
  const auto weights = engine::load_weights(*checkpoint, options);
  for (const std::string& warning : config.warnings) fmt::print(stderr, "warning: {}\n", warning);
  const engine::ProbeResult probe = engine::probe_logits(weights, config, options, ids);
  nlohmann::ordered_json json;
  json["ids"] = ids;
  json["next_logprob"] = probe.next_logprobs;
  json["argmax"] = probe.argmax;
  json["top"] = nlohmann::ordered_json::array();
  for (const auto& [id, logit] : top_logits(probe.last_logits, arguments.integer("top", 1, 1000).value_or(10))) {
    json["top"].push_back({id, logit});
  }
  if (arguments.has("full")) json["logits_last"] = probe.last_logits;
  if (n_greedy > 0) json["greedy"] = greedy_ids(*engine::make_language_model(weights, config, options), ids, n_greedy);
  if (arguments.has("json")) {
    fmt::print("{}\n", json.dump());
    return static_cast<int>(ExitCode::kOk);
  }
  const auto tokenizer = checkpoint->make_tokenizer();
  const double nll = -std::accumulate(probe.next_logprobs.begin(), probe.next_logprobs.end(), 0.0);
  fmt::print("{} tokens, negative log-likelihood {:.4f} nats\nmost likely next:\n", ids.size(), nll);
  for (const auto& [id, logit] : top_logits(probe.last_logits, arguments.integer("top", 1, 1000).value_or(10))) {
    fmt::print("{:>8}  {:>9.4f}  {}\n", id, logit, replace_all(tokenizer->piece(id), "\n", "\\n"));
  }
  if (n_greedy > 0) {
    fmt::print("greedy: {}\n", tokenizer->decode(json["greedy"].get<TokenIds>()));
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::logits_entry() {
  return {"logits",
          "log-probabilities, arg-max and greedy continuation of a checkpoint: the parity probe",
          "Natural logarithms; next_logprob[i] is log p(ids[i+1] | ids[0..i]). No BOS is added.",
          {"fathom logits SmolLM2-135M-Instruct.Q4_1.gguf --text \"The ferry leaves\" --greedy 12",
           "fathom logits model --ids 1,2,3 --set scaling=yarn --set scaling.factor=4 --json"},
          {{"MODEL", ".gguf file or checkpoint folder"}},
          {{"ids", "LIST", "token ids, comma-separated", {}},
           {"text", "S", "a text instead of ids", {}},
           {"encoder-ids", "LIST", "what the encoder of an encoder-decoder (T5) reads", {}},
           {"dtype", "NAME", "float32 (default), bf16 or auto", {"auto", "float32", "bf16"}},
           {"set",
            "KEY=VALUE",
            "rope.base, scaling, remap or temperature, their options, rope.gguf, rope.layers or rope.table_dtype; may "
            "be repeated",
            {},
            OptionSpec::Count::kRepeated},
           {"top", "K", "how many logits of the last position (default 10)", {}},
           {"full", "", "all logits of the last position", {}},
           {"greedy", "N", "continue greedily for N tokens", {}},
           {"json", "", "machine-readable", {}}},
          run_logits};
}

}  // namespace fathom::cli
