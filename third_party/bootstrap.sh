#!/usr/bin/env bash
# Installs the Debian packages that Fathom is built from. Does nothing, and needs no network, when all are there.
#
#   third_party/bootstrap.sh [build] [format] [tidy] [models]        default: build
#
# FATHOM_BOOTSTRAP=off skips it, for systems that have the libraries from elsewhere.
set -euo pipefail

build_packages="g++ cmake ninja-build git ca-certificates catch2
  libtorch-dev libopenblas0-pthread libfmt-dev libboost-program-options-dev libsqlite3-dev nlohmann-json3-dev
  libkainjow-mustache-dev libpcre2-dev libicu-dev libhwy-dev libdnnl-dev libxxhash-dev"
format_packages="clang-format"
tidy_packages="clang clang-tidy"
models_packages="python3 python3-pip ca-certificates"

say() { echo "bootstrap: $*"; }
fail() {
  echo "bootstrap: $1" >&2
  exit "${2:-1}"
}

wanted=""
for group in "${@:-build}"; do
  case "$group" in
    build) wanted="$wanted $build_packages" ;;
    format) wanted="$wanted $format_packages" ;;
    tidy) wanted="$wanted $tidy_packages" ;;
    models) wanted="$wanted $models_packages" ;;
    *) fail "unknown group '$group'; groups: build, format, tidy, models" 2 ;;
  esac
done
# One line, so that it can be pasted after an install command.
wanted=$(echo $wanted)

if [ "${FATHOM_BOOTSTRAP:-on}" = off ]; then
  say "skipped (FATHOM_BOOTSTRAP=off); needed are what Debian calls: $wanted"
  exit 0
fi

system=unknown version="" title=""
if [ -r /etc/os-release ]; then
  system=$(. /etc/os-release && echo "${ID:-unknown}")
  version=$(. /etc/os-release && echo "${VERSION_ID:-}")
  title=$(. /etc/os-release && echo "${PRETTY_NAME:-}")
fi
case "$system:$version" in
  debian:12 | debian:13) ;;
  *)
    fail "this is ${title:-$(uname -s)}; packages are installed by name on Debian 12 and 13 only.
Install what Debian calls: $wanted
Then run this again with FATHOM_BOOTSTRAP=off." 2
    ;;
esac

missing=""
for package in $wanted; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
missing=$(echo $missing)
if [ -z "$missing" ]; then
  say "every package is there"
  exit 0
fi

as_root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "packages are missing and sudo is not there; run as root: apt-get install $missing"
  as_root="sudo"
fi
say "installing: $missing"
apt_options="-y -qq --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update ||
  fail "apt-get update failed; is there a network? needed: $missing"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get $apt_options install $missing >/dev/null ||
  fail "apt-get could not install: $missing"
say "done"
