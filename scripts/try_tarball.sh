#!/bin/sh
# Builds what the tarball has, with its tests, and runs those of each area that take little.
set -eu
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
work=$PWD/out/tarball
rm -rf "$work"
mkdir -p "$work"
tar -xzf out/packages/hummock-*.tar.gz -C "$work" --strip-components=1
cd "$work"
cmake --preset test >log 2>&1 && cmake --build build -j"$jobs" >>log 2>&1 || { tail -40 log; exit 1; }
ctest --test-dir build -LE '^long$' -L '^(unit|preload|static|packaging|docs|cli)$' -j"$jobs" --no-tests=error \
  --output-on-failure >log 2>&1 || { cat log; exit 1; }
passed=$(grep 'tests passed' log)
rm -rf "$work"
echo "the tarball: $passed"
