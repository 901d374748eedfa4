#!/bin/sh
# Build, unit, preload and stress tests on machines other than this one. All are tried; fails if one does.
# Usage: scripts/test_platforms.sh [aarch64|riscv64|armhf|i686|pages16k|pages64k|musl]...
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- aarch64 pages16k pages64k riscv64 armhf i686 musl
# Not what forks or draws for long: the emulator takes some fifty times as long for it.
slow="chaos|fuzz|fork_|figures_load|heap_ends|unwritten|trim_load|observe_load"
# Stacks are taken on x86-64 and aarch64 alone.
no_stacks="|backtrace_test|checked_report_test"
# These need more address space than 32 bits have: refused unmaps keep theirs, threads hold 3 GiB.
narrow="$no_stacks|os_failure_test|kept_test"
# With larger pages these end in a fault under qemu 7.2 with glibc's own malloc, too.
large_pages="|churn|producer_consumer"

on_machine() {
  case $1 in
    aarch64) without=${QEMU_PAGESIZE:+$large_pages} ;;
    riscv64) without=$no_stacks ;;
    armhf | i686) without=$narrow ;;
  esac
  tests/support/run_preset.sh "$PWD" "$PWD/out/$1" "$1" 0.1 platform_tests -L '^(unit|preload|stress)$' -E "$slow$without" \
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
    # Its SVE loads count in pages of 4 KiB whatever -p says, and fail in the rest of the loader's last page.
    pages16k) QEMU_CPU=cortex-a72 QEMU_PAGESIZE=16384 on_machine aarch64 ;;
    pages64k) QEMU_CPU=cortex-a72 QEMU_PAGESIZE=65536 on_machine aarch64 ;;
    musl) on_musl ;;
    *) echo "test_platforms.sh: no platform called $platform" >&2; exit 2 ;;
  esac || failed="$failed $platform"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
echo "all passed: $*"
