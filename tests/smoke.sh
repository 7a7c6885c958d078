#!/usr/bin/env bash
# One tiny sweep from the config to the page: trains, evaluates, stores, reports, and does it again from what is stored.
#
#   tests/smoke.sh FATHOM FOLDER      the folder is emptied first
set -euo pipefail
fathom="$1"
folder="$2"
config="$(dirname "$0")/../configs/smoke.ini"

fail() {
  echo "smoke: $1" >&2
  exit 1
}

rm -rf "$folder"
mkdir -p "$folder"
export FATHOM_CACHE="$folder/cache"
run() { "$fathom" run "$config" --db "$folder/smoke.db" --set "report.out=$folder/page"; }

run
[ -s "$folder/page/index.html" ] || fail "'fathom run' wrote no page to $folder/page/index.html"
for format in html markdown csv json terminal; do
  "$fathom" report --db "$folder/smoke.db" --format "$format" --out "$folder/$format" >/dev/null ||
    fail "'fathom report --format $format' failed"
done

# A second run finds every sample in the database.
cp -r "$folder/page" "$folder/first_page"
started=$SECONDS
run >/dev/null
[ $((SECONDS - started)) -le 10 ] || fail "the second run took $((SECONDS - started)) s; it must find everything done"
echo "smoke: ok"
