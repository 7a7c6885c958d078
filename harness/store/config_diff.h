#pragma once
// What differs between two canonical configurations, for people.

#include <string>
#include <string_view>
#include <vector>

namespace fathom::store {

/// One line for each key whose value differs: "sweep.samples: 10 before, 20 now". Keys carry their section in front.
std::vector<std::string> config_differences(std::string_view before, std::string_view now);

}  // namespace fathom::store
