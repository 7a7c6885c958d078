#include "tests/support/gguf_writer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tests/support/gguf_forms.h"

namespace fathom::test {
namespace {

using nlohmann::json;

struct Values {
  std::vector<std::int64_t> shape;
  std::vector<float> data;
};

Values read_values(const checkpoint::Checkpoint& source, const checkpoint::TensorInfo& info) {
  Values out{info.shape, {}};
  std::size_t n = 1;
  for (const std::int64_t size : info.shape) n *= static_cast<std::size_t>(size);
  out.data.resize(n);
  source.read_float32(info.name, 0, info.shape.front(), out.data.data());
  return out;
}

std::size_t row_size(const Values& values) {
  return values.data.size() / static_cast<std::size_t>(values.shape.front());
}

/// Rows i and i + d/2 of every head next to each other.
Values pairs_together(const Values& values, std::int64_t n_heads) {
  Values out = values;
  const std::size_t width = row_size(values), d = static_cast<std::size_t>(values.shape.front() / n_heads);
  for (std::size_t row = 0; row < static_cast<std::size_t>(values.shape.front()); ++row) {
    const std::size_t head = row / d, place = row % d;
    const std::size_t from = head * d + place % 2 * (d / 2) + place / 2;
    for (std::size_t c = 0; c < width; ++c) out.data[row * width + c] = values.data[from * width + c];
  }
  return out;
}

/// Rows [begin, begin + n) of every group of `group` rows.
Values rows_of_groups(const Values& values, std::int64_t group, std::int64_t begin, std::int64_t n) {
  Values out{{values.shape.front() / group * n, values.shape[1]}, {}};
  const std::size_t width = row_size(values);
  for (std::int64_t row = 0; row < values.shape.front(); ++row) {
    if (row % group < begin || row % group >= begin + n) continue;
    const auto at = values.data.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * width);
    out.data.insert(out.data.end(), at, at + static_cast<std::ptrdiff_t>(width));
  }
  return out;
}

/// [heads * d, rank] to [heads, rank, d].
Values transposed_heads(const Values& values, std::int64_t d) {
  const std::int64_t rank = values.shape[1], heads = values.shape[0] / d;
  Values out{{heads, rank, d}, std::vector<float>(values.data.size())};
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < d; ++i) {
      for (std::int64_t r = 0; r < rank; ++r) {
        out.data[static_cast<std::size_t>((h * rank + r) * d + i)] =
            values.data[static_cast<std::size_t>((h * d + i) * rank + r)];
      }
    }
  }
  return out;
}

/// The tensors of a file: parts of one name are put one behind the other, in order.
class TensorCollector {
 public:
  TensorCollector(const checkpoint::Checkpoint& source, const GgufForm& form, GgufYear year)
      : source_(source), form_(form), year_(year) {
    for (const checkpoint::TensorInfo& info : source.tensors()) add(info);
  }

  /// Every tensor goes to one of the files in turn.
  void write(const std::vector<GgufBuilder*>& files) const {
    std::size_t n = 0;
    for (const auto& [name, parts] : parts_) {
      Values whole{parts.begin()->second.shape, {}};
      whole.shape.front() = 0;
      for (const auto& [order, part] : parts) {
        whole.shape.front() += part.shape.front();
        whole.data.insert(whole.data.end(), part.data.begin(), part.data.end());
      }
      if (name.find("_exps.") != std::string::npos) {
        whole.shape.front() /= static_cast<std::int64_t>(parts.size());
        whole.shape.insert(whole.shape.begin(), static_cast<std::int64_t>(parts.size()));
      }
      files[n++ % files.size()]->floats(name, {whole.shape.rbegin(), whole.shape.rend()}, whole.data);
    }
  }
  std::size_t n_tensors() const { return parts_.size(); }

 private:
  void add(const checkpoint::TensorInfo& info) {
    std::string stem = info.name, suffix, prefix;
    for (const char* end : {".weight", ".bias"}) {
      const std::size_t at = stem.rfind(end);
      if (at == std::string::npos || at + std::string(end).size() != stem.size()) continue;
      stem.resize(at);
      suffix = end;
    }
    std::size_t layer = 0;
    if (stem.rfind("layers.", 0) == 0) {
      const std::size_t end = stem.find('.', 7);
      layer = std::stoull(stem.substr(7, end - 7));
      prefix = "blk." + std::to_string(layer) + ".";
      stem = stem.substr(end + 1);
    }
    std::int64_t order = 0;
    if (stem.rfind("mlp.experts.", 0) == 0) {
      const std::size_t end = stem.find('.', 12);
      order = std::stoll(stem.substr(12, end - 12));
      stem = "mlp.experts" + stem.substr(end);
    }
    Values values = read_values(source_, info);
    const checkpoint::LayerSpec& spec = source_.config().layers.at(layer);
    if (form_.qk_rows == QkRows::kPairsTogether && stem == "attention.q") values = pairs_together(values, spec.n_heads);
    if (form_.qk_rows == QkRows::kPairsTogether && stem == "attention.k")
      values = pairs_together(values, spec.n_kv_heads);
    if (stem == "attention.kv_b" && year_ == GgufYear::kNow) return add_latent_values(prefix, values, spec);
    std::string name = name_of(stem);
    fuse(stem, name, order);
    parts_[prefix + name + (name.find('.') == std::string::npos ? suffix : "")][order] = std::move(values);
  }

  std::string name_of(const std::string& stem) const {
    const auto own = form_.names.find(stem);
    return own != form_.names.end() ? own->second : common_gguf_names().at(stem);
  }

  void fuse(const std::string& stem, std::string& name, std::int64_t& order) const {
    const bool fused = form_.fused_qkv || (year_ == GgufYear::kBefore2025 && std::string(form_.architecture) == "phi2");
    if (fused && (stem == "attention.q" || stem == "attention.k" || stem == "attention.v")) {
      order = stem.back() == 'q' ? 0 : stem.back() == 'k' ? 1 : 2;
      name = "attn_qkv";
    }
    if (form_.fused_gate_up && (stem == "mlp.gate" || stem == "mlp.up")) {
      order = stem == "mlp.gate" ? 0 : 1;
      name = "ffn_up";
    }
  }

  void add_latent_values(const std::string& prefix, const Values& values, const checkpoint::LayerSpec& spec) {
    const std::int64_t d_value = spec.latent->d_value, d_nope = spec.d_head - spec.latent->d_rope;
    const std::int64_t group = d_nope + d_value;
    parts_[prefix + "attn_k_b.weight"][0] = transposed_heads(rows_of_groups(values, group, 0, d_nope), d_nope);
    Values by_head = rows_of_groups(values, group, d_nope, d_value);
    by_head.shape = {spec.n_heads, d_value, values.shape[1]};
    parts_[prefix + "attn_v_b.weight"][0] = std::move(by_head);
  }

  const checkpoint::Checkpoint& source_;
  const GgufForm& form_;
  GgufYear year_;
  std::map<std::string, std::map<std::int64_t, Values>> parts_;
};

/// Divisors of the frequencies, as the converter makes them for Llama 3.1.
std::vector<float> llama3_divisors(const json& rope, std::int64_t rotary_dim) {
  const double low = rope.at("low_freq_factor"), high = rope.at("high_freq_factor"), factor = rope.at("factor");
  const double original = rope.at("original_max_position_embeddings"), base = rope.at("rope_theta");
  std::vector<float> out;
  for (std::int64_t i = 0; i < rotary_dim; i += 2) {
    const double turns =
        original * std::pow(base, -static_cast<double>(i) / static_cast<double>(rotary_dim)) / (2 * std::acos(-1.0));
    const double smooth = std::fmin(1, std::fmax(0, (turns - low) / (high - low)));
    out.push_back(static_cast<float>(1 / ((1 - smooth) / factor + smooth)));
  }
  return out;
}

void longrope_keys(const json& rope, GgufBuilder& builder, GgufMetadata& out) {
  const double original = rope.at("original_max_position_embeddings");
  const double s = rope.contains("factor") ? rope.at("factor").get<double>()
                                           : out.config.at("max_position_embeddings").get<double>() / original;
  out.integer("rope.scaling.original_context_length", static_cast<std::int64_t>(original));
  out.real("rope.scaling.attn_factor", std::sqrt(1 + std::log(s) / std::log(original)));
  for (const char* list : {"short", "long"}) {
    const auto values = rope[std::string(list) + "_factor"].get<std::vector<float>>();
    builder.floats("rope_factors_" + std::string(list) + ".weight", {values.size()}, values);
  }
}

void yarn_keys(const json& rope, GgufMetadata& out) {
  const double factor = rope.at("factor");
  out.text("rope.scaling.type", "yarn");
  out.real("rope.scaling.factor", factor);
  out.integer("rope.scaling.original_context_length", rope.at("original_max_position_embeddings").get<std::int64_t>());
  if (rope.contains("beta_fast")) out.real("rope.scaling.yarn_beta_fast", rope.at("beta_fast").get<double>());
  if (rope.contains("beta_slow")) out.real("rope.scaling.yarn_beta_slow", rope.at("beta_slow").get<double>());
  if (out.config.at("model_type") != "llama" || !rope.contains("mscale")) return;
  // There is no key for mscale beside mscale_all_dim; the extra factor makes up for it.
  const auto m = [&](double k) { return 0.1 * k * std::log(factor) + 1; };
  out.real("rope.scaling.attn_factor", m(rope.at("mscale")) / m(rope.at("mscale_all_dim")) / m(1));
}

void rope_keys(const checkpoint::DecoderConfig& decoder, GgufBuilder& builder, GgufMetadata& out) {
  if (!out.config.contains("rope_parameters")) return;
  const json& all = out.config.at("rope_parameters");
  const json& rope = all.contains("full_attention") ? all.at("full_attention") : all;
  out.real("rope.freq_base", rope.at("rope_theta").get<double>());
  if (all.contains("sliding_attention"))
    out.real("rope.freq_base_swa", all.at("sliding_attention").at("rope_theta").get<double>());
  std::int64_t rotary_dim = 0;
  for (const checkpoint::LayerSpec& layer : decoder.layers)
    rotary_dim = std::max(rotary_dim, layer.position.rotary_dim);
  out.integer("rope.dimension_count", rotary_dim);
  const std::string type = rope.at("rope_type");
  if (type == "linear") {
    out.text("rope.scaling.type", "linear");
    out.real("rope.scaling.factor", rope.at("factor").get<double>());
  } else if (type == "yarn") {
    yarn_keys(rope, out);
  } else if (type == "llama3") {
    const std::vector<float> divisors = llama3_divisors(rope, rotary_dim);
    builder.floats("rope_freqs.weight", {divisors.size()}, divisors);
  } else if (type == "longrope") {
    // Phi-3's converter writes the lists and no type, Llama's a type.
    if (out.config.at("model_type") == "llama") out.text("rope.scaling.type", "longrope");
    longrope_keys(rope, builder, out);
  }
}

void common_keys(const checkpoint::DecoderConfig& decoder, GgufBuilder& builder, GgufMetadata& out) {
  out.integer("context_length", decoder.claimed_context > 0 ? decoder.claimed_context : 2048);
  out.integer("embedding_length", decoder.d_model);
  out.integer("block_count", decoder.n_layers());
  out.integer("attention.head_count", decoder.layers.front().n_heads);
  // Falcon's one head has no key of its own in config.json, and DeepSeek counts the one that all share.
  const bool shared = decoder.layers.front().latent.has_value() && out.year == GgufYear::kNow;
  out.integer("attention.head_count_kv", shared ? 1 : decoder.layers.front().n_kv_heads);
  const auto d_ff = first_of(out.config, {"intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_hidden_size"});
  out.integer("feed_forward_length", d_ff ? d_ff->get<std::int64_t>() : 4 * decoder.d_model);
  out.real("attention.layer_norm_rms_epsilon", {"rms_norm_eps"});
  out.real("attention.layer_norm_epsilon", {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"});
  out.integer("expert_count", {"num_local_experts", "num_experts"});
  out.integer("expert_used_count", {"num_experts_per_tok"});
  out.integer("expert_group_count", {"n_group"});
  out.integer("expert_group_used_count", {"topk_group"});
  if (out.config.contains("head_dim") && !decoder.layers.front().latent) {
    out.integer("attention.key_length", {"head_dim"});
    out.integer("attention.value_length", {"head_dim"});
  }
  rope_keys(decoder, builder, out);
}

}  // namespace

bool has_gguf_form(std::string_view model_type) {
  return gguf_forms().find(model_type) != gguf_forms().end();
}

std::string gguf_architecture(std::string_view model_type) {
  return gguf_forms().find(model_type)->second.architecture;
}

namespace {

GgufForm form_of(const checkpoint::Checkpoint& source, const json& config) {
  GgufForm form = gguf_forms().at(config.at("model_type").get<std::string>());
  // Falcon-40B's norms: the one of attention is the second.
  const bool two_norms = source.config().parallel_residual && !source.config().shared_norm;
  if (config.at("model_type") == "falcon" && two_norms)
    form.names = {{"attention_norm", "attn_norm_2"}, {"mlp_norm", "attn_norm"}};
  return form;
}

GgufBuilder metadata_of(const checkpoint::Checkpoint& source, const json& config, const GgufForm& form, GgufYear year) {
  GgufBuilder builder;
  builder.text("general.architecture", form.architecture);
  GgufMetadata metadata(builder, form.architecture, config, year);
  common_keys(source.config(), builder, metadata);
  if (form.keys != nullptr) form.keys(metadata);
  return builder;
}

}  // namespace

std::string gguf_of(const checkpoint::Checkpoint& source, const json& config, GgufYear year) {
  const GgufForm form = form_of(source, config);
  GgufBuilder builder = metadata_of(source, config, form, year);
  TensorCollector(source, form, year).write({&builder});
  return builder.bytes();
}

std::vector<std::string> split_gguf_of(const checkpoint::Checkpoint& source, const json& config,
                                       std::uint16_t n_files) {
  const GgufForm form = form_of(source, config);
  const TensorCollector tensors(source, form, GgufYear::kNow);
  std::vector<GgufBuilder> files(n_files);
  files[0] = metadata_of(source, config, form, GgufYear::kNow);
  std::vector<GgufBuilder*> shares;
  for (std::uint16_t i = 0; i < n_files; ++i) {
    files[i].uint16("split.no", i).uint16("split.count", n_files);
    files[i].uint32("split.tensors.count", static_cast<std::uint32_t>(tensors.n_tensors()));
    if (i > 0) shares.push_back(&files[i]);
  }
  tensors.write(shares);
  std::vector<std::string> out;
  for (const GgufBuilder& file : files) out.push_back(file.bytes());
  return out;
}

}  // namespace fathom::test
