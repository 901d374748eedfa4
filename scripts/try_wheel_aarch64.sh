#!/bin/sh
# Unpacks the wheel for aarch64 beside Debian's Python for that machine and runs a program with it, under qemu-user.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mmdebstrap --variant=extract --architectures=arm64 --include=python3.11-minimal,libpython3.11-stdlib,libffi8 bookworm \
  "$work/root" >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
python3 -m zipfile -e out/packages/hummock-*_aarch64.whl "$work/wheel"
cat >"$work/program.py" <<'P'
import hummock
kept = [bytes(100) + bytes([n % 256]) for n in range(100_000)]
assert hummock.is_active() and hummock.stats().live > 10_000_000, hummock.stats()
print("on Hummock")
P
said=$(qemu-aarch64 -L "$work/root" -E LD_PRELOAD="$work/wheel/hummock/libhummock.so" -E PYTHONMALLOC=malloc \
  -E PYTHONHOME="$work/root/usr" -E PYTHONPATH="$work/wheel" "$work/root/usr/bin/python3.11" -B "$work/program.py")
[ "$said" = "on Hummock" ] || { echo "try_wheel_aarch64.sh: the program is not on Hummock" >&2; exit 1; }
echo "wheel for aarch64: a program runs on Hummock"
