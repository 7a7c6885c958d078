#pragma once
// What the class of a `model_type` decides about positions, where a config.json is silent or not asked: one row of
// data/hf_families.json each.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/json_reader.h"

namespace fathom::checkpoint {

using KeyNames = std::map<std::string, std::string, std::less<>>;

/// Rules are named; hf_positions.cpp, hf_schemes.cpp and layer_patterns.cpp hold the function of each name.
struct HfFamily {
  std::string model_type;
  std::string text_model_type;  ///< set for a model of several parts: type of the decoder in its text_config

  std::string scheme = "rope";
  RopeLayout layout = RopeLayout::kSplitHalf;
  RotarySide side = RotarySide::kPrefix;
  std::string heads = "plain";            ///< or "mla": d_head = nope part + rope part, which is the rotated suffix
  std::string layers = "full";            ///< which layers see everything, a window, a chunk
  std::string rotates = "all";            ///< which of them rotate
  std::string softmax_scale = "default";  ///< 1 / sqrt(d_head)
  std::string temperature = "none";
  double partial = 1;                             ///< partial_rotary_factor of the class
  std::string local_theta;                        ///< key of the sliding layers' theta, which no scaling touches
  std::string global_theta;                       ///< key of the other layers' theta, where it is not rope_theta
  std::string local_block = "sliding_attention";  ///< name of the sliding layers' block in rope_parameters
  std::string global_block = "full_attention";
  bool yarn_is_longrope = false;                ///< Phi-3 files call their longrope yarn
  bool whole_head = false;                      ///< transformers' class rotates all of a head, whatever the file says
  std::optional<double> yarn_attention_factor;  ///< in place of YaRN's own, where the file has none
  KeyNames names;                               ///< key of this table → key of the family's files
  KeyNames local_names;                         ///< the same for sliding layers only
  KeyNames global_names;                        ///< and for the others
  bool ignores_layer_types = false;             ///< transformers' class goes by its own rule only
  bool full_layers_slide = false;               ///< a sliding_window is that of all softmax layers, however listed
  bool reads_rotary_dim = false;                ///< the file may give the rotated width in lanes
  KeyNames only;                                ///< keys that may say this one thing, which the class does anyway
  std::optional<JsonObject> defaults;           ///< values of the class for keys that a file leaves out
};

/// The row of a model_type, or null.
const HfFamily* find_hf_family(std::string_view model_type);
/// Model types in the order of the file.
std::vector<std::string> hf_model_types();

}  // namespace fathom::checkpoint
