#include "tasks/association_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "harness/text/embedded.h"
#include "harness/text/word_tokenizer.h"

namespace fathom::tasks {
namespace {

constexpr const char* kAssociationFile = "data/associations.csv";

/// Columns of the file, in order. No field holds a comma or a quote.
enum AssociationColumn { kId, kTopic, kCueEn, kTargetEn, kHop2En, kCueZh, kTargetZh, kHop2Zh, kExclude, kColumns };

std::vector<Association> read_associations(const std::string& language) {
  const bool english = language == "en";
  std::vector<Association> rows;
  bool header = true;
  for (const std::string& line : split(text::embedded_file(kAssociationFile), '\n')) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> fields = split(line, ',');
    FATHOM_CHECK(fields.size() == kColumns, fmt::format("'{}' is not a line of {} fields", line, int{kColumns}));
    if (std::exchange(header, false)) continue;
    Association row{fields[kId],
                    fields[kTopic],
                    fields[english ? kCueEn : kCueZh],
                    fields[english ? kTargetEn : kTargetZh],
                    fields[english ? kHop2En : kHop2Zh],
                    {}};
    if (row.cue.empty()) continue;
    for (const std::string& id : split(fields[kExclude], ' ')) {
      if (!id.empty()) row.exclude.push_back(id);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Association> word_associations(const task::TaskContext& context) {
  const auto* words = dynamic_cast<const text::WordTokenizer*>(&context.assembler->tokenizer());
  const text::VocabularySpec spec = words != nullptr ? words->spec() : text::VocabularySpec{};
  const std::int64_t n = std::min(spec.n_cues, spec.n_targets);
  constexpr std::int64_t kFewest = 16;
  if (n < kFewest) {
    throw ConfigError(
        fmt::format("assoc needs a vocabulary with at least {} cue and target words, but this model's has {} and {}",
                    kFewest, spec.n_cues, spec.n_targets));
  }
  std::vector<Association> rows;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::string number = std::to_string(i);
    rows.push_back({number, "pair", "c" + number, "t" + number, {}, {}});
  }
  return rows;
}

}  // namespace

std::vector<Association> associations(const task::TaskContext& context) {
  if (context.pack->closed_vocabulary()) return word_associations(context);
  const std::string& language = context.pack->language();
  if (language != "en" && language != "zh") {
    throw ConfigError(fmt::format("pack '{}' has language = {}, but associations are given in en and zh",
                                  context.pack->name(), language));
  }
  return read_associations(language);
}

}  // namespace fathom::tasks
