#!/usr/bin/env bash
# From a bare Debian 12 or 13 to the first report: installs packages, builds, trains two tiny models, sweeps them.
#
#   ./quickstart.sh [options of `fathom run`, for example --set sweep.samples=2]
#
# The results stay in quickstart.db; run it again and finished work is skipped.
set -euo pipefail
cd "$(dirname "$0")"

step="starting"
report_failure() {
  code=$?
  [ "$code" -eq 0 ] || echo "quickstart: failed while $step (exit $code)" >&2
}
trap report_failure EXIT
begin() {
  step="$1"
  echo
  echo "== quickstart: $step"
}

begin "installing packages"
third_party/bootstrap.sh build

if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
begin "configuring the build (preset release)"
cmake --preset release

begin "building fathom (several minutes the first time)"
cmake --build --preset release --target fathom

begin "training and sweeping (configs/quickstart.ini)"
build/release/bin/fathom run configs/quickstart.ini --db quickstart.db "$@"

page="reports/out/quickstart/index.html"
step="looking for the report"
[ -f "$page" ] && echo && echo "The report: $PWD/$page" || echo "The report is where 'fathom run' said above."
