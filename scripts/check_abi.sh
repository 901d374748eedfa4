#!/bin/sh
# Compares a library's interface with that of the last release, packaging/abi/libhummock.abi: what is gone or has
# changed is an error, what is new is not.
# Usage: scripts/check_abi.sh LIBRARY            compares
#        scripts/check_abi.sh --store LIBRARY    makes it the last release's
set -eu
cd "$(dirname "$0")/.."
stored=packaging/abi/libhummock.abi
store=
[ "${1:-}" != --store ] || { store=yes; shift; }
[ -f "${1:-}" ] || { echo "check_abi.sh: there is no library called \"${1:-}\"" >&2; exit 2; }
if [ $store ]; then
  abidw --exported-interfaces-only --headers-dir include/hummock --drop-private-types --no-show-locs \
    --no-comp-dir-path --no-corpus-path "$1" | sed "s#path='[^']*/src/#path='src/#" >"$stored"
  exit
fi
abidiff --no-added-syms --suppressions packaging/abi/grows.suppr --headers-dir2 include/hummock --drop-private-types \
  --exported-interfaces-only "$stored" "$1" ||
  { echo "the interface of $1 is no longer that of the last release" >&2; exit 1; }
echo "the interface of the last release is whole"
