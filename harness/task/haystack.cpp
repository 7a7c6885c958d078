#include "harness/task/haystack.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/text/prose.h"

namespace fathom::task {
namespace {

constexpr std::int64_t kFillerWordsPerSentence = 6;
// Units are tokenised in chunks of this size: large enough that tokenising costs one pass, small enough to stop near
// what is needed.
constexpr std::int64_t kMeasureChunkUnits = 64;
// Memory bound of a cache: about 25 MB of sentences.
constexpr std::int64_t kCachedUnits = 200000;

class NoiseHaystack : public Haystack {
 public:
  NoiseHaystack(std::string line, std::string separator) : line_(std::move(line)), separator_(std::move(separator)) {}
  std::vector<HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    return std::vector<HaystackUnit>(static_cast<std::size_t>(end - begin), HaystackUnit{separator_, line_, true});
  }

 private:
  std::string line_;
  std::string separator_;
};

class ProseHaystack : public Haystack {
 public:
  ProseHaystack(std::string_view language, std::uint64_t seed, const std::vector<std::string>& excluded)
      : generator_(language, seed, excluded) {}
  std::vector<HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    std::vector<HaystackUnit> out;
    out.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) {
      text::ProseSentence sentence = generator_.sentence(static_cast<std::uint64_t>(i));
      out.push_back({std::move(sentence.separator), std::move(sentence.text), true});
    }
    return out;
  }

 private:
  text::ProseGenerator generator_;
};

class FillerHaystack : public Haystack {
 public:
  FillerHaystack(RngKey key, std::int64_t n_fillers) : key_(std::move(key)), n_fillers_(n_fillers) {}
  std::vector<HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    std::vector<HaystackUnit> out;
    for (std::int64_t i = begin; i < end; ++i) {
      RngStream rng(key_.child(i));
      std::string sentence;
      for (std::int64_t word = 0; word < kFillerWordsPerSentence; ++word) {
        sentence += 'f' + std::to_string(rng.uniform_index(static_cast<std::uint64_t>(n_fillers_))) + ' ';
      }
      out.push_back({" ", sentence + '.', true});
    }
    return out;
  }

 private:
  RngKey key_;
  std::int64_t n_fillers_;
};

class CorpusHaystack : public Haystack {
 public:
  CorpusHaystack(std::shared_ptr<const text::TextCorpus> corpus, std::int64_t offset, CorpusRepeat repeat)
      : corpus_(std::move(corpus)), offset_(offset), repeat_(repeat) {}

  std::vector<HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    const auto& sentences = corpus_->sentences();
    std::vector<HaystackUnit> out;
    out.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(offset_ + i) % sentences.size();
      // The text's end and its start are different paragraphs.
      const std::string& separator = at == 0 ? kParagraph : sentences[at].separator;
      out.push_back({separator, sentences[at].text, true});
    }
    return out;
  }

  std::optional<std::int64_t> size() const override {
    if (repeat_ == CorpusRepeat::kRepeat) return std::nullopt;
    return static_cast<std::int64_t>(corpus_->sentences().size());
  }

  std::string limit_reason() const override {
    return fmt::format("the haystack text '{}' has {} sentences; use a longer text or set haystack.repeat = on",
                       corpus_->path(), corpus_->sentences().size());
  }

 private:
  inline static const std::string kParagraph = "\n";
  std::shared_ptr<const text::TextCorpus> corpus_;
  std::int64_t offset_;
  CorpusRepeat repeat_;
};

class WordHaystack : public Haystack {
 public:
  explicit WordHaystack(std::unique_ptr<Haystack> sentences) : sentences_(std::move(sentences)) {}

  std::vector<HaystackUnit> units(std::int64_t begin, std::int64_t end) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    fill_to(end);
    const auto first = words_.begin();
    return {first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end)};
  }

  std::optional<std::int64_t> size() const override {
    const auto n_sentences = sentences_->size();
    if (!n_sentences) return std::nullopt;
    const std::lock_guard<std::mutex> lock(mutex_);
    while (n_read_ < *n_sentences) read_sentence();
    return static_cast<std::int64_t>(words_.size());
  }

  std::string limit_reason() const override { return sentences_->limit_reason(); }

 private:
  void fill_to(std::int64_t end) const {
    while (static_cast<std::int64_t>(words_.size()) < end) read_sentence();
  }

  void read_sentence() const {
    const HaystackUnit sentence = sentences_->units(n_read_, n_read_ + 1).front();
    ++n_read_;
    std::string separator = sentence.separator;
    bool boundary = true;
    std::size_t at = 0;
    while (at < sentence.text.size()) {
      const std::size_t blank = std::min(sentence.text.find(' ', at), sentence.text.size());
      if (blank > at) {
        words_.push_back({separator, sentence.text.substr(at, blank - at), boundary});
        separator = " ";
        boundary = false;
      }
      at = blank + 1;
    }
  }

  std::unique_ptr<Haystack> sentences_;
  mutable std::mutex mutex_;
  mutable std::vector<HaystackUnit> words_;
  mutable std::int64_t n_read_ = 0;
};

/// Appends one chunk. The last unit that is already measured is tokenised once more in front of it, so that the tokens
/// at the seam are the ones the units have side by side.
void append_measured_chunk(MeasuredHaystack& measured, std::vector<HaystackUnit> chunk,
                           const text::Tokenizer& tokenizer) {
  std::string text;
  if (!measured.units.empty()) text = measured.units.back().text;
  const std::size_t seam_byte = text.size();
  std::vector<std::size_t> unit_end_bytes;
  for (const HaystackUnit& unit : chunk) {
    if (!text.empty()) text += unit.separator;
    text += unit.text;
    unit_end_bytes.push_back(text.size());
  }
  const TokenIds ids = tokenizer.encode(text, text::SpecialTokens::kPlainText);
  const std::vector<std::size_t> token_ends = tokenizer.token_end_offsets(text, ids);
  const auto tokens_up_to = [&token_ends](std::size_t byte) {
    return std::lower_bound(token_ends.begin(), token_ends.end(), byte) - token_ends.begin() + 1;
  };
  const std::int64_t base = measured.units.empty() ? 0 : measured.end_tokens.back() - tokens_up_to(seam_byte);
  std::int64_t previous = measured.units.empty() ? 0 : measured.end_tokens.back();
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const std::int64_t end = base + tokens_up_to(unit_end_bytes[i]);
    measured.largest_unit_tokens = std::max(measured.largest_unit_tokens, end - previous);
    measured.end_tokens.push_back(end);
    measured.units.push_back(std::move(chunk[i]));
    previous = end;
  }
}

}  // namespace

std::unique_ptr<Haystack> make_noise_haystack(std::string line, std::string separator) {
  return std::make_unique<NoiseHaystack>(std::move(line), std::move(separator));
}

std::unique_ptr<Haystack> make_prose_haystack(std::string_view language, std::uint64_t seed,
                                              const std::vector<std::string>& excluded) {
  return std::make_unique<ProseHaystack>(language, seed, excluded);
}

std::unique_ptr<Haystack> make_filler_haystack(const RngKey& key, std::int64_t n_fillers) {
  FATHOM_CHECK(n_fillers >= 1, "filler prose needs filler words");
  return std::make_unique<FillerHaystack>(key, n_fillers);
}

std::unique_ptr<Haystack> make_corpus_haystack(std::shared_ptr<const text::TextCorpus> corpus, std::int64_t offset,
                                               CorpusRepeat repeat) {
  FATHOM_CHECK(corpus && !corpus->sentences().empty() && offset >= 0, "a corpus haystack needs sentences");
  return std::make_unique<CorpusHaystack>(std::move(corpus), offset, repeat);
}

std::unique_ptr<Haystack> make_word_haystack(std::unique_ptr<Haystack> sentences) {
  return std::make_unique<WordHaystack>(std::move(sentences));
}

MeasuredHaystack measure_haystack(const Haystack& source, const text::Tokenizer& tokenizer, std::int64_t min_units,
                                  std::int64_t min_tokens, const MeasuredHaystack& begin) {
  MeasuredHaystack measured = begin;
  const std::optional<std::int64_t> limit = source.size();
  measured.complete = limit && measured.size() >= *limit;
  while (!measured.complete && (measured.size() < min_units || measured.tokens(measured.size()) < min_tokens)) {
    std::int64_t end = measured.size() + kMeasureChunkUnits;
    if (limit) end = std::min(end, *limit);
    append_measured_chunk(measured, source.units(measured.size(), end), tokenizer);
    measured.complete = limit && measured.size() >= *limit;
  }
  return measured;
}

HaystackCache::Entry HaystackCache::get(const std::string& id, const Factory& make, const text::Tokenizer& tokenizer,
                                        std::int64_t min_units, std::int64_t min_tokens) {
  Entry entry;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&id](const auto& each) { return each.first == id; });
    if (found != entries_.end()) entry = found->second;
  }
  // Measured outside the lock: two threads may do the same work, but get the same numbers.
  if (!entry.source) entry.source = make();
  const auto enough = [&](const MeasuredHaystack& measured) {
    return measured.complete || (measured.size() >= min_units && measured.tokens(measured.size()) >= min_tokens);
  };
  if (entry.measured && enough(*entry.measured)) return entry;
  entry.measured = std::make_shared<const MeasuredHaystack>(measure_haystack(
      *entry.source, tokenizer, min_units, min_tokens, entry.measured ? *entry.measured : MeasuredHaystack{}));

  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), [&id](const auto& each) { return each.first == id; }),
                 entries_.end());
  entries_.emplace_back(id, entry);
  std::int64_t total = 0;
  for (const auto& each : entries_) total += each.second.measured->size();
  while (entries_.size() > 1 && total > kCachedUnits) {
    total -= entries_.front().second.measured->size();
    entries_.erase(entries_.begin());
  }
  return entry;
}

}  // namespace fathom::task
