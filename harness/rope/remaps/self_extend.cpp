#include <algorithm>

#include "harness/rope/position_remap.h"

namespace fathom::rope {
namespace {

struct SelfExtendOptions {
  std::int64_t group = 8;
  std::optional<std::int64_t> window;

  void visit(OptionVisitor& v) {
    v.integer("group", group, {1, INT64_C(1) << 30}, "Tokens that share one position beyond the window.");
    v.optional_integer(
        "window", window, {1, INT64_C(1) << 30},
        "Relative positions below it stay, tokens; auto is a quarter of the original context. With L the "
        "original context the remap reaches (L - window) * group + window tokens.");
  }
};

/// q - k below the window W, and floor(q / G) + W - W / G - floor(k / G) from there on. W / G is a true division: where
/// G does not divide W the reference's far positions are fractions, and so are these.
class SelfExtend : public PositionRemap {
 public:
  explicit SelfExtend(const SelfExtendOptions& options) : options_(options), window_(*options.window) {
    shift_ = static_cast<double>(window_) - static_cast<double>(window_) / static_cast<double>(options.group);
  }

  std::int64_t n_regions() const override { return 2; }
  std::int64_t region(std::int64_t q, std::int64_t k) const override { return q - k < window_ ? 0 : 1; }
  double query_position(std::int64_t q, std::int64_t region) const override {
    const std::int64_t query_group = q / options_.group;
    return region == 0 ? static_cast<double>(q) : static_cast<double>(query_group) + shift_;
  }
  double key_position(std::int64_t k, std::int64_t region) const override {
    return static_cast<double>(region == 0 ? k : k / options_.group);
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  SelfExtendOptions options_;
  std::int64_t window_;
  double shift_;
};

std::vector<OptionDescription> describe_self_extend() {
  return describe_options(SelfExtendOptions{});
}

std::unique_ptr<PositionRemap> make_self_extend(std::int64_t original_context, const OptionSource& source) {
  SelfExtendOptions options;
  bind_options(options, source);
  if (!options.window) options.window = std::max<std::int64_t>(1, original_context / 4);
  return std::make_unique<SelfExtend>(options);
}

}  // namespace

PositionRemapEntry remaps::self_extend_entry() {
  return {"self_extend",
          1,
          "Beyond the window, tokens share positions in groups.",
          "Jin et al. 2024 (arXiv 2401.01325), section 3.3",
          &describe_self_extend,
          &make_self_extend};
}

}  // namespace fathom::rope
