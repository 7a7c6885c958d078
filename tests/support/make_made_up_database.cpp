// Writes a database of made-up results, to look at reports without training anything:
//   made_up_database FILE [one|many|theta|unicode|empty|zeros|ones|million]
//   made_up_database FILE pair      two runs of half a million samples each that differ in 2 % of the answers
#include <cstdio>
#include <exception>
#include <string>

#include "harness/store/result_store.h"
#include "tests/support/made_up_run.h"

namespace {

void put_runs(const std::string& path, const std::string& kind) {
  const auto sink = fathom::store::open_store(path);
  if (kind != "pair") {
    fathom::test::put_made_up_run(*sink, "made-up", fathom::test::made_up_sweep(kind));
    return;
  }
  fathom::test::MadeUpSweep sweep = fathom::test::made_up_sweep("half");
  fathom::test::put_made_up_run(*sink, "before", sweep);
  sweep.flip_share = 0.02;
  fathom::test::put_made_up_run(*sink, "now", sweep);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: made_up_database FILE [one|many|theta|unicode|empty|zeros|ones|million|pair]\n", stderr);
    return 2;
  }
  try {
    put_runs(argv[1], argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
