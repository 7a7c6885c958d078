#!/usr/bin/env bash
# Builds the fuzz targets, makes their seeds and runs each for some seconds under ASan and UBSan. A finding stops it.
#
#   tests/fuzz/run.sh [SECONDS] [TARGET…]      default: 600 seconds, every target
#
# A crash is left in build/fuzz/crashes; it becomes a test before it is mended.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds="${1:-600}"
shift || true
targets="${*:-gguf safetensors tokenizer_json tokenizer_model}"

command -v clang++ >/dev/null || {
  echo "fuzz: clang++ is missing; third_party/bootstrap.sh tidy installs it" >&2
  exit 1
}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
folder=build/fuzz
"$folder/bin/fuzz_seeds" "$folder/seeds"
mkdir -p "$folder/crashes"
for target in $targets; do
  mkdir -p "$folder/corpus/$target"
  echo "== fuzz $target: $seconds s"
  dictionary=()
  [ ! -e "tests/fuzz/$target.dict" ] || dictionary=("-dict=tests/fuzz/$target.dict")
  # 512 MB and 10 s for files of some kilobytes: more is a finding too.
  "$folder/bin/fuzz_$target" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=1024 \
    -malloc_limit_mb=512 -print_final_stats=1 "${dictionary[@]}" -artifact_prefix="$folder/crashes/$target-" \
    "$folder/corpus/$target" "$folder/seeds/$target" 2>&1 | tail -n 12
done
echo "fuzz: no finding"
