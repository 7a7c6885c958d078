#include "harness/text/normalizer.h"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/edits.h>
#include <unicode/normalizer2.h>

#include <algorithm>
#include <utility>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/utf8.h"

namespace fathom::text {
namespace {

std::string sized(std::string_view text) {
  return fmt::format("{}:{}", text.size(), text);
}

void put_in_front(NormalizedText& text, const std::string& prefix) {
  TextRewriter writer(text);
  writer.replace(0, prefix);
  writer.copy(text.text.size());
  text = writer.take();
}

void compose_run(const icu::Normalizer2& form, std::string_view run, TextRewriter& writer) {
  const auto failed = [](UErrorCode code) {
    FATHOM_CHECK(U_SUCCESS(code), fmt::format("ICU cannot compose a text: {}", u_errorName(code)));
  };
  const icu::StringPiece source(run.data(), static_cast<std::int32_t>(run.size()));
  UErrorCode status = U_ZERO_ERROR;
  const bool unchanged = form.isNormalizedUTF8(source, status) != 0;
  failed(status);
  if (unchanged) {
    writer.copy(run.size());
    return;
  }
  std::string composed;
  icu::StringByteSink<std::string> sink(&composed);
  icu::Edits edits;
  form.normalizeUTF8(0, source, sink, &edits, status);
  failed(status);
  auto part = edits.getFineIterator();
  while (part.next(status) != 0) {
    const auto old_size = static_cast<std::size_t>(part.oldLength());
    if (part.hasChange() == 0) {
      writer.copy(old_size);
    } else {
      const auto begin = static_cast<std::size_t>(part.destinationIndex());
      writer.replace(old_size, std::string_view(composed).substr(begin, static_cast<std::size_t>(part.newLength())));
    }
  }
  failed(status);
}

NormalizerStep composition(std::string name, const icu::Normalizer2* (*get)(UErrorCode&)) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* form = get(status);
  FATHOM_CHECK(U_SUCCESS(status), fmt::format("ICU has no data for {}: {}", name, u_errorName(status)));
  return {std::move(name), [form](NormalizedText& text, const SegmentPlace&) {
            TextRewriter writer(text);
            for (const Utf8Run& run : utf8_runs(text.text)) {
              if (run.valid) {
                compose_run(*form, run.text, writer);
              } else {
                writer.copy(run.text.size());
              }
            }
            text = writer.take();
          }};
}

}  // namespace

NormalizedText slice(const NormalizedText& text, std::size_t begin, std::size_t end) {
  NormalizedText out{text.text.substr(begin, end - begin), {}};
  if (text.ends.empty()) return out;
  const std::size_t base = source_offset(text, begin);
  for (std::size_t i = begin; i < end; ++i) out.ends.push_back(text.ends[i] - base);
  return out;
}

std::size_t source_offset(const NormalizedText& text, std::size_t size_bytes) {
  return size_bytes == 0 ? 0 : text.ends[size_bytes - 1];
}

bool place_holds(PrefixPlace wanted, const SegmentPlace& place) {
  switch (wanted) {
    case PrefixPlace::kEverySegment:
      return true;
    case PrefixPlace::kTextAndAfterSpecial:
      return place.after_special;
    case PrefixPlace::kTextOnly:
      return place.begins_text;
  }
  return false;
}

void TextRewriter::copy(std::size_t size_bytes) {
  to_.text.append(from_.text, at_, size_bytes);
  if (!from_.ends.empty()) {
    const auto begin = from_.ends.begin() + static_cast<std::ptrdiff_t>(at_);
    to_.ends.insert(to_.ends.end(), begin, begin + static_cast<std::ptrdiff_t>(size_bytes));
  }
  at_ += size_bytes;
}

void TextRewriter::replace(std::size_t size_bytes, std::string_view text) {
  at_ += size_bytes;
  to_.text += text;
  if (!from_.ends.empty()) to_.ends.insert(to_.ends.end(), text.size(), at_ == 0 ? 0 : from_.ends[at_ - 1]);
}

NormalizerStep normalize::prepend(std::string prefix, PrefixPlace place) {
  std::string canonical = fmt::format("prepend {} {}", sized(prefix), static_cast<int>(place));
  return {std::move(canonical), [prefix = std::move(prefix), place](NormalizedText& text, const SegmentPlace& here) {
            if (!text.text.empty() && place_holds(place, here)) put_in_front(text, prefix);
          }};
}

NormalizerStep normalize::prepend_unless_there(std::string prefix, PrefixPlace place) {
  std::string canonical = fmt::format("prepend_unless_there {} {}", sized(prefix), static_cast<int>(place));
  return {std::move(canonical), [prefix = std::move(prefix), place](NormalizedText& text, const SegmentPlace& here) {
            if (text.text.empty() || !place_holds(place, here) || starts_with(text.text, prefix)) return;
            put_in_front(text, prefix);
          }};
}

NormalizerStep normalize::replace(std::string from, std::string to) {
  FATHOM_CHECK(!from.empty(), "a replacement of nothing");
  std::string canonical = fmt::format("replace {} {}", sized(from), sized(to));
  return {std::move(canonical),
          [from = std::move(from), to = std::move(to)](NormalizedText& text, const SegmentPlace&) {
            TextRewriter writer(text);
            while (true) {
              const std::size_t found = text.text.find(from, writer.position());
              if (found == std::string::npos) break;
              writer.copy(found - writer.position());
              writer.replace(from.size(), to);
            }
            writer.copy(writer.rest().size());
            text = writer.take();
          }};
}

NormalizerStep normalize::collapse_blanks() {
  return {"collapse_blanks", [](NormalizedText& text, const SegmentPlace&) {
            TextRewriter writer(text);
            const std::size_t last = text.text.find_last_not_of(' ');
            const std::size_t end = last == std::string::npos ? 0 : last + 1;
            bool after_blank = true;  // so that blanks in front go
            while (writer.position() < end) {
              const bool blank = writer.rest().front() == ' ';
              if (blank && after_blank) {
                writer.replace(1, "");
              } else {
                writer.copy(1);
              }
              after_blank = blank;
            }
            text = writer.take();
          }};
}

NormalizerStep normalize::shorten_blanks(std::string to) {
  std::string canonical = "shorten_blanks " + sized(to);
  return {std::move(canonical), [to = std::move(to)](NormalizedText& text, const SegmentPlace&) {
            TextRewriter writer(text);
            while (!writer.done()) {
              const std::size_t blanks = std::min(writer.rest().find_first_not_of(' '), writer.rest().size());
              if (blanks >= 2) {
                writer.replace(blanks, to);
              } else {
                writer.copy(blanks == 0 ? std::min(writer.rest().find(' '), writer.rest().size()) : 1);
              }
            }
            text = writer.take();
          }};
}

NormalizerStep normalize::collapse_space() {
  return {"collapse_space", [](NormalizedText& text, const SegmentPlace&) {
            TextRewriter writer(text);
            writer.replace(leading_space(text.text), "");
            const std::size_t end = without_trailing_space(text.text);
            while (writer.position() < end) {
              const std::size_t space = leading_space(writer.rest());
              if (space > 0) {
                writer.replace(space, " ");
              } else {
                writer.copy(decode_utf8(writer.rest(), 0).size_bytes);
              }
            }
            text = writer.take();
          }};
}

NormalizerStep normalize::strip(bool left, bool right) {
  return {fmt::format("strip {} {}", left ? 1 : 0, right ? 1 : 0),
          [left, right](NormalizedText& text, const SegmentPlace&) {
            const std::size_t end = right ? without_trailing_space(text.text) : text.text.size();
            const std::size_t begin = left ? leading_space(std::string_view(text.text).substr(0, end)) : 0;
            TextRewriter writer(text);
            writer.replace(begin, "");
            writer.copy(end - begin);
            text = writer.take();
          }};
}

NormalizerStep normalize::nfc() {
  return composition("nfc", &icu::Normalizer2::getNFCInstance);
}

NormalizerStep normalize::nfkc() {
  return composition("nfkc", &icu::Normalizer2::getNFKCInstance);
}

NormalizedText Normalizer::apply(std::string_view text, const SegmentPlace& place, Origins origins) const {
  NormalizedText out{std::string(text), {}};
  if (origins == Origins::kKeep) {
    out.ends.resize(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) out.ends[i] = i + 1;
  }
  apply(out, place);
  return out;
}

void Normalizer::apply(NormalizedText& text, const SegmentPlace& place) const {
  for (const NormalizerStep& step : steps_) step.apply(text, place);
}

std::string Normalizer::canonical() const {
  std::string text;
  for (const NormalizerStep& step : steps_) text += step.canonical + "\n";
  return text;
}

}  // namespace fathom::text
