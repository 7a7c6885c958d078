#include "harness/eval/records.h"

#include <fmt/format.h>

#include "harness/core/error.h"
#include "harness/core/text_util.h"

namespace fathom::eval {
namespace {

constexpr SampleStatus kAllStatuses[] = {
    SampleStatus::kOk,         SampleStatus::kTooShort,    SampleStatus::kTooLong,  SampleStatus::kOutOfMemory,
    SampleStatus::kNoPosition, SampleStatus::kEngineError, SampleStatus::kCancelled};

}  // namespace

std::string_view to_string(SampleStatus status) {
  switch (status) {
    case SampleStatus::kOk:
      return "ok";
    case SampleStatus::kTooShort:
      return "too_short";
    case SampleStatus::kTooLong:
      return "too_long";
    case SampleStatus::kOutOfMemory:
      return "oom";
    case SampleStatus::kNoPosition:
      return "no_position";
    case SampleStatus::kEngineError:
      return "engine_error";
    case SampleStatus::kCancelled:
      return "cancelled";
  }
  throw InvariantError("unknown SampleStatus");
}

SampleStatus parse_sample_status(std::string_view text) {
  std::vector<std::string> known;
  for (const SampleStatus status : kAllStatuses) {
    if (to_string(status) == text) return status;
    known.emplace_back(to_string(status));
  }
  throw DataError(fmt::format("unknown sample status '{}'; known: {}", text, join(known, ", ")));
}

}  // namespace fathom::eval
