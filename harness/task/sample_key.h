#pragma once
// The canonical name of a sample and the random streams that hang on it (tasks specification 0.4).

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/core/random.h"
#include "harness/task/task.h"

namespace fathom::task {

/// Everything that a sample's randomness depends on.
struct SampleKeyParts {
  std::string task;  ///< "niah_single_2@balanced"
  std::int32_t version = 0;
  std::map<std::string, std::string> parameters;  ///< task options, sorted by name; decimal integers, no floats
  std::optional<std::int64_t> length_tokens;      ///< nothing: the task has sizes of its own
  std::optional<std::int32_t> depth_bp;
  std::int64_t index = 0;
  std::uint64_t seed = 0;
  PairMode pair = PairMode::kBoth;
  Control control = Control::kNone;  ///< in the key only: no stream depends on it
};

/// `fathom/1|task|v=VERSION|k=v;k=v…|L=…|d=…|i=…|s=…`, `-` for none; a control adds `|c=…`.
std::string sample_key(const SampleKeyParts& parts);

/// Draws of one stream never shift another.
enum class SampleStream {
  kFacts,  ///< keys, values, names; leaves d and L out as `pair` says
  kPlace,  ///< positions; paired like kFacts, so that distractors keep their places while the gold needle moves
  kOrder,  ///< permutations
  kHay,    ///< haystack; leaves d and L out: one sample has one haystack over all lengths and depths
  kAux     ///< everything that is not in the prompt
};

/// Key of a stream: the sample key without what the stream leaves out, then `|` and the stream's name.
RngKey stream_key(const SampleKeyParts& parts, SampleStream stream);
RngStream sample_stream(const SampleKeyParts& parts, SampleStream stream);

/// What shapes a sample's bytes besides its key.
struct AddressParts {
  std::string pack;       ///< fingerprint of the prompt pack
  std::string words;      ///< fingerprint of the word lists
  std::string haystack;   ///< fingerprint of the haystack source
  std::string tokenizer;  ///< fingerprint
  std::string assembler;  ///< fingerprint of style and chat template
  PairMode pair = PairMode::kBoth;
  std::int64_t generation_budget = 0;
  std::int64_t think_budget = 0;
};

/// Hex hash of the key and of every part.
std::string sample_address(const std::string& key, const AddressParts& parts);

/// "a=1;b=2" as a sorted map; nothing for an empty text.
std::map<std::string, std::string> parse_parameters(const std::string& canonical_options);

}  // namespace fathom::task
