#!/bin/sh
# Makes each of the named packages twice from what is committed; fails where the bytes differ.
# Usage: scripts/reproducible.sh dist|deb|rpm|zip|wheel|crates|formula...
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "reproducible.sh: which package?" >&2; exit 2; }
first=$(mktemp -d)
trap 'rm -rf "$first"' EXIT
for part in "$@"; do
  rm -rf out/packages out/package-*
  scripts/make_packages.sh "$part" >/dev/null
  mkdir "$first/$part"
  cp out/packages/* "$first/$part"
  rm -rf out/packages out/package-*
  scripts/make_packages.sh "$part" >/dev/null
  for file in "$first/$part"/*; do
    cmp "$file" "out/packages/${file##*/}" || { echo "$part: two builds differ" >&2; exit 1; }
    echo "the same bytes: ${file##*/}"
  done
done
