#include "harness/task/task.h"

namespace fathom::task {

Sample Task::refused_sample(const TaskCell& cell, std::int64_t index, std::uint64_t seed) const {
  Sample sample;
  sample.length_tokens = cell.length_tokens;
  sample.depth_bp = cell.depth_bp;
  sample.control = cell.control;
  sample.index = index;
  sample.seed = seed;
  sample.metric = metric();
  return sample;
}

std::string_view to_string(TaskVariant variant) {
  switch (variant) {
    case TaskVariant::kBalanced:
      return "balanced";
    case TaskVariant::kRuler:
      return "ruler";
  }
  FATHOM_CHECK(false, "unknown task variant");
}

std::string_view to_string(TaskMetric metric) {
  switch (metric) {
    case TaskMetric::kAll:
      return "all";
    case TaskMetric::kPart:
      return "part";
    case TaskMetric::kSubspan:
      return "subspan";
    case TaskMetric::kEm:
      return "em";
    case TaskMetric::kLabel:
      return "label";
    case TaskMetric::kTop1:
      return "top1";
  }
  FATHOM_CHECK(false, "unknown task metric");
}

std::string_view to_string(Control control) {
  switch (control) {
    case Control::kNone:
      return "";
    case Control::kNoNeedle:
      return "no_needle";
    case Control::kNeedleOnly:
      return "needle_only";
    case Control::kWrongKey:
      return "wrong_key";
    case Control::kClosedBook:
      return "closed_book";
    case Control::kOracle:
      return "oracle";
  }
  FATHOM_CHECK(false, "unknown control");
}

}  // namespace fathom::task
