#include "harness/task/task.h"

namespace fathom::task {

std::string_view to_string(TaskVariant variant) {
  switch (variant) {
    case TaskVariant::kBalanced:
      return "balanced";
    case TaskVariant::kRuler:
      return "ruler";
  }
  FATHOM_CHECK(false, "unknown task variant");
}

}  // namespace fathom::task
