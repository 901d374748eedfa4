#!/bin/sh
# Build, unit, preload and stress tests on machines other than this one. All are tried; fails if one does.
# Usage: scripts/test_platforms.sh [aarch64|riscv64|armhf|i686|pages16k|pages64k|musl]...
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- aarch64 pages16k pages64k riscv64 armhf i686 musl
# Not what forks or draws for long: the emulator takes some fifty times as long for it.
slow="chaos|fuzz|fork_|figures_load|heap_ends|unwritten|trim_load|observe_load"

on_machine() {
  tests/support/run_preset.sh "$PWD" "$PWD/out/$1" "$1" 0.1 platform_tests -L '^(unit|preload|stress)$' -E "$slow" \
    -j"${JOBS:-$(nproc)}"
}

on_musl() {
  scripts/test_musl.sh "$PWD/out/musl"
}

failed=
for platform in "$@"; do
  echo "==== $platform ===="
  case $platform in
    aarch64 | riscv64 | armhf | i686) on_machine "$platform" ;;
    pages16k) QEMU_PAGESIZE=16384 on_machine aarch64 ;;
    pages64k) QEMU_PAGESIZE=65536 on_machine aarch64 ;;
    musl) on_musl ;;
    *) echo "test_platforms.sh: no platform called $platform" >&2; exit 2 ;;
  esac || failed="$failed $platform"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
echo "all passed: $*"
