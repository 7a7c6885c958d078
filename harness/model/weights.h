#pragma once
// Checkpoint tensors to modules and back.

#include <memory>
#include <string>

#include "harness/checkpoint/checkpoint.h"
#include "harness/model/decoder_lm.h"

namespace fathom::model {

/// Fills every parameter from the checkpoint, converting to the parameter's dtype row block by row block (peak memory:
/// the weights plus one block). \throws ModelError for a missing, surplus or wrongly shaped tensor; names it.
void load_weights(DecoderLm& model, const checkpoint::Checkpoint& checkpoint);

/// Writes `config.json`, `model.safetensors` (float32) and `tokenizer.json` so that a reader sees either the old files
/// or the new ones: each is written beside its place, synced and renamed; config.json comes last. \throws DataError if
/// the folder cannot be written.
void save_checkpoint(const DecoderLm& model, const std::string& tokenizer_json, const std::string& folder);

}  // namespace fathom::model
