#pragma once
// Frequency lists of the presets that the theory tables speak of, by the tables' names.

#include <map>
#include <string>
#include <vector>

#include "tests/rope/golden_checks.h"

namespace fathom::rope {

struct PresetList {
  std::vector<double> inv_freq;
  std::int64_t n_still = 0;  ///< channels of the head that are not rotated
};

inline PresetList preset_list(const std::string& name) {
  const RopeGeometry llama2{128, 1e4, 4096};
  const auto plain = [](std::int64_t r, double base) { return default_inv_freq(r, base); };
  const auto scaled = [](const char* method, double s, const RopeGeometry& geometry,
                         const std::map<std::string, std::string>& options = {}) {
    return frequencies_of(method, s, geometry, options).inv_freq;
  };
  const std::vector<double> llama31 = scaled("llama3", 8, {128, 5e5, 8192});
  const std::vector<double> qwen25 = scaled("yarn", 4, {128, 1e6, 32768});
  const std::vector<double> deepseek = scaled("yarn", 40, {64, 1e4, 4096});
  const std::vector<double> gpt_oss = scaled("yarn", 32, {64, 1.5e5, 4096}, {{"truncate", "off"}});
  const std::map<std::string, PresetList> presets = {
      {"Llama-3.1 (llama3 x8, 5e5, d128)", {llama31}},
      {"Qwen2.5 yarn x4 (1e6, d128)", {qwen25}},
      {"DeepSeek-V3 yarn x40 (1e4, d64)", {deepseek}},
      {"gpt-oss yarn x32 no truncate (1.5e5, d64)", {gpt_oss}},
      {"PI x32 of Llama-2 (1e4,d128)", {scaled("linear", 32, llama2)}},
      {"NTK x32 of Llama-2", {scaled("ntk", 32, llama2)}},
      {"YaRN x32 of Llama-2", {scaled("yarn", 32, llama2)}},
      {"MiniMax-M3 (5e6, rotary 64)", {plain(64, 5e6)}},
      {"Llama-2 1e4", {plain(128, 1e4)}},
      {"Llama-2 + PI x8", {scaled("linear", 8, llama2)}},
      {"Llama-2 + NTK x8", {scaled("ntk", 8, llama2)}},
      {"Llama-2 + YaRN x8", {scaled("yarn", 8, llama2)}},
      {"Yarn-Llama-2-128k (x32)", {scaled("yarn", 32, llama2)}},
      {"CodeLlama 1e6", {plain(128, 1e6)}},
      {"Llama-3 5e5", {plain(128, 5e5)}},
      {"Llama-3.1 llama3 x8", {llama31}},
      {"Qwen2.5 1e6", {plain(128, 1e6)}},
      {"Qwen2.5 yarn x4", {qwen25}},
      {"Qwen3-Coder 1e7", {plain(128, 1e7)}},
      {"gpt-oss yarn x32", {gpt_oss}},
      {"DeepSeek-V3 yarn x40, rope slice only", {deepseek}},
      {"DeepSeek-V3 whole head (rope 64 + nope 128)", {deepseek, 64}},
      {"MiniMax-M3 rotary 64 of 128, rope slice only", {plain(64, 5e6)}},
      {"MiniMax-M3 whole head", {plain(64, 5e6), 32}},
      {"SmolLM3 5e6", {plain(128, 5e6)}},
  };
  const auto found = presets.find(name);
  INFO("preset " << name);
  REQUIRE(found != presets.end());
  return found->second;
}

}  // namespace fathom::rope
