#pragma once
// The parts of Hugging Face's config.json that decoders share, in the spelling of versions 4 and 5.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/json_reader.h"

namespace fathom::checkpoint {

/// What one class calls the keys that all decoders have, and what it takes where a file is silent.
struct HfKeys {
  const char* class_name;  ///< what `architectures` must hold, where it is given
  const char* norm_eps = "rms_norm_eps";
  double default_norm_eps = 0;  ///< 0: the file must say
  const char* activation = "hidden_act";
  const char* default_activation = "silu";
  const char* d_ff = "intermediate_size";
  std::int64_t default_d_ff = 0;  ///< in widths of the model; 0: the file must say
  bool tied = false;
};

/// One config.json on its way to a DecoderConfig: positions (hf_positions.h), sizes, norm, activation and head are read
/// at once, what else a family has afterwards; finish() refuses what nobody asked for.
class HfDecoder {
 public:
  /// Here no size may be left out. \throws ModelError  naming the key that is missing or out of range.
  HfDecoder(const JsonObject& file, const HfKeys& keys);

  DecoderConfig config;

  /// Keys under the names that the resolver gives them (hidden_size, …), with the defaults of the class.
  const JsonObject& json() const { return json_; }
  bool flag(const char* key, bool fallback) const { return json_.flag(key).value_or(fallback); }
  std::int64_t size(const char* key) const;
  std::int64_t size_up_to(const char* key, std::int64_t high) const { return json_.required_integer(key, 1, high); }
  /// \throws ModelError  if the key says otherwise.
  void must_be(const char* key, bool value) const;
  /// \throws ModelError  if layers without layer_types follow another period than the class's own.
  void only_pattern_of_class() const;

  /// \throws ModelError  for a key that would change what the decoder computes, and that this family does not read.
  DecoderConfig finish();

 private:
  JsonObject json_;
  std::vector<std::string> unread_positions_;
};

/// Activation of a name that transformers knows. \throws ModelError  for another.
Activation parse_hf_activation(const JsonObject& config, std::string_view key, const std::string& name);

}  // namespace fathom::checkpoint
