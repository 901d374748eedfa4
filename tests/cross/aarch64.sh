#!/bin/sh
# Usage: aarch64.sh SOURCE BUILD TARGETS [ctest argument]...
set -eu
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
done
source=$1 build=$2 targets=$3
shift 3
exec "$source/tests/support/run_preset.sh" "$source" "$build" aarch64 0.1 "$targets" -j"$(nproc)" "$@"
