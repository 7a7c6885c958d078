#pragma once
// What a GGUF file does not say about positions because the loader of its architecture knows it: one row of
// data/gguf_families.json each, after llama.cpp.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/checkpoint/decoder_config.h"

namespace fathom::checkpoint {

struct GgufFamily {
  std::string architecture;
  std::string scheme = "rope";  ///< rope, alibi, learned, t5, nope
  RopeLayout layout = RopeLayout::kSplitHalf;
  RotarySide side = RotarySide::kPrefix;
  bool latent = false;                ///< latent attention: width under key_length_mla, rotated suffix
  std::int64_t window_pattern = 0;    ///< full iff (i + 1) % n == 0; 0: no windows
  std::int64_t default_window = 0;    ///< of a file that gives none
  bool windows_everywhere = false;    ///< a window that a file gives is every layer's; llama.cpp ignores it
  std::int64_t makers_window = 0;     ///< in the maker's configuration, which the converter leaves out
  bool windows_unscaled = false;      ///< window layers have the others' theta, but no scaling (OLMo-3)
  std::int64_t rope_step = 0;         ///< no rotation iff (i + 1) % n == 0; 0: every layer rotates
  std::int64_t softmax_interval = 0;  ///< softmax iff (i + 1) % n == 0; 0: every layer
  std::int64_t chunk = 0;             ///< Llama-4: rotating layers attend within chunks of so many tokens
  bool windows_rotate_only = false;
  std::optional<double> swa_base;  ///< theta of window layers, which no scaling touches
  std::string softmax_scale = "default";
  /// Gemma's sizes, whose softmax scale is known: layers, and widths for models that were cut or grown. That of the
  /// last one is (model width / heads)^-0.5, that of the others d_head^-0.5.
  std::vector<std::int64_t> published_layers, published_widths;
  std::optional<double> temperature_scale;
  std::int64_t temperature_length = 0;
  std::optional<double> max_alibi_bias;
  bool expects_divisors = false;  ///< Llama-3.1 and later need rope_freqs
  bool untruncated = false;       ///< the maker's YaRN ramp is not rounded; llama.cpp's is
};

/// What is known of Gemma's softmax scale, for which query_pre_attn_scalar has no key in GGUF.
enum class GemmaScale {
  kByHead,   ///< d_head^-0.5; of every other family too
  kByWidth,  ///< (model width / heads)^-0.5
  kUnknown   ///< neither so many layers nor such a width was ever published
};
GemmaScale gemma_scale(const GgufFamily& family, std::int64_t n_layers, std::int64_t d_model);

/// The row of a general.architecture, or null.
const GgufFamily* find_gguf_family(std::string_view architecture);
std::vector<std::string> gguf_architectures();

}  // namespace fathom::checkpoint
