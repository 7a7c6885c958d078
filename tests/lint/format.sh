#!/usr/bin/env bash
# Fails, naming the files, if a source is not laid out as .clang-format says.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Versions break lines differently; the tree is laid out by Debian 12's.
expected=14
if ! command -v clang-format >/dev/null; then
  echo "format: SKIPPED, clang-format is not installed"
  exit 0
fi
version=$(clang-format --version | sed -E 's/.*version ([0-9]+).*/\1/')
if [ "$version" != "$expected" ]; then
  echo "format: SKIPPED, clang-format is version $version and the tree is laid out by version $expected"
  exit 0
fi

bad=""
for file in $(find harness tasks reports tests -name '*.cpp' -o -name '*.h' | sort); do
  clang-format --dry-run -Werror "$file" >/dev/null 2>&1 || bad="$bad $file"
done
if [ -n "$bad" ]; then
  echo "format: these files are not laid out as .clang-format says:" >&2
  for file in $bad; do echo "  $file" >&2; done
  echo "fix them with: clang-format -i$bad" >&2
  exit 1
fi
echo "format: ok"
