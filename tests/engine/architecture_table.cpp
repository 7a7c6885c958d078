// Table of architectures and their largest difference from the reference, for the docs:
// ninja architecture_table && bin/architecture_table ../shared/fixtures/tiny

#include <fmt/format.h>

#include <cstdio>

#include "harness/checkpoint/architecture.h"
#include "harness/engine/probe.h"
#include "tests/engine/fixture.h"

namespace {

std::string table_row(const std::string& root, const std::string& name) {
  using namespace fathom;  // NOLINT
  try {
    const test::Fixture fixture(root + "/" + name);
    const auto& config = fixture.checkpoint->config();
    const engine::ProbeResult probe = engine::probe_logits(fixture.weights, config, fixture.options, fixture.ids);
    const auto greedy = fixture.expected.value("greedy_no_cache", fixture.expected["greedy"]).get<TokenIds>();
    const bool same = fixture.greedy(config, fixture.ids, greedy.size()) == greedy;
    return fmt::format("| {} | {} | {:.1e} | {:.0e} | {} |\n", name, config.architecture,
                       test::last_logit_difference(fixture, probe.last_logits), fixture.tolerance,
                       same ? "equal" : "differ");
  } catch (const std::exception& error) {
    const std::string text = error.what();
    return fmt::format("| {} | | not loadable: {} | | |\n", name, text.substr(0, text.find('\n')));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: architecture_table FOLDER\n", stderr);
    return 2;
  }
  std::fputs("| checkpoint | architecture | largest difference of a last logit | allowed | greedy tokens |\n", stdout);
  std::fputs("|---|---|---:|---:|---|\n", stdout);
  for (const std::string& name : fathom::test::fixture_names(argv[1]))
    std::fputs(table_row(argv[1], name).c_str(), stdout);
  return 0;
}
