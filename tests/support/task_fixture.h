#pragma once
// What a task needs to run in a test: a tokenizer, an assembler and a pack, without any model.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/task/task.h"
#include "harness/text/chat_template.h"
#include "harness/text/prompt_pack.h"
#include "harness/text/tokenizer.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::test {

/// Every byte is a token.
class ByteTokenizer : public text::Tokenizer {
 public:
  TokenIds encode(std::string_view text, text::SpecialTokens) const override {
    TokenIds ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  std::string decode(const TokenIds& ids) const override {
    std::string out;
    for (const TokenId id : ids) out += piece(id);
    return out;
  }
  std::string piece(TokenId id) const override { return std::string(1, static_cast<char>(id)); }
  std::int64_t vocab_size() const override { return 256; }
  std::optional<TokenId> bos() const override { return std::nullopt; }
  std::optional<TokenId> eos() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  std::string fingerprint() const override { return "bytes"; }
};

/// Up to three bytes a token, cut where a blank or a line begins, as byte-level BPE does; BOS in front. Token borders
/// depend on the neighbours, so token counts of parts do not simply add up.
class TripletTokenizer : public text::Tokenizer {
 public:
  TokenIds encode(std::string_view text, text::SpecialTokens) const override {
    TokenIds ids;
    std::size_t at = 0;
    while (at < text.size()) {
      std::size_t end = at + 1;
      while (end < text.size() && end < at + 3 && text[end] != ' ' && text[end] != '\n') ++end;
      TokenId id = static_cast<TokenId>(end - at) << 24;
      for (std::size_t i = at; i < end; ++i)
        id |= static_cast<TokenId>(static_cast<unsigned char>(text[i])) << (8 * (i - at));
      ids.push_back(id);
      at = end;
    }
    return ids;
  }
  std::string decode(const TokenIds& ids) const override {
    std::string out;
    for (const TokenId id : ids) out += piece(id);
    return out;
  }
  std::string piece(TokenId id) const override {
    if (id == kBos) return "<s>";
    std::string bytes;
    for (int i = 0; i < (id >> 24); ++i) bytes += static_cast<char>((id >> (8 * i)) & 0xff);
    return bytes;
  }
  std::int64_t vocab_size() const override { return std::int64_t{4} << 24; }
  std::optional<TokenId> bos() const override { return kBos; }
  std::optional<TokenId> eos() const override { return std::nullopt; }
  bool adds_bos() const override { return true; }
  std::string fingerprint() const override { return "triplets"; }

 private:
  static constexpr TokenId kBos = 0;
};

/// Owns everything a TaskContext points to.
class TaskFixture {
 public:
  TaskFixture(std::string_view pack, std::unique_ptr<text::Tokenizer> tokenizer,
              text::PromptStyle style = text::PromptStyle::kBase,
              std::optional<text::ChatTemplate> family = std::nullopt)
      : name_(std::string(pack) + "/" + tokenizer->fingerprint().substr(0, 8)),
        tokenizer_(std::move(tokenizer)),
        assembler_(std::make_unique<text::PromptAssembler>(*tokenizer_, style, std::move(family))) {
    context_.assembler = assembler_.get();
    context_.pack = text::PromptPack::builtin(pack);
    context_.n_samples = 4;
  }

  task::TaskContext& context() { return context_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<text::PromptAssembler> assembler_;
  task::TaskContext context_;
};

/// A vocabulary in which every task can be written.
inline text::VocabularySpec full_vocabulary() {
  text::VocabularySpec spec;
  spec.n_cues = 100;
  spec.n_targets = 100;
  spec.n_digits = 10;
  return spec;
}
inline std::unique_ptr<TaskFixture> synthetic_fixture() {
  return std::make_unique<TaskFixture>("synthetic", std::make_unique<text::WordTokenizer>(full_vocabulary(), false));
}
inline std::unique_ptr<TaskFixture> english_fixture() {
  return std::make_unique<TaskFixture>("en", std::make_unique<TripletTokenizer>());
}

/// The packs, each with a tokenizer it can be written in.
inline std::vector<std::unique_ptr<TaskFixture>> all_task_fixtures() {
  std::vector<std::unique_ptr<TaskFixture>> fixtures;
  fixtures.push_back(synthetic_fixture());
  fixtures.push_back(
      std::make_unique<TaskFixture>("synthetic", std::make_unique<text::WordTokenizer>(full_vocabulary(), true)));
  fixtures.push_back(english_fixture());
  fixtures.push_back(std::make_unique<TaskFixture>("en", std::make_unique<TripletTokenizer>(), text::PromptStyle::kChat,
                                                   text::chat_template("chatml")));
  fixtures.push_back(std::make_unique<TaskFixture>("zh", std::make_unique<TripletTokenizer>()));
  return fixtures;
}

}  // namespace fathom::test
