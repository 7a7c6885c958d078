#pragma once
// A golden file that knows which of its cases a test has looked at, so that a case nobody checks is a failure.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/support/golden.h"

namespace fathom::test {

/// A case is every object of every list of objects, and otherwise every top-level value; texts are commentary.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name) : root_(read_golden(name)) { collect(root_, ""); }

  /// For looking only; counts nothing.
  const nlohmann::json& root() const { return root_; }

  /// The value at a JSON pointer; it and all that it holds count as checked.
  const nlohmann::json& take(const std::string& pointer) {
    taken_.insert(pointer);
    return root_.at(nlohmann::json::json_pointer(pointer));
  }

  /// Takes every element of the list at `pointer` and hands it to `check`.
  template <typename Check>
  void each(const std::string& pointer, Check check) {
    const std::size_t n = root_.at(nlohmann::json::json_pointer(pointer)).size();
    for (std::size_t i = 0; i < n; ++i) {
      INFO("case " << pointer << "/" << i);
      check(take(pointer + "/" + std::to_string(i)));
    }
  }

  std::size_t n_cases() const { return cases_.size(); }

  std::vector<std::string> unchecked() const {
    std::vector<std::string> left;
    std::copy_if(cases_.begin(), cases_.end(), std::back_inserter(left),
                 [this](const std::string& pointer) { return !is_taken(pointer); });
    return left;
  }

 private:
  static bool is_list_of_objects(const nlohmann::json& value) {
    return value.is_array() && !value.empty() && value.front().is_object();
  }

  static bool holds_cases(const nlohmann::json& value) {
    if (is_list_of_objects(value)) return true;
    return value.is_object() && std::any_of(value.begin(), value.end(), holds_cases);
  }

  static bool is_commentary(const nlohmann::json& value) {
    if (value.is_object()) return std::all_of(value.begin(), value.end(), is_commentary);
    return value.is_string();
  }

  void collect(const nlohmann::json& value, const std::string& pointer) {
    for (const auto& [key, member] : value.items()) {
      const std::string here = pointer + "/" + key;
      if (is_commentary(member)) continue;
      if (is_list_of_objects(member)) {
        for (std::size_t i = 0; i < member.size(); ++i) cases_.push_back(here + "/" + std::to_string(i));
      } else if (holds_cases(member)) {
        collect(member, here);
      } else {
        cases_.push_back(here);
      }
    }
  }

  bool is_taken(const std::string& pointer) const {
    for (std::size_t end = pointer.size(); end != std::string::npos && end > 0; end = pointer.rfind('/', end - 1)) {
      if (taken_.count(pointer.substr(0, end)) != 0) return true;
    }
    return false;
  }

  nlohmann::json root_;
  std::vector<std::string> cases_;
  std::set<std::string> taken_;
};

}  // namespace fathom::test
