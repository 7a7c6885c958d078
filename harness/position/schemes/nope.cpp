#include "harness/position/position_scheme.h"

namespace fathom::position {
namespace {

/// Overrides no hook: the causal mask is all the position information there is.
class NopeScheme : public PositionScheme {};

std::shared_ptr<PositionScheme> make_nope(const SchemeContext&) {
  return std::make_shared<NopeScheme>();
}

std::vector<OptionDescription> describe_nope() {
  return {};
}

}  // namespace

PositionSchemeEntry schemes::nope_entry() {
  return {{"nope", 1, "No position signal; order is known from the causal mask alone.", "Kazemnejad et al. 2023", false,
           false, &describe_nope},
          &make_nope};
}

}  // namespace fathom::position
