#pragma once
// What load_weights() keeps. Internal to harness/engine; the one header here that shows torch.

#include <memory>
#include <string>

#include "harness/checkpoint/decoder_config.h"
#include "harness/engine/torch_language_model.h"
#include "harness/kernels/element_type.h"
#include "harness/model/decoder_lm.h"

namespace fathom::engine {

class LoadedWeights {
 public:
  checkpoint::DecoderConfig config;
  std::shared_ptr<model::DecoderLm> model;  ///< owns the parameters; position settings are those of `config`
  kernels::ElementType type = kernels::ElementType::kFloat32;  ///< of matrices, embeddings and caches
  std::string device;
  std::string fingerprint;
  std::int64_t n_parameters = 0;
};

}  // namespace fathom::engine
