#!/bin/sh
# Usage: aarch64.sh SOURCE BUILD
set -eu
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$program" >/dev/null || { echo "skipped: no $program"; exit 77; }
done
exec "$1/tests/support/run_preset.sh" "$1" "$2" aarch64 0.1 -j"$(nproc)"
