#pragma once
// Words of the reports in one language: reports/labels/*.ini, one `key = text` a line.

#include <map>
#include <string>
#include <string_view>

namespace fathom::reports {

class Labels {
 public:
  /// \throws ConfigError for a language without labels, naming those there are.
  explicit Labels(std::string_view language);

  /// \throws InvariantError for a key that the language lacks.
  const std::string& operator()(std::string_view key) const;
  const std::map<std::string, std::string, std::less<>>& all() const { return texts_; }
  const std::string& language() const { return language_; }

 private:
  std::string language_;
  std::map<std::string, std::string, std::less<>> texts_;
};

}  // namespace fathom::reports
