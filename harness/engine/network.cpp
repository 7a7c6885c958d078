#include "harness/engine/network.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "harness/core/error.h"
#include "harness/core/hash.h"
#include "harness/engine/loaded_weights.h"
#include "harness/engine/rotation_check.h"

namespace fathom::engine {
namespace {

constexpr std::int64_t kChunkTokens = 512;
/// Rows of logits made at a time: 64 rows of 50,000 entries are 13 MB.
constexpr std::int64_t kLogitRows = 64;

torch::Dtype network_dtype(kernels::ElementType type) {
  return type == kernels::ElementType::kFloat32 ? torch::kFloat32 : torch::kBFloat16;
}

/// LibTorch reports a failed allocation as an error of its own.
[[noreturn]] void rethrow_network_error(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  if (text.find("can't allocate memory") != std::string_view::npos ||
      text.find("out of memory") != std::string_view::npos) {
    throw std::bad_alloc();
  }
  throw InvariantError(std::string(text));
}

std::int64_t total_tokens(const std::vector<ForwardPiece>& pieces) {
  std::int64_t total = 0;
  for (const ForwardPiece& piece : pieces) total += piece.n_tokens;
  return total;
}

model::ForwardInput packed_input(const std::vector<ForwardPiece>& pieces) {
  const std::int64_t total = total_tokens(pieces);
  model::ForwardInput input;
  input.ids = at::empty({1, total}, torch::kInt64);
  input.positions = at::empty({1, total}, torch::kInt64);
  auto* ids = input.ids.data_ptr<std::int64_t>();
  auto* positions = input.positions.data_ptr<std::int64_t>();
  std::int64_t begin = 0;
  for (const ForwardPiece& piece : pieces) {
    for (std::int64_t i = 0; i < piece.n_tokens; ++i) {
      ids[begin + i] = piece.ids[i];
      positions[begin + i] = piece.first_position + i;
    }
    input.sequences.push_back({begin, piece.n_tokens, piece.first_position, piece.total_len, piece.cache});
    begin += piece.n_tokens;
  }
  return input;
}

}  // namespace

struct Network::Impl {
  std::shared_ptr<model::DecoderLm> model;
  torch::Tensor encoded;
};

Network::Network(std::shared_ptr<const LoadedWeights> weights, const checkpoint::DecoderConfig& config)
    : weights_(std::move(weights)), config_(config), impl_(std::make_unique<Impl>()) {
  const at::NoGradGuard no_grad;
  // A decoder of its own, because position settings are per model; the tensors are the loaded ones.
  impl_->model = std::make_shared<model::DecoderLm>(config_, network_dtype(weights_->type));
  const auto loaded = weights_->model->named_parameters();
  for (auto& item : impl_->model->named_parameters()) {
    const torch::Tensor* source = loaded.find(item.key());
    if (source == nullptr || source->sizes() != item.value().sizes()) {
      throw ModelError("model: position settings need the tensor '" + item.key() +
                       "', which the checkpoint lacks or has in another shape");
    }
    item.value().set_data(source->data());
  }
  check_rotation(*impl_->model);
}

Network::~Network() = default;

void Network::set_encoder_input(const TokenIds& ids) {
  const at::NoGradGuard no_grad;
  torch::Tensor row = at::empty({1, static_cast<std::int64_t>(ids.size())}, torch::kInt64);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= config_.vocab_size)
      throw ModelError("model: a token id of the encoder is outside the vocabulary");
    row.data_ptr<std::int64_t>()[i] = ids[i];
  }
  impl_->encoded = impl_->model->encode(row);
}

void Network::forward(const std::vector<ForwardPiece>& pieces, const LogitConsumer& consumer) {
  const at::NoGradGuard no_grad;
  try {
    model::ForwardInput input = packed_input(pieces);
    input.encoded = impl_->encoded;
    const torch::Tensor hidden = impl_->model->hidden(input)[0];  // [tokens, d_model]
    std::vector<std::int64_t> rows;
    std::vector<std::pair<std::size_t, std::int64_t>> owners;
    std::int64_t begin = 0;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      for (const std::int64_t offset : pieces[p].wanted) {
        rows.push_back(begin + offset);
        owners.emplace_back(p, offset);
      }
      begin += pieces[p].n_tokens;
      pieces[p].cache->set_length(pieces[p].first_position + pieces[p].n_tokens);
    }
    const auto n_rows = static_cast<std::int64_t>(rows.size());
    for (std::int64_t first = 0; first < n_rows; first += kLogitRows) {
      const std::int64_t n = std::min(kLogitRows, n_rows - first);
      const torch::Tensor index = at::from_blob(rows.data() + first, {n}, torch::kInt64);
      const torch::Tensor logits = impl_->model->logits(hidden.index_select(0, index)).contiguous();
      for (std::int64_t i = 0; i < n; ++i) {
        const auto& [piece, offset] = owners[static_cast<std::size_t>(first + i)];
        consumer(piece, offset, logits.data_ptr<float>() + i * config_.vocab_size);
      }
    }
  } catch (const c10::Error& error) {
    rethrow_network_error(error);
  }
}

std::uint64_t Network::rotation_state(std::int64_t total_len) const {
  StreamingHash hash;
  for (std::int64_t layer = 0; layer < config_.n_layers(); ++layer) {
    const position::PositionScheme& scheme = impl_->model->scheme(layer);
    const std::uint64_t state = scheme.rotation_state(total_len);
    const double factor = scheme.softmax_scale_factor(total_len);
    hash.update({reinterpret_cast<const char*>(&state), sizeof state});
    hash.update({reinterpret_cast<const char*>(&factor), sizeof factor});
  }
  return hash.digest().low;
}

std::optional<std::int64_t> Network::max_positions() const {
  std::optional<std::int64_t> least;
  for (std::int64_t layer = 0; layer < config_.n_layers(); ++layer) {
    const auto limit = impl_->model->scheme(layer).max_positions();
    if (limit && (!least || *limit < *least)) least = limit;
  }
  return least;
}

KvCache Network::make_cache() const {
  return KvCache(config_, weights_->type);
}

bool keeps_stale_keys(const checkpoint::DecoderConfig& config) {
  return std::any_of(config.layers.begin(), config.layers.end(), [](const checkpoint::LayerSpec& layer) {
    return layer.position.scaling.length_policy == rope::LengthPolicy::kHf &&
           checkpoint::depends_on_length(layer.position);
  });
}

std::int64_t chunk_end(std::int64_t begin, std::int64_t n_tokens) {
  return std::min(n_tokens, (begin / kChunkTokens + 1) * kChunkTokens);
}

}  // namespace fathom::engine
