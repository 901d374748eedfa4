#!/bin/sh
# Builds what a CMake preset builds, in a directory of its own, and runs its tests, scaled down.
# Usage: run_preset.sh SOURCE BUILD PRESET SCALE TARGETS [ctest argument]...   TARGETS: "all", or some of them
set -eu
source=$1 build=$2 preset=$3 scale=$4 targets=$5
shift 5
cd "$source"
mkdir -p "$(dirname "$build")"
cmake --preset "$preset" -B "$build" >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
# shellcheck disable=SC2086
cmake --build "$build" -j"$(nproc)" --target $targets >"$build.log" 2>&1 || { tail -50 "$build.log"; exit 1; }
TEST_SCALE=${TEST_SCALE:-$scale} ctest --test-dir "$build" --no-tests=error --output-on-failure "$@"
