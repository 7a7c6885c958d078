#include <fmt/format.h>

#include "harness/checkpoint/architecture.h"
#include "harness/checkpoint/gguf_config.h"
#include "harness/checkpoint/hf_config.h"
#include "harness/core/text_util.h"

namespace fathom::checkpoint {
namespace {

DecoderConfig llama_from_json(const JsonObject& config) {
  refuse_foreign_keys(config, "LlamaForCausalLM",
                      {"layer_types", "no_rope_layers", "qk_layernorm", "qk_norm", "rope_interleave",
                       "rope_interleaved", "sliding_window", "use_qk_norm"});
  DecoderConfig out = read_hf_decoder(config);
  out.attention_bias = config.flag("attention_bias").value_or(false);
  out.attention_out_bias = out.attention_bias;
  out.mlp_bias = config.flag("mlp_bias").value_or(false);
  return out;
}

DecoderConfig llama_from_gguf(const GgufFile& file) {
  DecoderConfig out = read_gguf_decoder(file);
  if (const auto experts = file.integer("llama.expert_count"); experts && *experts != 0) {
    file.fail("llama.expert_count", fmt::format("= {}: mixtures of experts are not supported", *experts));
  }
  out.tied_head = file.find_tensor("output.weight") == nullptr;
  out.attention_bias = file.find_tensor("blk.0.attn_q.bias") != nullptr;
  out.attention_out_bias = file.find_tensor("blk.0.attn_output.bias") != nullptr;
  out.mlp_bias = file.find_tensor("blk.0.ffn_up.bias") != nullptr;
  // The converter permutes the rows of q and k so that pairs stand side by side; they are used as they are.
  return out;
}

/// File names of one layer's parts, in the order of `llama_tensors`.
struct LlamaNames {
  const char *embedding, *final_norm, *head, *layer;
  const char *attention_norm, *q, *k, *v, *o, *mlp_norm, *gate, *up, *down;
};

constexpr LlamaNames kLlamaJsonNames = {"model.embed_tokens.weight",
                                        "model.norm.weight",
                                        "lm_head.weight",
                                        "model.layers",
                                        "input_layernorm",
                                        "self_attn.q_proj",
                                        "self_attn.k_proj",
                                        "self_attn.v_proj",
                                        "self_attn.o_proj",
                                        "post_attention_layernorm",
                                        "mlp.gate_proj",
                                        "mlp.up_proj",
                                        "mlp.down_proj"};

constexpr LlamaNames kLlamaGgufNames = {
    "token_embd.weight", "output_norm.weight", "output.weight", "blk",    "attn_norm", "attn_q", "attn_k", "attn_v",
    "attn_output",       "ffn_norm",           "ffn_gate",      "ffn_up", "ffn_down"};

enum class LlamaBias { kNo, kYes };

void add_llama_linear(std::vector<TensorRule>& rules, const std::string& canonical, const std::string& stored,
                      std::vector<std::int64_t> shape, LlamaBias bias) {
  const std::int64_t n_out = shape.front();
  rules.push_back({canonical + ".weight", stored + ".weight", std::move(shape)});
  if (bias == LlamaBias::kYes) rules.push_back({canonical + ".bias", stored + ".bias", {n_out}});
}

std::vector<TensorRule> llama_tensors(const DecoderConfig& config, const LlamaNames& names) {
  const auto bias_if = [](bool present) { return present ? LlamaBias::kYes : LlamaBias::kNo; };
  const std::int64_t d = config.d_model;
  std::vector<TensorRule> rules = {{"token_embedding", names.embedding, {config.vocab_size, d}},
                                   {"final_norm.weight", names.final_norm, {d}}};
  if (!config.tied_head) rules.push_back({"head.weight", names.head, {config.vocab_size, d}});
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const LayerSpec& layer = config.layers[i];
    const std::string to = fmt::format("layers.{}.", i);
    const std::string from = fmt::format("{}.{}.", names.layer, i);
    const std::int64_t q_width = layer.n_heads * layer.d_head;
    const std::int64_t kv_width = layer.n_kv_heads * layer.d_head;
    const LlamaBias qkv = bias_if(config.attention_bias);
    const LlamaBias mlp = bias_if(config.mlp_bias);
    add_llama_linear(rules, to + "attention_norm", from + names.attention_norm, {d}, LlamaBias::kNo);
    add_llama_linear(rules, to + "attention.q", from + names.q, {q_width, d}, qkv);
    add_llama_linear(rules, to + "attention.k", from + names.k, {kv_width, d}, qkv);
    add_llama_linear(rules, to + "attention.v", from + names.v, {kv_width, d}, qkv);
    add_llama_linear(rules, to + "attention.o", from + names.o, {d, q_width}, bias_if(config.attention_out_bias));
    add_llama_linear(rules, to + "mlp_norm", from + names.mlp_norm, {d}, LlamaBias::kNo);
    add_llama_linear(rules, to + "mlp.gate", from + names.gate, {layer.d_ff, d}, mlp);
    add_llama_linear(rules, to + "mlp.up", from + names.up, {layer.d_ff, d}, mlp);
    add_llama_linear(rules, to + "mlp.down", from + names.down, {d, layer.d_ff}, mlp);
  }
  return rules;
}

std::vector<TensorRule> llama_json_tensors(const DecoderConfig& config) {
  return llama_tensors(config, kLlamaJsonNames);
}

std::vector<TensorRule> llama_gguf_tensors(const DecoderConfig& config) {
  return llama_tensors(config, kLlamaGgufNames);
}

/// Tables that the configuration reads, frequencies that old files carry, and the head of a tied model.
bool llama_ignores(std::string_view name) {
  return name == "rope_freqs.weight" || name == "rope_factors_short.weight" || name == "rope_factors_long.weight" ||
         ends_with(name, ".rotary_emb.inv_freq") || name == "lm_head.weight";
}

}  // namespace

ArchitectureEntry families::llama_entry() {
  ArchitectureEntry entry{};
  entry.name = "llama";
  entry.summary = "RMSNorm, SwiGLU, grouped heads, RoPE on every layer (Llama 1-3, SmolLM2, TinyLlama, Yi).";
  entry.config_from_json = &llama_from_json;
  entry.config_from_gguf = &llama_from_gguf;
  entry.json_tensors = &llama_json_tensors;
  entry.gguf_tensors = &llama_gguf_tensors;
  entry.is_ignored = &llama_ignores;
  return entry;
}

}  // namespace fathom::checkpoint
