# What the scripts share; sourced by them.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\n== %s\n' "$*" >&2; }

fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# packages_of SECTION...: the names in these sections of scripts/packages.
packages_of() {
  awk -v wanted=" $* " '
    /^\[/ { section = substr($0, 2, length($0) - 2); next }
    /^[a-z0-9]/ && index(wanted, " " section " ") { print }
  ' "$root/scripts/packages" | sort -u
}

# need_packages SECTION...: installs what is missing; asks for nothing when all is there.
need_packages() {
  local wanted missing as_root=()
  mapfile -t wanted < <(packages_of "$@")
  if ! command -v dpkg-query apt-get >/dev/null; then
    fail "this is no Debian; install what these packages bring and build with cmake: ${wanted[*]}"
  fi
  mapfile -t missing < <(
    for package in "${wanted[@]}"; do
      dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || echo "$package"
    done
  )
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
}

# configure PRESET [CMAKE FLAG...]
configure() {
  local preset=$1
  shift
  local launcher=()
  if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  (cd "$root" && cmake --preset "$preset" "${launcher[@]}" "$@" >&2)
}

# build PRESET [TARGET...]
build() {
  local preset=$1
  shift
  (cd "$root" && cmake --build "build/$preset" ${1:+--target "$@"} >&2)
}
