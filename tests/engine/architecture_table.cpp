// Tables of architectures and their largest difference from the reference, in both forms, for the docs:
// ninja architecture_table && bin/architecture_table ../shared/fixtures/tiny

#include <fmt/format.h>

#include <cstdio>

#include "harness/checkpoint/architecture.h"
#include "harness/engine/probe.h"
#include "tests/engine/fixture.h"
#include "tests/engine/gguf_fixture.h"

namespace {

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

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
    return fmt::format("| {} | | not loadable: {} | | |\n", name, first_line(error.what()));
  }
}

/// Against the reference, or where GGUF cannot say all of the configuration, against the same one loaded from
/// safetensors.
std::string gguf_row(const std::string& root, const std::string& name) {
  using namespace fathom;  // NOLINT
  const std::string type = test::model_type_of(root + "/" + name);
  if (!test::has_gguf_form(type)) return "";
  try {
    const test::GgufFixture fixture(root + "/" + name, name);
    const test::TempFolder folder;
    const auto gguf = test::written_out(*fixture.checkpoint, fixture.config, folder);
    const auto logits = test::probe_of(*gguf, fixture.ids).last_logits;
    const bool edited = fixture.reference.empty();
    const double gap = edited ? test::largest_gap(test::probe_of(*fixture.checkpoint, fixture.ids).last_logits, logits)
                              : test::largest_gap(fixture.reference, logits);
    return fmt::format("| {} | {} | {:.1e} | {} |\n", name, test::gguf_architecture(type), gap,
                       edited ? "safetensors, configuration edited" : "the reference");
  } catch (const std::exception& error) {
    const std::string text = first_line(error.what());
    return fmt::format("| {} | {} | refused | {} |\n", name, test::gguf_architecture(type),
                       text.substr(text.find("blk.") == std::string::npos ? 0 : text.find("blk.")));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: architecture_table FOLDER\n", stderr);
    return 2;
  }
  const auto names = fathom::test::fixture_names(argv[1]);
  std::fputs("| checkpoint | architecture | largest difference of a last logit | allowed | greedy tokens |\n", stdout);
  std::fputs("|---|---|---:|---:|---|\n", stdout);
  for (const std::string& name : names) std::fputs(table_row(argv[1], name).c_str(), stdout);
  std::fputs("\n| checkpoint as GGUF | architecture | largest difference of a last logit | against |\n", stdout);
  std::fputs("|---|---|---:|---|\n", stdout);
  for (const std::string& name : names) std::fputs(gguf_row(argv[1], name).c_str(), stdout);
  return 0;
}
