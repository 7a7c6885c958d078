#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "harness/core/error.h"
#include "harness/position/distance_bias.h"
#include "harness/position/position_scheme.h"
#include "harness/position/relu_curve.h"

namespace fathom::position {
namespace {

constexpr double kFireEpsilon = 1e-6;  // of the reference's normaliser
constexpr std::int64_t kFireRows = 32;

struct FireOptions {
  std::int64_t width = 32;
  std::optional<double> threshold;
  double c = 0.1;
  void visit(OptionVisitor& v) {
    v.integer("width", width, {1, 4096}, "Hidden units of the network.");
    v.optional_real("threshold", threshold, {1e-3, 1e9},
                    "Where the learned L starts; auto is a quarter of the trained (else claimed) context.");
    v.real("c", c, {1e-6, 1e6}, "Where the learned c starts.");
  }
};

FireOptions fire_options(const SchemeContext& context) {
  FireOptions options;
  bind_options(options, OptionSource("position scheme fire", context.spec().position.options));
  if (!options.threshold) {
    const std::int64_t length = context.config->trained_context.value_or(context.config->claimed_context);
    options.threshold = std::max(1.0, static_cast<double>(length) / 4);
  }
  return options;
}

/// Everything the bias is made of. in_weight, in_bias: [width]; out_weight: [n_heads, width]; out_bias: [n_heads]; c
/// and threshold: [1].
struct FireParameters {
  torch::Tensor in_weight, in_bias, out_weight, out_bias, c, threshold;
};

/// The formula on LibTorch operations: every dtype and device; one hidden layer per pair. [rows, n_heads, q_len, k_len]
torch::Tensor fire_on_torch(const FireParameters& f, const LogitBlock& block) {
  const auto real = f.c.scalar_type();
  const torch::Tensor distance =
      (block.q_positions.unsqueeze(2) - block.k_positions.unsqueeze(1)).clamp_min(0).to(real);
  const torch::Tensor place = at::maximum(block.q_positions.to(real), f.threshold.abs()).unsqueeze(2);
  const torch::Tensor c = f.c.abs();
  const torch::Tensor x = at::log1p(c * distance) / (at::log1p(c * place) + kFireEpsilon);  // [rows, q_len, k_len]
  const torch::Tensor hidden = at::relu(x.unsqueeze(-1) * f.in_weight + f.in_bias);
  return at::linear(hidden, f.out_weight, f.out_bias).permute({0, 3, 1, 2});
}

std::vector<float> fire_numbers(const torch::Tensor& x) {
  const torch::Tensor flat = x.detach().to(torch::kFloat32).cpu().contiguous();
  return std::vector<float>(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
}

/// What x is made of: ln(c d + 1) once per distance, the normaliser once per query. c and L count by their size.
struct FireInputs {
  FireInputs(float raw_c, float raw_threshold)
      : sign_c(raw_c < 0 ? -1 : 1),
        sign_threshold(raw_threshold < 0 ? -1 : 1),
        c(std::abs(static_cast<double>(raw_c))),
        threshold(std::abs(static_cast<double>(raw_threshold))) {}

  float log_of(std::int64_t distance) const {
    return static_cast<float>(std::log1p(c * static_cast<double>(distance)));
  }
  double place(std::int64_t q) const { return std::max(static_cast<double>(q), threshold); }
  double norm(std::int64_t q) const { return std::log1p(c * place(q)) + kFireEpsilon; }

  double sign_c, sign_threshold, c, threshold;
};

/// The same on the curve that the network is. Parameters are read once; gradients are sums per piece of the curve.
class FireFunction : public torch::autograd::Function<FireFunction> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& in_weight,
                               const torch::Tensor& in_bias, const torch::Tensor& out_weight,
                               const torch::Tensor& out_bias, const torch::Tensor& c, const torch::Tensor& threshold,
                               const torch::Tensor& q_positions, const torch::Tensor& k_positions) {
    const torch::Tensor q = q_positions.contiguous(), k = k_positions.contiguous();
    ctx->save_for_backward({in_weight, in_bias, out_weight, out_bias, c, threshold, q, k});
    const Walk walk(in_weight, in_bias, out_weight, out_bias, c, threshold, q, k);
    torch::Tensor out = at::empty({walk.rows, walk.heads, walk.n_q, walk.n_k}, torch::kFloat32);
    float* bias = out.data_ptr<float>();
    walk.visit([&](std::int64_t, const Pair& at) {
      for (std::int64_t h = 0; h < walk.heads; ++h)
        bias[at.offset + h * walk.n_q * walk.n_k] = walk.curve.value(at.piece, static_cast<std::size_t>(h), at.x);
    });
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list gradients) {
    const auto s = ctx->get_saved_variables();
    const Walk walk(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]);
    const torch::Tensor gradient = gradients[0].contiguous();
    const float* g = gradient.data_ptr<float>();
    std::vector<Total> totals(static_cast<std::size_t>(walk.n_chunks()), Total{walk.curve.no_sums(), 0, 0});
    walk.visit([&](std::int64_t chunk, const Pair& at) { totals[static_cast<std::size_t>(chunk)].add(walk, at, g); });
    Total total{walk.curve.no_sums(), 0, 0};
    for (const Total& part : totals) total.add(part);
    const ReluNetwork network = walk.curve.gradient(total.sums);
    const auto tensor = [](const std::vector<float>& values, const torch::Tensor& like) {
      return at::tensor(values).view(like.sizes());
    };
    return {tensor(network.in_weight, s[0]),
            tensor(network.in_bias, s[1]),
            tensor(network.out_weight, s[2]),
            tensor(network.out_bias, s[3]),
            tensor({static_cast<float>(total.c * walk.inputs.sign_c)}, s[4]),
            tensor({static_cast<float>(total.threshold * walk.inputs.sign_threshold)}, s[5]),
            {},
            {}};
  }

 private:
  struct Pair {
    std::int64_t offset;  ///< of head 0 in the bias
    std::int64_t q, distance;
    std::size_t piece;
    float x;
  };

  struct Walk {
    Walk(const torch::Tensor& in_weight, const torch::Tensor& in_bias, const torch::Tensor& out_weight,
         const torch::Tensor& out_bias, const torch::Tensor& c, const torch::Tensor& threshold, const torch::Tensor& q,
         const torch::Tensor& k)
        : curve({fire_numbers(in_weight), fire_numbers(in_bias), fire_numbers(out_weight), fire_numbers(out_bias)}),
          inputs(fire_numbers(c)[0], fire_numbers(threshold)[0]),
          rows(q.size(0)),
          heads(out_bias.size(0)),
          n_q(q.size(1)),
          n_k(k.size(1)),
          q_positions(q.data_ptr<std::int64_t>()),
          k_positions(k.data_ptr<std::int64_t>()) {
      const std::int64_t furthest = q.max().item<std::int64_t>() - k.min().item<std::int64_t>();
      for (std::int64_t d = 0; d <= std::max<std::int64_t>(0, furthest); ++d) logs.push_back(inputs.log_of(d));
    }
    std::int64_t n_chunks() const { return (rows * n_q + kFireRows - 1) / kFireRows; }

    /// Calls pair(chunk, …) for every pair; a chunk is the work of one thread, whatever their number.
    template <typename Visit>
    void visit(const Visit& pair) const {
      at::parallel_for(0, n_chunks(), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
          for (std::int64_t i = chunk * kFireRows; i < std::min(rows * n_q, (chunk + 1) * kFireRows); ++i)
            visit_query(chunk, i, pair);
        }
      });
    }
    template <typename Visit>
    void visit_query(std::int64_t chunk, std::int64_t i, const Visit& pair) const {
      const std::int64_t row = i / n_q, q = q_positions[i];
      const auto inverse = static_cast<float>(1 / inputs.norm(q));
      const std::int64_t offset = (row * heads * n_q + i % n_q) * n_k;
      std::size_t piece = 0;
      for (std::int64_t j = 0; j < n_k; ++j) {
        const std::int64_t distance = q - k_positions[row * n_k + j];
        const float x = logs[static_cast<std::size_t>(std::max<std::int64_t>(0, distance))] * inverse;
        piece = curve.piece_of(x, piece);
        pair(chunk, Pair{offset + j, q, distance, piece, x});
      }
    }

    ReluCurve curve;
    FireInputs inputs;
    std::vector<float> logs;  // per distance
    std::int64_t rows, heads, n_q, n_k;
    const std::int64_t *q_positions, *k_positions;
  };

  /// Sums of one chunk. With A = ln(c d + 1), N = ln(c m + 1) + epsilon and m = max(i, L): x = A / N, so
  /// dx/dc = (d / (c d + 1) - x m / (c m + 1)) / N and, for i < L, dx/dL = -x c / (c m + 1) / N.
  struct Total {
    ReluCurve::Sums sums;
    double c, threshold;

    void add(const Walk& walk, const Pair& at, const float* g) {
      double d_x = 0;
      for (std::int64_t h = 0; h < walk.heads; ++h) {
        const float value = g[at.offset + h * walk.n_q * walk.n_k];
        const std::size_t place = at.piece * static_cast<std::size_t>(walk.heads) + static_cast<std::size_t>(h);
        sums.zeroth[place] += static_cast<double>(value);
        sums.first[place] += static_cast<double>(value * at.x);
        d_x += static_cast<double>(value * walk.curve.slope(at.piece, static_cast<std::size_t>(h)));
      }
      if (at.distance <= 0) return;  // x is 0 whatever c is
      const double m = walk.inputs.place(at.q), rate = walk.inputs.c, d = static_cast<double>(at.distance);
      const double per_norm = d_x / walk.inputs.norm(at.q), from_norm = static_cast<double>(at.x) / (rate * m + 1);
      c += per_norm * (d / (rate * d + 1) - from_norm * m);
      if (static_cast<double>(at.q) < walk.inputs.threshold) threshold -= per_norm * from_norm * rate;
    }
    void add(const Total& other) {
      for (std::size_t i = 0; i < sums.zeroth.size(); ++i) {
        sums.zeroth[i] += other.sums.zeroth[i];
        sums.first[i] += other.sums.first[i];
      }
      c += other.c;
      threshold += other.threshold;
    }
  };
};

/// FIRE (Li et al. 2023, section 3): bias[., i, j] = MLP( ln(|c| (i - j) + 1) / (ln(|c| max(i, |L|) + 1) + 1e-6) ), one
/// hidden layer with ReLU and an output per head; c and L are learned.
class FireScheme : public PositionScheme {
 public:
  explicit FireScheme(const SchemeContext& context) : options_(fire_options(context)) {
    const std::int64_t n_heads = context.spec().n_heads;
    f_.in_weight = register_parameter("in_weight", torch::zeros({options_.width}));
    f_.in_bias = register_parameter("in_bias", torch::zeros({options_.width}));
    f_.out_weight = register_parameter("out_weight", torch::zeros({n_heads, options_.width}));
    f_.out_bias = register_parameter("out_bias", torch::zeros({n_heads}));
    f_.c = register_parameter("c", torch::full({1}, options_.c));
    f_.threshold = register_parameter("threshold", torch::full({1}, *options_.threshold));
  }

  bool has_bias() const override { return true; }

  torch::Tensor block_bias(const LogitBlock& block, bool) override {
    if (!f_.c.device().is_cpu() || f_.c.scalar_type() != torch::kFloat32) return fire_on_torch(f_, block);
    return FireFunction::apply(f_.in_weight, f_.in_bias, f_.out_weight, f_.out_bias, f_.c, f_.threshold,
                               block.q_positions, block.k_positions);
  }

  kernels::BiasFunction bias_function() const override {
    const ReluCurve curve(
        {fire_numbers(f_.in_weight), fire_numbers(f_.in_bias), fire_numbers(f_.out_weight), fire_numbers(f_.out_bias)});
    const FireInputs inputs(fire_numbers(f_.c)[0], fire_numbers(f_.threshold)[0]);
    return [curve, inputs](std::int64_t head, const std::int32_t* q_positions, std::int64_t n_q,
                           const std::int32_t* k_positions, std::int64_t n_k, float* bias, std::int64_t stride) {
      if (n_q == 0 || n_k == 0) return;
      const std::int64_t least = *std::min_element(k_positions, k_positions + n_k);
      const std::int64_t first =
          std::max<std::int64_t>(0, *std::min_element(q_positions, q_positions + n_q) -
                                        static_cast<std::int64_t>(*std::max_element(k_positions, k_positions + n_k)));
      thread_local std::vector<float> logs;
      logs.clear();
      for (std::int64_t d = first; d <= *std::max_element(q_positions, q_positions + n_q) - least; ++d)
        logs.push_back(inputs.log_of(d));
      for (std::int64_t i = 0; i < n_q; ++i) {
        const auto inverse = static_cast<float>(1 / inputs.norm(q_positions[i]));
        std::size_t piece = 0;
        for (std::int64_t j = 0; j < n_k; ++j) {
          const std::int64_t distance = q_positions[i] - k_positions[j];
          const float x = distance <= 0 ? 0.0F : logs[static_cast<std::size_t>(distance - first)] * inverse;
          piece = curve.piece_of(x, piece);
          bias[i * stride + j] = curve.value(piece, static_cast<std::size_t>(head), x);
        }
      }
    };
  }

  /// The network as any linear layer: uniform within 1 / sqrt(inputs). c and L start where the options say.
  void draw_parameter(const std::string& name, torch::Tensor& values, RngStream& rng) const override {
    float* out = values.data_ptr<float>();
    const double fan_in = name == "out_weight" || name == "out_bias" ? static_cast<double>(options_.width) : 1;
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const double drawn = (2 * rng.uniform_double() - 1) / std::sqrt(fan_in);
      out[i] = static_cast<float>(name == "c" ? options_.c : name == "threshold" ? *options_.threshold : drawn);
    }
  }

 private:
  FireOptions options_;
  FireParameters f_;
};

std::shared_ptr<PositionScheme> make_fire(const SchemeContext& context) {
  return std::make_shared<FireScheme>(context);
}

std::vector<OptionDescription> describe_fire() {
  return describe_options(FireOptions{});
}

}  // namespace

PositionSchemeEntry schemes::fire_entry() {
  return {{"fire", 1, "A small network of the distance, relative to the position of the query.",
           "Li et al. 2023, section 3", false, false, &describe_fire},
          &make_fire};
}

}  // namespace fathom::position
