#include <ATen/Functions.h>
#include <fmt/format.h>

#include "harness/core/error.h"
#include "harness/position/position_scheme.h"

namespace fathom::position {
namespace {

struct LearnedOptions {
  std::optional<std::int64_t> positions;
  std::int64_t offset = 0;
  void visit(OptionVisitor& v) {
    v.optional_integer("positions", positions, {1, 1 << 20},
                       "Positions of the table; auto is the longest sequence of training, else the claimed context.");
    v.integer("offset", offset, {0, 1024}, "Rows before that of position 0; 2 in OPT.");
  }
};

struct LearnedShape {
  std::int64_t positions, offset;
};

LearnedShape learned_shape(const SchemeContext& context) {
  LearnedOptions options;
  bind_options(options, OptionSource("position scheme learned", context.spec().position.options));
  const std::int64_t positions =
      options.positions.value_or(context.config->trained_context.value_or(context.config->claimed_context));
  if (positions < 1)
    throw ModelError("position scheme learned: the configuration does not say how many positions the table has");
  return {positions, options.offset};
}

/// h = embedding(token) + table(position + offset), added once before layer 0 (Vaswani et al. 2017, section 3.5;
/// GPT-2).
class LearnedScheme : public PositionScheme {
 public:
  explicit LearnedScheme(const SchemeContext& context) : shape_(learned_shape(context)) {
    if (context.layer == 0) {
      table_ = register_parameter("position_embedding",
                                  torch::empty({shape_.positions + shape_.offset, context.config->d_model}));
    }
  }

  torch::Tensor embed(const torch::Tensor& x, const torch::Tensor& positions) override {
    FATHOM_CHECK(table_.defined(), "learned positions are embedded by layer 0 only");
    const std::int64_t longest = positions.max().item<std::int64_t>() + 1;
    if (longest > shape_.positions) {
      throw ModelError(fmt::format(
          "position scheme learned: position {} is past the table of {} rows; the longest sequence is {} tokens",
          longest - 1, shape_.positions, shape_.positions));
    }
    const bool same_rows =
        positions.size(0) > 1 && positions.stride(0) == 0;  // one row of positions serves the batch: fewer lookups
    const torch::Tensor rows = same_rows ? positions.narrow(0, 0, 1) : positions;
    return x + at::embedding(table_, rows + shape_.offset).to(x.scalar_type());
  }

  std::optional<std::int64_t> max_positions() const override { return shape_.positions; }

 private:
  LearnedShape shape_;
  torch::Tensor table_;
};

std::shared_ptr<PositionScheme> make_learned(const SchemeContext& context) {
  return std::make_shared<LearnedScheme>(context);
}

std::vector<OptionDescription> describe_learned() {
  return describe_options(LearnedOptions{});
}

}  // namespace

PositionSchemeEntry schemes::learned_entry() {
  return {{"learned", 1, "A trained table of absolute positions, added to the token embedding.",
           "Radford et al. 2019 (GPT-2)", false, true, &describe_learned},
          &make_learned};
}

}  // namespace fathom::position
