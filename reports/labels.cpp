#include "reports/labels.h"

#include <fmt/format.h>

#include <vector>

#include "harness/core/error.h"
#include "harness/core/text_util.h"
#include "reports/embedded.h"

namespace fathom::reports {
namespace {

constexpr std::string_view kLabelFolder = "labels/";
constexpr std::string_view kLabelEnding = ".ini";

std::vector<std::string> label_languages() {
  std::vector<std::string> out;
  const EmbeddedTable table = embedded_table();
  for (std::size_t i = 0; i < table.n_files; ++i) {
    const std::string_view name = table.files[i].name;
    if (!starts_with(name, kLabelFolder)) continue;
    out.emplace_back(name.substr(kLabelFolder.size(), name.size() - kLabelFolder.size() - kLabelEnding.size()));
  }
  return out;
}

}  // namespace

std::string_view embedded_file(std::string_view name) {
  const EmbeddedTable table = embedded_table();
  for (std::size_t i = 0; i < table.n_files; ++i) {
    if (table.files[i].name == name) return {table.files[i].data, table.files[i].size_bytes};
  }
  throw InvariantError(fmt::format("the binary holds no file '{}'", name));
}

Labels::Labels(std::string_view language) : language_(language) {
  bool found = false;
  for (const std::string& known : label_languages()) found = found || known == language;
  if (!found) {
    throw ConfigError(fmt::format("report: unknown language '{}'; known: {}", language, join(label_languages(), ", ")));
  }
  for (const std::string& line : split(embedded_file(fmt::format("labels/{}.ini", language)), '\n')) {
    const auto equals = line.find('=');
    if (line.empty() || line.front() == '#' || equals == std::string::npos) continue;
    texts_.emplace(std::string(trim(std::string_view(line).substr(0, equals))),
                   std::string(trim(std::string_view(line).substr(equals + 1))));
  }
}

const std::string& Labels::operator()(std::string_view key) const {
  const auto found = texts_.find(key);
  FATHOM_CHECK(found != texts_.end(), fmt::format("language {} has no label '{}'", language_, key));
  return found->second;
}

}  // namespace fathom::reports
