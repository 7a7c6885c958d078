#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "harness/checkpoint/checkpoint.h"
#include "harness/cli/command_entries.h"
#include "harness/cli/console.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

/// JSON strings must be UTF-8; a piece may be part of a character, so stray bytes are shown as U+FFFD.
nlohmann::json tokenize_json(const TokenIds& ids, const text::Tokenizer& tokenizer, const std::string& input) {
  std::vector<std::string> pieces;
  for (const TokenId id : ids) pieces.push_back(tokenizer.piece(id));
  return {{"ids", ids}, {"pieces", pieces}, {"text_round_trip", tokenizer.decode(ids) == input}};
}

int run_tokenize(const Arguments& arguments) {
  if (arguments.has("text") == arguments.has("file")) {
    throw ConfigError(
        "tokenize: give either --text S or --file F; for example: fathom tokenize MODEL --text \"Hello\"");
  }
  const std::string input = arguments.has("text") ? *arguments.get("text") : read_text_file(*arguments.get("file"));
  const auto checkpoint = checkpoint::open_checkpoint(find_model_path(*arguments.get("MODEL")));
  const auto tokenizer = checkpoint->make_tokenizer();
  const TokenIds ids = tokenizer->encode(input);
  const nlohmann::json json = tokenize_json(ids, *tokenizer, input);
  if (arguments.has("json")) {
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return static_cast<int>(ExitCode::kOk);
  }
  for (const TokenId id : ids) fmt::print("{:>8}  {}\n", id, replace_all(tokenizer->piece(id), "\n", "\\n"));
  fmt::print("{} tokens, {} bytes, decodes to {}\n", ids.size(), input.size(),
             json.at("text_round_trip").get<bool>() ? "the same text" : "ANOTHER text");
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

CommandEntry entries::tokenize_entry() {
  return {"tokenize",
          "token ids and pieces of a text under a checkpoint's tokenizer",
          "No BOS or EOS is added; special tokens written in the text become those tokens.",
          {"fathom tokenize SmolLM2-135M-Instruct.Q4_1.gguf --text \"Hello, world!\"",
           "fathom tokenize models/rope256 --text \"note k3 v17\" --json"},
          {{"MODEL", ".gguf file or checkpoint folder"}},
          {{"text", "S", "the text", {}},
           {"file", "F", "a file that holds the text", {}},
           {"json", "", "machine-readable", {}}},
          run_tokenize};
}

}  // namespace fathom::cli
