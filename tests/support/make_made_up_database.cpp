// Writes a database of made-up results, to look at reports without training anything:
//   made_up_database FILE [one|many|unicode|empty]
#include <cstdio>
#include <exception>
#include <string>

#include "harness/store/result_store.h"
#include "tests/support/made_up_run.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: made_up_database FILE [one|many|unicode|empty]\n", stderr);
    return 2;
  }
  try {
    fathom::test::put_made_up_run(*fathom::store::open_store(argv[1]), "made-up",
                                  fathom::test::made_up_sweep(argc > 2 ? argv[2] : ""));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
