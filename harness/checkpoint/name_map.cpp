#include "harness/checkpoint/name_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "harness/checkpoint/decoder_tensors.h"
#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

std::int64_t row_width(const std::vector<std::int64_t>& shape) {
  std::int64_t width = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) width *= shape[i];
  return width;
}

/// A canonical name in parts: "mlp.experts.3.gate.weight" has stem "mlp.experts.#.gate", suffix ".weight", expert 3.
struct NameParts {
  std::string stem, suffix;
  std::int64_t expert = -1;
};

NameParts split_name(const std::string& name) {
  NameParts parts;
  parts.stem = name;
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (!ends_with(name, suffix)) continue;
    parts.stem = name.substr(0, name.size() - suffix.size());
    parts.suffix = suffix;
  }
  for (const std::string_view experts : {"mlp.experts.", "mlp.always."}) {
    if (!starts_with(parts.stem, experts)) continue;
    const std::size_t end = parts.stem.find('.', experts.size());
    parts.expert = std::stoll(parts.stem.substr(experts.size(), end - experts.size()));
    parts.stem.replace(experts.size(), end - experts.size(), "#");
  }
  return parts;
}

/// One canonical tensor on its way to a rule.
class RuleMaker {
 public:
  /// \param layer  the layer that the tensors belong to, null for those of the whole decoder.
  explicit RuleMaker(const LayerSpec* layer) : layer_(layer) {}

  std::optional<TensorRule> make(const NamedShape& tensor, const std::vector<StoredName>& names) const {
    const NameParts parts = split_name(tensor.name);
    for (const StoredName& name : names) {
      if (name.canonical == parts.stem + parts.suffix) return fill(tensor, parts, name, std::string(name.stored));
    }
    for (const StoredName& name : names) {
      if (name.canonical == parts.stem && !parts.suffix.empty())
        return fill(tensor, parts, name, std::string(name.stored) + parts.suffix);
    }
    return std::nullopt;
  }

 private:
  TensorRule fill(const NamedShape& tensor, const NameParts& parts, const StoredName& name, std::string stored) const {
    TensorRule rule;
    rule.canonical = tensor.name;
    rule.shape = tensor.shape;
    const std::int64_t rows = tensor.shape.front(), width = row_width(tensor.shape);
    // Rows of the stored matrix: this tensor's, and those of what stands beside it.
    std::int64_t stored_rows = rows, begin = 0, step = 1, group_rows = rows, group_step = 0;
    place(tensor, parts, name.packing, {stored_rows, begin, step, group_rows, group_step});
    const bool transposed = name.transposed && tensor.shape.size() == 2;
    const std::int64_t row_stride = transposed ? 1 : width;
    rule.view.offset = begin * row_stride;
    rule.view.row_stride = step * row_stride;
    rule.view.group_rows = group_rows;
    rule.view.group_stride = group_step * row_stride;
    rule.view.column_stride = transposed ? stored_rows : 1;
    rule.stored_shape = tensor.shape;
    rule.stored_shape.front() = stored_rows;
    if (transposed) std::swap(rule.stored_shape[0], rule.stored_shape[1]);
    if (parts.expert >= 0) {
      const std::size_t mark = stored.find('#');
      if (mark != std::string::npos) {
        stored.replace(mark, 1, std::to_string(parts.expert));
      } else {
        rule.view.offset += parts.expert * stored_rows * width;
        const bool always = starts_with(parts.stem, "mlp.always.");
        rule.stored_shape.insert(rule.stored_shape.begin(), always ? layer_->moe->n_always : layer_->moe->n_experts);
      }
    }
    if (name.packing == Packing::kRowsApart) rule.parts = rows_apart(rule, stored);
    rule.stored = std::move(stored);
    return rule;
  }

  static std::vector<TensorRule> rows_apart(const TensorRule& rule, const std::string& stored) {
    const std::int64_t width = row_width(rule.shape);
    std::vector<TensorRule> rows;
    for (std::int64_t row = 0; row < rule.shape.front(); ++row) {
      std::string name = stored;
      name.replace(name.find('#'), 1, std::to_string(row));
      rows.push_back({rule.canonical, std::move(name), {1, width}, {width}, {0, 1, width, width, 1}});
    }
    return rows;
  }

  struct Place {
    std::int64_t &stored_rows, &begin, &step, &group_rows, &group_step;
  };

  void place(const NamedShape& tensor, const NameParts& parts, Packing packing, const Place& to) const {
    const std::int64_t rows = tensor.shape.front();
    const bool is_gate = ends_with(parts.stem, ".gate");
    switch (packing) {
      case Packing::kAlone:
      case Packing::kRowsApart:
        return;
      case Packing::kGateUp:
        to.stored_rows = 2 * rows;
        to.begin = is_gate ? 0 : rows;
        return;
      case Packing::kGateUpAlternating:
        to.stored_rows = 2 * rows;
        to.begin = is_gate ? 0 : 1;
        to.step = 2;
        return;
      case Packing::kQkv:
      case Packing::kQkvByHead: {
        const std::int64_t d = layer_->d_head, group = layer_->n_heads / layer_->n_kv_heads;
        const bool by_head = packing == Packing::kQkvByHead;
        const std::int64_t q = by_head ? group * d : layer_->n_heads * d, kv = by_head ? d : layer_->n_kv_heads * d;
        to.stored_rows = (layer_->n_heads + 2 * layer_->n_kv_heads) * d;
        to.begin = ends_with(parts.stem, ".q") ? 0 : ends_with(parts.stem, ".k") ? q : q + kv;
        if (!by_head) return;
        to.group_rows = ends_with(parts.stem, ".q") ? q : kv;
        to.group_step = q + 2 * kv;
        return;
      }
    }
  }

  const LayerSpec* layer_;
};

TensorRule required_rule(std::optional<TensorRule> rule, const std::string& name) {
  FATHOM_CHECK(rule.has_value(), "the name map has no name for " + name);
  return std::move(*rule);
}

void finish_rule(const DecoderConfig& config, const NameMap& names, TensorRule& rule) {
  const bool by_token = rule.canonical == "token_embedding" || rule.canonical == "head.weight";
  if (config.stored_vocab > 0 && by_token) rule.stored_shape.front() = config.stored_vocab;
  if (names.norms_less_one && ends_with(rule.canonical, "norm.weight")) rule.added = 1;
}

const std::vector<StoredName>& layer_names(const NameMap& names, const LayerSpec& layer) {
  if (layer.linear && !names.linear_layers.empty()) return names.linear_layers;
  return layer.moe && !names.sparse_layers.empty() ? names.sparse_layers : names.layers;
}

}  // namespace

std::vector<TensorRule> map_tensors(const DecoderConfig& config, const NameMap& names) {
  std::vector<TensorRule> rules;
  const RuleMaker top(nullptr);
  for (const NamedShape& tensor : decoder_tensors(config)) {
    if (starts_with(tensor.name, "layers.") || starts_with(tensor.name, "encoder.layers.")) continue;
    rules.push_back(required_rule(top.make(tensor, names.whole), tensor.name));
    finish_rule(config, names, rules.back());
  }
  if (const auto table = position_table(config))
    rules.push_back(required_rule(top.make(*table, names.whole), table->name));
  for (std::int64_t i = 0; i < config.n_layers(); ++i) {
    const LayerSpec& layer = config.layers[static_cast<std::size_t>(i)];
    std::vector<NamedShape> tensors = layer_tensors(config, i);
    for (NamedShape& tensor : layer_position_tensors(config, i)) tensors.push_back(std::move(tensor));
    const RuleMaker maker(&layer);
    for (const NamedShape& tensor : tensors) {
      TensorRule rule = required_rule(maker.make(tensor, layer_names(names, layer)), tensor.name);
      finish_rule(config, names, rule);
      rule.canonical = fmt::format("layers.{}.{}", i, rule.canonical);
      rule.stored = fmt::format("{}{}.{}", names.layer, i, rule.stored);
      for (TensorRule& part : rule.parts) part.stored = fmt::format("{}{}.{}", names.layer, i, part.stored);
      rules.push_back(std::move(rule));
    }
  }
  for (std::int64_t i = 0; config.encoder && i < config.encoder->n_layers; ++i) {
    const RuleMaker maker(&config.layers.front());
    for (const NamedShape& tensor : encoder_layer_tensors(config)) {
      TensorRule rule = required_rule(maker.make(tensor, names.encoder_layers), tensor.name);
      rule.canonical = fmt::format("encoder.layers.{}.{}", i, rule.canonical);
      rule.stored = fmt::format("{}{}.{}", names.encoder_layer, i, rule.stored);
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

std::vector<StoredName> with_names(std::vector<StoredName> base, const std::vector<StoredName>& changed) {
  for (const StoredName& name : changed) {
    const auto found = std::find_if(base.begin(), base.end(),
                                    [&](const StoredName& entry) { return entry.canonical == name.canonical; });
    if (found == base.end()) {
      base.push_back(name);
    } else {
      *found = name;
    }
  }
  return base;
}

const NameMap& llama_style_names() {
  static const NameMap names = {
      "model.layers.",
      {{"attention_norm", "input_layernorm"},
       {"attention.q", "self_attn.q_proj"},
       {"attention.k", "self_attn.k_proj"},
       {"attention.v", "self_attn.v_proj"},
       {"attention.o", "self_attn.o_proj"},
       {"attention.q_norm", "self_attn.q_norm"},
       {"attention.k_norm", "self_attn.k_norm"},
       {"mlp_norm", "post_attention_layernorm"},
       {"mlp.gate", "mlp.gate_proj"},
       {"mlp.up", "mlp.up_proj"},
       {"mlp.down", "mlp.down_proj"}},
      {{"token_embedding", "model.embed_tokens.weight"}, {"final_norm", "model.norm"}, {"head", "lm_head"}},
      false};
  return names;
}

const NameMap& gguf_style_names() {
  static const NameMap names = {"blk.",
                                {{"attention_norm", "attn_norm"},
                                 {"attention.q", "attn_q"},
                                 {"attention.k", "attn_k"},
                                 {"attention.v", "attn_v"},
                                 {"attention.o", "attn_output"},
                                 {"attention.q_norm", "attn_q_norm"},
                                 {"attention.k_norm", "attn_k_norm"},
                                 {"attention.sinks", "attn_sinks.weight"},
                                 {"attention.q_a", "attn_q_a"},
                                 {"attention.q_a_norm", "attn_q_a_norm"},
                                 {"attention.q_b", "attn_q_b"},
                                 {"attention.kv_a", "attn_kv_a_mqa"},
                                 {"attention.kv_a_norm", "attn_kv_a_norm"},
                                 {"attention.kv_b", "attn_kv_b"},
                                 {"attention_post_norm", "post_attention_norm"},
                                 {"mlp_norm", "ffn_norm"},
                                 {"mlp.gate", "ffn_gate"},
                                 {"mlp.up", "ffn_up"},
                                 {"mlp.down", "ffn_down"},
                                 {"mlp_post_norm", "post_ffw_norm"},
                                 {"mlp.router", "ffn_gate_inp"},
                                 {"mlp.router_correction", "exp_probs_b.bias"},
                                 {"mlp.experts.#.gate", "ffn_gate_exps"},
                                 {"mlp.experts.#.up", "ffn_up_exps"},
                                 {"mlp.experts.#.down", "ffn_down_exps"},
                                 {"mlp.shared.gate", "ffn_gate_shexp"},
                                 {"mlp.shared.up", "ffn_up_shexp"},
                                 {"mlp.shared.down", "ffn_down_shexp"}},
                                {{"token_embedding", "token_embd.weight"},
                                 {"embedding_norm", "token_embd_norm"},
                                 {"position_embedding", "position_embd.weight"},
                                 {"final_norm", "output_norm"},
                                 {"head", "output"}},
                                false};
  return names;
}

NameMap with_fused_qkv(NameMap names) {
  names.layers = with_names(names.layers, {{"attention.q", "attn_qkv", Packing::kQkv},
                                           {"attention.k", "attn_qkv", Packing::kQkv},
                                           {"attention.v", "attn_qkv", Packing::kQkv}});
  return names;
}

NameMap gemma_style_names() {
  NameMap names = llama_style_names();
  names.norms_less_one = true;
  names.layers = with_names(names.layers, {{"attention_post_norm", "post_attention_layernorm"},
                                           {"mlp_norm", "pre_feedforward_layernorm"},
                                           {"mlp_post_norm", "post_feedforward_layernorm"}});
  return names;
}

NameMap latent_expert_names() {
  NameMap names = llama_style_names();
  names.layers = with_names(names.layers, {{"mlp.router", "mlp.gate"},
                                           {"mlp.experts.#.gate", "mlp.experts.#.gate_proj"},
                                           {"mlp.experts.#.up", "mlp.experts.#.up_proj"},
                                           {"mlp.experts.#.down", "mlp.experts.#.down_proj"},
                                           {"mlp.router_correction", "mlp.gate.e_score_correction_bias"},
                                           {"mlp.shared.gate", "mlp.shared_experts.gate_proj"},
                                           {"mlp.shared.up", "mlp.shared_experts.up_proj"},
                                           {"mlp.shared.down", "mlp.shared_experts.down_proj"},
                                           {"attention.q_a", "self_attn.q_a_proj"},
                                           {"attention.q_a_norm", "self_attn.q_a_layernorm"},
                                           {"attention.q_b", "self_attn.q_b_proj"},
                                           {"attention.kv_a", "self_attn.kv_a_proj_with_mqa"},
                                           {"attention.kv_a_norm", "self_attn.kv_a_layernorm"},
                                           {"attention.kv_b", "self_attn.kv_b_proj"}});
  return names;
}

void split_latent_values(const DecoderConfig& config, std::vector<TensorRule>& rules) {
  for (TensorRule& rule : rules) {
    const std::size_t at = rule.stored.find("attn_kv_b.weight");
    if (at == std::string::npos) continue;
    const LayerSpec& layer = config.layers.front();
    const std::int64_t heads = layer.n_heads, rank = layer.latent->kv_rank, d_value = layer.latent->d_value;
    const std::int64_t d_nope = layer.d_head - layer.latent->d_rope;
    const std::string stem = rule.stored.substr(0, at);
    // Keys of a head stand transposed: [heads, rank, d_nope].
    TensorRule keys{rule.canonical, stem + "attn_k_b.weight", {heads * d_nope, rank}, {heads, rank, d_nope}};
    keys.view = {0, d_nope, rank * d_nope, 1, d_nope};
    TensorRule values{rule.canonical, stem + "attn_v_b.weight", {heads * d_value, rank}, {heads, d_value, rank}};
    values.view = {0, d_value, d_value * rank, rank, 1};
    rule.parts = {std::move(keys), std::move(values)};
  }
}

void read_view(const TensorRule& rule, std::int64_t row_begin, std::int64_t row_end, const ElementReader& read,
               float* out) {
  const std::int64_t width = row_width(rule.shape), rows = row_end - row_begin;
  if (rows <= 0 || width == 0) return;
  const TensorView& view = rule.view;
  const std::int64_t group = view.group_rows > 0 ? view.group_rows : std::max<std::int64_t>(1, rule.shape.front());
  const auto first_of = [&](std::int64_t row) {
    return view.offset + row / group * view.group_stride + row % group * view.row_stride;
  };
  if (view.column_stride == 1) {
    for (std::int64_t row = row_begin; row < row_end;) {
      std::int64_t end = row + 1;
      while (end < row_end && first_of(end) == first_of(end - 1) + width) ++end;
      read(first_of(row), first_of(row) + (end - row) * width, out + (row - row_begin) * width);
      row = end;
    }
  } else {
    // A stored row holds one column of ours: read what lies between our first and last row, and pick.
    std::int64_t low = first_of(row_begin), high = low;
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      low = std::min(low, first_of(row));
      high = std::max(high, first_of(row));
    }
    std::vector<float> column(static_cast<std::size_t>(high - low + 1));
    for (std::int64_t c = 0; c < width; ++c) {
      const std::int64_t at = c * view.column_stride;
      read(low + at, high + at + 1, column.data());
      for (std::int64_t row = row_begin; row < row_end; ++row)
        out[(row - row_begin) * width + c] = column[static_cast<std::size_t>(first_of(row) - low)];
    }
  }
  if (rule.added == 0) return;
  for (std::int64_t i = 0; i < rows * width; ++i) out[i] += rule.added;
}

}  // namespace fathom::checkpoint
