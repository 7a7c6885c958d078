#include <algorithm>

#include "harness/rope/position_remap.h"

namespace fathom::rope {
namespace {

struct LeakyReropeOptions {
  std::optional<std::int64_t> window;
  double k = 16;

  void visit(OptionVisitor& v) {
    v.optional_integer("window", window, {1, INT64_C(1) << 30},
                       "Relative positions below it stay, tokens; auto is half the original context.");
    v.real("k", k, {1, 1e9}, "Beyond the window one position is worth 1/k.");
  }
};

/// q - k below the window w, and w + (q - k - w) / K from there on.
class LeakyRerope : public PositionRemap {
 public:
  explicit LeakyRerope(const LeakyReropeOptions& options) : options_(options), window_(*options.window) {}

  std::int64_t n_regions() const override { return 2; }
  std::int64_t region(std::int64_t q, std::int64_t k) const override { return q - k < window_ ? 0 : 1; }
  double query_position(std::int64_t q, std::int64_t region) const override {
    if (region == 0) return static_cast<double>(q);
    return static_cast<double>(window_) + static_cast<double>(q - window_) / options_.k;
  }
  double key_position(std::int64_t k, std::int64_t region) const override {
    return region == 0 ? static_cast<double>(k) : static_cast<double>(k) / options_.k;
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  LeakyReropeOptions options_;
  std::int64_t window_;
};

std::vector<OptionDescription> describe_leaky_rerope() {
  return describe_options(LeakyReropeOptions{});
}

std::unique_ptr<PositionRemap> make_leaky_rerope(std::int64_t original_context, const OptionSource& source) {
  LeakyReropeOptions options;
  bind_options(options, source);
  if (!options.window) options.window = std::max<std::int64_t>(1, original_context / 2);
  return std::make_unique<LeakyRerope>(options);
}

}  // namespace

PositionRemapEntry remaps::leaky_rerope_entry() {
  return {"leaky_rerope",
          1,
          "Relative positions beyond the window grow k times slower.",
          "Su 2023, kexue.fm/archives/9708",
          &describe_leaky_rerope,
          &make_leaky_rerope};
}

}  // namespace fathom::rope
