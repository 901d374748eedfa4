#!/bin/sh
# Builds the prefixed library and its unit and stress tests with a sanitizer, and runs them, scaled down.
# Usage: sanitize.sh SOURCE BUILD PRESET
set -eu
source=$1 build=$2 preset=$3
cd "$source"
cmake --preset "$preset" -B "$build" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" -j"$(nproc)" >"$build.log" 2>&1 || { tail -50 "$build.log"; exit 1; }
HUMMOCK_TEST_SCALE=${HUMMOCK_TEST_SCALE:-0.05} ctest --test-dir "$build" --output-on-failure \
  -R '^(unit|stress)\.' -E 'os_failure|fork_load|dlopen'
