#!/usr/bin/env bash
# Everything a change must pass, from a bare Debian 12 or 13. The last lines are CTest's summary.
#
#   ./test.sh          format, build (preset ci), one tiny sweep end to end, fast tests and lints
#   ./test.sh --all    also the sanitizers (preset asan), clang-tidy (preset tidy) and the slow tests
set -euo pipefail
cd "$(dirname "$0")"

all=no
case "$#:${1:-}" in
  0:) ;;
  1:--all) all=yes ;;
  *)
    echo "usage: ./test.sh [--all]" >&2
    exit 2
    ;;
esac

step="starting"
report_failure() {
  code=$?
  [ "$code" -eq 0 ] || echo "test.sh: FAILED while $step (exit $code)" >&2
}
trap report_failure EXIT
begin() {
  step="$1"
  echo
  echo "== test.sh: $step ($SECONDS s so far)"
}

build() {  # build PRESET
  begin "configuring preset $1"
  cmake --preset "$1"
  begin "building preset $1"
  cmake --build --preset "$1"
}

begin "installing packages"
third_party/bootstrap.sh build format
# Busy-waiting threads of one test slow down its neighbours.
export OMP_WAIT_POLICY=PASSIVE
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

begin "checking the format"
tests/lint/format.sh

build ci

begin "running configs/smoke.ini end to end"
tests/smoke.sh build/ci/bin/fathom build/ci/smoke

if [ "$all" = yes ]; then
  build asan
  begin "running the fast tests under sanitizers"
  ctest --preset asan
  begin "installing clang-tidy"
  third_party/bootstrap.sh tidy
  build tidy
  begin "running all tests, slow ones included"
  ctest --test-dir build/ci --output-on-failure
else
  begin "running the fast tests"
  ctest --preset ci
fi
