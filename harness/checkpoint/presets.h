#pragma once
// Published models by name: what their makers' files declare about positions, resolved like any config.json.

#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::checkpoint {

struct ModelPreset {
  std::string name;
  std::string source;        ///< the file that the row was read from
  std::string note;          ///< where the row differs from that file, or what it leaves open
  std::int64_t claimed = 0;  ///< context by the maker's word, which may be above the file's; 0: none
  std::string declared;      ///< the declared keys, as the text of a config.json
  DecoderConfig config;      ///< resolved; claimed_context is `claimed`
};

/// All rows of data/presets.json, in its order.
const std::vector<ModelPreset>& model_presets();
/// Null if there is none; upper and lower case are the same.
const ModelPreset* find_model_preset(std::string_view name);

}  // namespace fathom::checkpoint
