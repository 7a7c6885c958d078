#pragma once
// Bits by position in a text, in bins of a quarter octave: 16 19 23 27 32 … (tasks specification 2.4).

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fathom::scoring {

/// First position of the bin that holds `position` (tokens in front): round(16 · 2^(k/4)), and 0 below 16.
std::int64_t position_bin(std::int64_t position);

class PositionBits {
 public:
  struct Bin {
    double bits = 0;  ///< sum
    std::int64_t n_tokens = 0;
    double mean() const { return n_tokens == 0 ? 0 : bits / static_cast<double>(n_tokens); }
  };

  void add(std::int64_t position, double bits);
  /// Adds what text() wrote. Ill-formed parts are left out.
  void add_text(std::string_view text);
  /// "16=4.3125/3 19=…": first position, mean bits, tokens.
  std::string text() const;
  const std::map<std::int64_t, Bin>& bins() const { return bins_; }

 private:
  std::map<std::int64_t, Bin> bins_;
};

}  // namespace fathom::scoring
