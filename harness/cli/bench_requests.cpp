#include "harness/cli/bench_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::cli {
namespace {

constexpr std::int64_t kLongestLength = INT64_C(1) << 20;

}  // namespace

std::vector<std::int64_t> bench_lengths(const Arguments& arguments, const char* fallback) {
  std::vector<std::int64_t> lengths;
  for (const std::string& part : split_list(arguments.get_or("lengths", fallback))) {
    const auto length = parse_int(part);
    if (!length || *length < 1 || *length > kLongestLength) {
      throw ConfigError(fmt::format("bench: --lengths holds '{}'; lengths are token counts in 1..{}, as in 1024,4096",
                                    part, kLongestLength));
    }
    lengths.push_back(*length);
  }
  if (lengths.empty()) throw ConfigError("bench: --lengths is empty; give token counts, as in 1024,4096");
  return lengths;
}

lm::Request drawn_request(std::int64_t length, std::int64_t vocab_size) {
  lm::Request request;
  for (std::int64_t i = 0; i < length; ++i) {
    request.prompt.push_back(static_cast<TokenId>(i * 7919 % std::min<std::int64_t>(vocab_size, 40000)));
  }
  return request;
}

}  // namespace fathom::cli
