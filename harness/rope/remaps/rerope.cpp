#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/rope/position_remap.h"

namespace fathom::rope {
namespace {

struct ReropeOptions {
  std::optional<std::int64_t> window;

  void visit(OptionVisitor& v) {
    v.optional_integer("window", window, {1, INT64_C(1) << 30},
                       "Largest relative position, tokens; auto is half the original context.");
  }
};

/// min(q - k, w): beyond the window every key stands at distance w.
class Rerope : public PositionRemap {
 public:
  explicit Rerope(const ReropeOptions& options) : options_(options), window_(*options.window) {}

  std::int64_t n_regions() const override { return 2; }
  std::int64_t region(std::int64_t q, std::int64_t k) const override { return q - k < window_ ? 0 : 1; }
  double query_position(std::int64_t q, std::int64_t region) const override {
    return static_cast<double>(region == 0 ? q : window_);
  }
  double key_position(std::int64_t k, std::int64_t region) const override {
    return region == 0 ? static_cast<double>(k) : 0.0;
  }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  ReropeOptions options_;
  std::int64_t window_;
};

std::vector<OptionDescription> describe_rerope() {
  return describe_options(ReropeOptions{});
}

std::unique_ptr<PositionRemap> make_rerope(std::int64_t original_context, const OptionSource& source) {
  ReropeOptions options;
  bind_options(options, source);
  if (!options.window) options.window = std::max<std::int64_t>(1, original_context / 2);
  return std::make_unique<Rerope>(options);
}

}  // namespace

PositionRemapEntry remaps::rerope_entry() {
  return {"rerope",
          1,
          "Relative positions are cut off at the window: min(q - k, w).",
          "Su 2023, kexue.fm/archives/9708",
          &describe_rerope,
          &make_rerope};
}

}  // namespace fathom::rope
