#pragma once
// config.json of models trained here (`model_type` "fathom"): every field of DecoderConfig, nothing else.

#include <string>

#include "harness/checkpoint/decoder_config.h"
#include "harness/checkpoint/json_reader.h"

namespace fathom::checkpoint {

/// Text of config.json; read_config() gives the same configuration back, field by field.
std::string fathom_config_json(const DecoderConfig& config);

/// \throws ModelError  for a missing or unknown key, or a value out of range; names it.
DecoderConfig parse_fathom_config(const JsonObject& json);

}  // namespace fathom::checkpoint
