#include <fmt/format.h>

#include <algorithm>

#include "harness/core/error.h"
#include "harness/rope/position_remap.h"

namespace fathom::rope {
namespace {

struct DualChunkOptions {
  std::optional<std::int64_t> chunk, pretrain, local;
  std::string clamp = "paper";

  void visit(OptionVisitor& v) {
    v.optional_integer("chunk", chunk, {1, INT64_C(1) << 30}, "Chunk length s, tokens; auto is pretrain - local.");
    v.optional_integer("pretrain", pretrain, {2, INT64_C(1) << 30},
                       "Positions c that the rotation may see; auto is 3/4 of the original context.");
    v.optional_integer("local", local, {1, INT64_C(1) << 30},
                       "Window w in which distances across a chunk border stay exact, tokens; auto is 1/8 of the "
                       "original context, or pretrain - chunk where chunk is given.");
    v.choice("clamp", clamp, {"paper", "released"}, "Largest query position: c - 1 (the paper) or c (released code).");
  }
};

/// With s the chunk, c the pretraining window and x' = x mod s: q' - k' within a chunk, min(q' + s, c - 1) - k' for a
/// key in the chunk before, c - 1 - k' for earlier ones (equations 2 to 8).
class DualChunk : public PositionRemap {
 public:
  explicit DualChunk(const DualChunkOptions& options)
      : options_(options),
        chunk_(*options.chunk),
        last_position_(*options.pretrain - (options.clamp == "paper" ? 1 : 0)) {}

  std::int64_t n_regions() const override { return 3; }
  std::int64_t region(std::int64_t q, std::int64_t k) const override {
    return std::min<std::int64_t>(q / chunk_ - k / chunk_, 2);
  }
  double query_position(std::int64_t q, std::int64_t region) const override {
    if (region == 0) return static_cast<double>(q % chunk_);
    return static_cast<double>(region == 1 ? std::min(q % chunk_ + chunk_, last_position_) : last_position_);
  }
  double key_position(std::int64_t k, std::int64_t) const override { return static_cast<double>(k % chunk_); }
  std::string canonical_options() const override { return fathom::canonical_options(options_); }

 private:
  DualChunkOptions options_;
  std::int64_t chunk_;
  std::int64_t last_position_;
};

std::vector<OptionDescription> describe_dual_chunk() {
  return describe_options(DualChunkOptions{});
}

std::unique_ptr<PositionRemap> make_dual_chunk(std::int64_t original_context, const OptionSource& source) {
  DualChunkOptions options;
  bind_options(options, source);
  if (!options.pretrain) options.pretrain = std::max<std::int64_t>(2, original_context * 3 / 4);
  if (!options.local) {
    options.local =
        options.chunk ? *options.pretrain - *options.chunk : std::max<std::int64_t>(1, original_context / 8);
  }
  if (!options.chunk) options.chunk = *options.pretrain - *options.local;
  if (*options.chunk < 1 || *options.local < 1 || *options.chunk + *options.local != *options.pretrain) {
    throw ConfigError(
        fmt::format("remap dual_chunk: chunk = {} and local = {} must be at least 1 and add up to pretrain = {}; give "
                    "two of the three",
                    *options.chunk, *options.local, *options.pretrain));
  }
  return std::make_unique<DualChunk>(options);
}

}  // namespace

PositionRemapEntry remaps::dual_chunk_entry() {
  return {"dual_chunk",
          1,
          "Dual chunk attention: positions start anew in every chunk; earlier chunks stand at the end of the window.",
          "An et al. 2024 (arXiv 2402.17463), section 3",
          &describe_dual_chunk,
          &make_dual_chunk};
}

}  // namespace fathom::rope
