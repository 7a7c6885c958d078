#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"
#include "harness/position/position_scheme.h"

namespace fathom::position {
namespace {

constexpr double kSinusoidalBase = 10000;

struct SinusoidalOptions {
  std::string form = "interleaved";
  std::int64_t offset = 0;
  double amplitude = 1;
  bool scale_embedding = false;
  void visit(OptionVisitor& v) {
    v.choice("form", form, {"interleaved", "concatenated", "tensor2tensor"},
             "Order of sines and cosines; tensor2tensor also spaces the frequencies a little wider.");
    v.integer("offset", offset, {0, 1 << 20}, "Added to every position; 2 in XGLM.");
    v.real("amplitude", amplitude, {1e-6, 1e6}, "Multiplies the table; 1 in the paper.");
    v.flag("scale_embedding", scale_embedding, "Multiply token embeddings by sqrt(d_model) first.");
  }
};

SinusoidalOptions sinusoidal_options(const SchemeContext& context) {
  SinusoidalOptions options;
  bind_options(options, OptionSource("position scheme sinusoidal", context.spec().position.options));
  return options;
}

/// One row of the table, with D = width and w(i) = 10000^(-2i/D):
///
///   interleaved     out[2i] = sin(m w(i)), out[2i+1] = cos(m w(i)); an odd width ends with a sine
///   concatenated    [ all sines | all cosines ]
///   tensor2tensor   the same with w(i) = 10000^(-i / (D/2 - 1)); an odd width ends with 0
void fill_sinusoidal_row(const std::string& form, std::int64_t position, std::int64_t width, double amplitude,
                         float* out) {
  const bool t2t = form == "tensor2tensor", interleaved = form == "interleaved";
  const std::int64_t n_cos = width / 2, n_sin = t2t ? n_cos : width - n_cos;
  std::fill(out, out + width, 0.0F);
  for (std::int64_t i = 0; i < n_sin; ++i) {
    const double exponent = t2t ? static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(1, n_cos - 1))
                                : 2.0 * static_cast<double>(i) / static_cast<double>(width);
    const double angle = static_cast<double>(position) * std::pow(kSinusoidalBase, -exponent);
    out[interleaved ? 2 * i : i] = static_cast<float>(amplitude * std::sin(angle));
    if (i < n_cos) out[interleaved ? 2 * i + 1 : n_sin + i] = static_cast<float>(amplitude * std::cos(angle));
  }
}

/// h = embedding(token) [* sqrt(D)] + PE[position + offset], added once before layer 0 (Vaswani et al. 2017, section
/// 3.5). Any position has a row: the table is made in double and grows with what is asked for.
class SinusoidalScheme : public PositionScheme {
 public:
  explicit SinusoidalScheme(const SchemeContext& context)
      : options_(sinusoidal_options(context)), width_(context.config->d_model) {}

  torch::Tensor embed(const torch::Tensor& x, const torch::Tensor& positions) override {
    FATHOM_CHECK(x.dim() == 3 && x.size(2) == width_, "embed needs x [batch, seq, d_model]");
    const bool same_rows = positions.size(0) > 1 && positions.stride(0) == 0;  // one row serves the batch
    const torch::Tensor rows = (same_rows ? positions.narrow(0, 0, 1) : positions).cpu();
    grow(rows.numel() == 0 ? 0 : rows.max().item<std::int64_t>() + 1);
    const torch::Tensor signal = table_.index_select(0, rows.reshape(-1))
                                     .view({rows.size(0), rows.size(1), width_})
                                     .to(x.device(), x.scalar_type());
    return (options_.scale_embedding ? x * std::sqrt(static_cast<double>(width_)) : x) + signal;
  }

 private:
  void grow(std::int64_t n_positions) {
    if (table_.defined() && table_.size(0) >= n_positions) return;
    std::int64_t rows = 64;
    while (rows < n_positions) rows *= 2;
    table_ = at::empty({rows, width_}, torch::kFloat32);
    float* out = table_.data_ptr<float>();
#pragma omp parallel for schedule(static)
    for (std::int64_t m = 0; m < rows; ++m)
      fill_sinusoidal_row(options_.form, m + options_.offset, width_, options_.amplitude, out + m * width_);
  }

  SinusoidalOptions options_;
  std::int64_t width_;
  torch::Tensor table_;  // [rows, d_model]
};

std::shared_ptr<PositionScheme> make_sinusoidal(const SchemeContext& context) {
  return std::make_shared<SinusoidalScheme>(context);
}

std::vector<OptionDescription> describe_sinusoidal() {
  return describe_options(SinusoidalOptions{});
}

}  // namespace

PositionSchemeEntry schemes::sinusoidal_entry() {
  return {{"sinusoidal", 1, "Fixed sines and cosines of absolute positions, added to the token embedding.",
           "Vaswani et al. 2017, section 3.5", false, false, &describe_sinusoidal},
          &make_sinusoidal};
}

}  // namespace fathom::position
