#include "harness/task/haystack_choice.h"

#include <utility>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/core/text_util.h"
#include "harness/text/prose.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::task {

HaystackKind resolve_haystack(const HaystackSpec& wish, HaystackKind own) {
  if (own == HaystackKind::kNeedles) return own;
  switch (wish.kind) {
    case HaystackSpec::Kind::kTaskDefault:
      return own;
    case HaystackSpec::Kind::kProse:
      return HaystackKind::kProse;
    case HaystackSpec::Kind::kNoise:
      return HaystackKind::kNoise;
    case HaystackSpec::Kind::kCorpus:
      return HaystackKind::kCorpus;
  }
  FATHOM_CHECK(false, "unknown haystack kind");
}

std::int64_t filler_pool_size(const text::Tokenizer& tokenizer) {
  const auto* words = dynamic_cast<const text::WordTokenizer*>(&tokenizer);
  return words != nullptr ? words->spec().n_fillers : text::VocabularySpec{}.n_fillers;
}

TextHaystack::TextHaystack(const TaskContext& context, HaystackKind kind, TaskVariant variant,
                           std::vector<std::string> excluded)
    : context_(context), kind_(kind), variant_(variant), excluded_(std::move(excluded)) {
  FATHOM_CHECK(kind != HaystackKind::kNeedles, "needle haystacks are made by their task");
  const text::PromptPack& pack = *context_.pack;
  if (kind == HaystackKind::kCorpus) {
    if (pack.closed_vocabulary()) {
      throw ConfigError("a haystack text needs a pack with an open vocabulary, but '" + pack.name() +
                        "' has a closed one; use haystack.source = prose or noise");
    }
    FATHOM_CHECK(context_.haystack.corpus != nullptr, "a corpus haystack without a corpus");
  }
  // Chinese writes no blanks between words, so its prose always grows by sentences.
  by_words_ = variant == TaskVariant::kRuler && kind != HaystackKind::kNoise && pack.language() != "zh";
  if (kind == HaystackKind::kNoise) {
    joiner_ = pack.closed_vocabulary() ? " " : "\n";
  } else {
    joiner_ = pack.language() == "zh" ? "" : " ";
  }
}

std::string TextHaystack::fingerprint() const {
  const text::PromptPack& pack = *context_.pack;
  switch (kind_) {
    case HaystackKind::kNoise:
      return "noise";
    case HaystackKind::kCorpus:
      return context_.haystack.corpus->fingerprint() + (context_.haystack.repeat ? "/repeat" : "/once");
    case HaystackKind::kProse:
    case HaystackKind::kNeedles:
      break;
  }
  if (!pack.closed_vocabulary()) {
    std::string prose = "prose/" + text::ProseGenerator::fingerprint(pack.language());
    if (!excluded_.empty()) prose += "/without/" + hash_hex(join(excluded_, "\n"));
    return prose;
  }
  return "filler/" + std::to_string(filler_pool_size(context_.assembler->tokenizer()));
}

// RULER's samples all start at the beginning of one text.
SampleKeyParts TextHaystack::shared_key(const SampleKeyParts& key) const {
  SampleKeyParts shared = key;
  if (variant_ == TaskVariant::kRuler) shared.index = 0;
  return shared;
}

HaystackCache::Entry TextHaystack::get(const SampleKeyParts& key, std::int64_t min_units,
                                       std::int64_t min_tokens) const {
  const std::string id =
      kind_ == HaystackKind::kNoise ? "noise" : stream_key(shared_key(key), SampleStream::kHay).text();
  return cache_.get(
      id, [&] { return std::shared_ptr<const Haystack>(make(key)); }, context_.assembler->tokenizer(), min_units,
      min_tokens);
}

std::unique_ptr<Haystack> TextHaystack::make(const SampleKeyParts& key) const {
  const text::PromptPack& pack = *context_.pack;
  if (kind_ == HaystackKind::kNoise) return make_noise_haystack(pack.text("common", "noise"), joiner_);

  const RngKey hay = stream_key(shared_key(key), SampleStream::kHay);
  RngStream rng(hay);
  std::unique_ptr<Haystack> sentences;
  if (kind_ == HaystackKind::kCorpus) {
    const auto& corpus = context_.haystack.corpus;
    const std::uint64_t offset = variant_ == TaskVariant::kRuler ? 0 : rng.uniform_index(corpus->sentences().size());
    const bool repeat = variant_ == TaskVariant::kRuler || context_.haystack.repeat;
    sentences = make_corpus_haystack(corpus, static_cast<std::int64_t>(offset),
                                     repeat ? CorpusRepeat::kRepeat : CorpusRepeat::kOnce);
  } else if (pack.closed_vocabulary()) {
    sentences = make_filler_haystack(hay, filler_pool_size(context_.assembler->tokenizer()));
  } else {
    sentences = make_prose_haystack(pack.language(), rng.next_u64(), excluded_);
  }
  return by_words_ ? make_word_haystack(std::move(sentences)) : std::move(sentences);
}

}  // namespace fathom::task
