#!/bin/sh
# Builds the libraries for musl; a program runs on them linked statically, and with the library preloaded.
# Usage: scripts/test_musl.sh BUILD
set -eu
cd "$(dirname "$0")/.."
build=$1
mkdir -p "$build"
cmake --preset musl -B "$build" >"$build/log" 2>&1 || { cat "$build/log"; exit 1; }
cmake --build "$build" -j"${JOBS:-$(nproc)}" --target hummock_shared hummock_static >"$build/log" 2>&1 ||
  { tail -50 "$build/log"; exit 1; }
compile() { musl-gcc -O1 -fno-builtin -Iinclude tests/platforms/program.c "$@" -pthread; }
compile -static -Wl,-u,hummock_malloc -o "$build/static" "$build/libhummock.a"
compile -o "$build/dynamic"
"$build/static"
echo "musl: a program linked statically runs on Hummock"
LD_PRELOAD="$build/libhummock.so" "$build/dynamic"
echo "musl: a program with Hummock preloaded runs on it"
