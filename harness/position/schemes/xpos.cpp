#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/error.h"
#include "harness/position/angle_tables.h"
#include "harness/position/position_scheme.h"
#include "harness/position/rotation.h"

namespace fathom::position {
namespace {

constexpr double kXposTwoPi = 6.283185307179586476925286766559;
constexpr double kXposGamma = 0.4;
constexpr std::int64_t kXposShortest = 4096;
// The smallest zeta is 0.2857: scales reach 0.2857^-64 = 7e34 at half of this many scale_base steps, and 3.4e38 is the
// largest float32.
constexpr std::int64_t kXposMostSteps = 128;

struct XposOptions {
  double base = 10000;
  std::int64_t scale_base = 512;
  void visit(OptionVisitor& v) {
    v.real("base", base, {1.0001, 1e12}, "Base of the rotation, theta.");
    v.integer("scale_base", scale_base, {1, 1 << 20}, "Tokens after which channel i has decayed to zeta_i.");
  }
};

XposOptions xpos_options(const SchemeContext& context) {
  XposOptions options;
  bind_options(options, OptionSource("position scheme xpos", context.spec().position.options));
  if (context.spec().d_head % 2 != 0) {
    throw ModelError(
        fmt::format("position scheme xpos: layer {}: d_head = {} must be even", context.layer, context.spec().d_head));
  }
  return options;
}

/// Rotation whose products decay with the distance (Sun et al. 2022, section 2.1): pairs (2i, 2i + 1) turn as in RoPE,
/// and with zeta_i = (2i / d_head + 0.4) / 1.4
///
///   q_i *= zeta_i^((m - c) / scale_base),   k_i *= zeta_i^(-(m - c) / scale_base).
///
/// The centre c cancels in every product and keeps both factors in range. It is half of the sequence length rounded up
/// to a power of two, so that a growing sequence rarely meets keys of another centre; rotation_state() tells them
/// apart.
class XposScheme : public PositionScheme {
 public:
  explicit XposScheme(const SchemeContext& context) : options_(xpos_options(context)), d_head_(context.spec().d_head) {}

  bool rotates() const override { return true; }

  torch::Tensor rotate(const torch::Tensor& x, Role role, const torch::Tensor& positions, std::int64_t total_len,
                       std::int64_t) override {
    FATHOM_CHECK(x.dim() == 4 && x.size(3) == d_head_, "rotate needs x [batch, seq, heads, d_head]");
    const bool same_rows = positions.size(0) > 1 && positions.stride(0) == 0;  // one row serves the batch
    const torch::Tensor rows = same_rows ? positions.narrow(0, 0, 1) : positions;
    const std::int64_t longest = rows.numel() == 0 ? 0 : rows.max().item<std::int64_t>() + 1;
    if (std::max(longest, total_len) > *max_positions()) {
      throw ModelError(fmt::format(
          "position scheme xpos: a sequence of {} tokens is past the {} that float32 can scale at scale_base = {}",
          std::max(longest, total_len), *max_positions(), options_.scale_base));
    }
    const AngleTable& table = scaled_table(role, centre_of(std::max(longest, total_len)), longest);
    return apply_rotation(x, rows, table, {checkpoint::RopeLayout::kInterleaved, 0, d_head_});
  }

  std::uint64_t rotation_state(std::int64_t total_len) const override {
    return static_cast<std::uint64_t>(centre_of(total_len));
  }

  std::optional<std::int64_t> max_positions() const override { return kXposMostSteps * options_.scale_base; }

 private:
  std::int64_t centre_of(std::int64_t total_len) const {
    std::int64_t length = kXposShortest;
    while (length < total_len) length *= 2;
    return std::min(length, kXposMostSteps * options_.scale_base) / 2;
  }

  /// Cosines and sines times the scale of the role, so that one pass rotates and scales.
  const AngleTable& scaled_table(Role role, std::int64_t centre, std::int64_t n_positions) {
    AngleTable& table = tables_[{role == Role::kQuery, centre}];
    if (table.cos.defined() && table.cos.size(0) >= n_positions) return table;
    std::int64_t rows = 64;
    while (rows < n_positions) rows *= 2;
    const std::int64_t n_pairs = d_head_ / 2;
    table = {at::empty({rows, n_pairs}, torch::kFloat32), at::empty({rows, n_pairs}, torch::kFloat32)};
    float *cos = table.cos.data_ptr<float>(), *sin = table.sin.data_ptr<float>();
    const double sign = role == Role::kQuery ? 1 : -1;
    for (std::int64_t m = 0; m < rows; ++m) {
      const double steps = sign * static_cast<double>(m - centre) / static_cast<double>(options_.scale_base);
      for (std::int64_t i = 0; i < n_pairs; ++i) {
        const double share = 2.0 * static_cast<double>(i) / static_cast<double>(d_head_);
        const double scale = std::pow((share + kXposGamma) / (1 + kXposGamma), steps);
        const double angle = std::fmod(static_cast<double>(m) * std::pow(options_.base, -share), kXposTwoPi);
        cos[m * n_pairs + i] = static_cast<float>(std::cos(angle) * scale);
        sin[m * n_pairs + i] = static_cast<float>(std::sin(angle) * scale);
      }
    }
    return table;
  }

  XposOptions options_;
  std::int64_t d_head_;
  std::map<std::pair<bool, std::int64_t>, AngleTable> tables_;  // by (query, centre)
};

std::shared_ptr<PositionScheme> make_xpos(const SchemeContext& context) {
  return std::make_shared<XposScheme>(context);
}

std::vector<OptionDescription> describe_xpos() {
  return describe_options(XposOptions{});
}

}  // namespace

PositionSchemeEntry schemes::xpos_entry() {
  return {{"xpos", 1, "Rotation of queries and keys with a scale that makes products decay with the distance.",
           "Sun et al. 2022, section 2.1", false, true, &describe_xpos},
          &make_xpos};
}

}  // namespace fathom::position
