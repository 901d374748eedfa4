#!/bin/sh
# Builds the vcpkg port and a program with it, removes it. With vcpkg where VCPKG_ROOT says, or the path has it; else
# try/vcpkg.cmake does the few things of it that the port needs.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
vcpkg=$(command -v "${VCPKG_ROOT:+$VCPKG_ROOT/}vcpkg" || true)
if [ "$vcpkg" ]; then
  "$vcpkg" install hummock --overlay-ports=packaging/vcpkg --x-install-root="$work/installed" >"$work/log" 2>&1 ||
    { tail -40 "$work/log"; exit 1; }
  prefix=$(dirname "$(find "$work/installed" -path '*/lib/libhummock.so')")/..
else
  cmake -DPORT="$PWD/packaging/vcpkg/hummock" -DWORK="$work" -P scripts/try/vcpkg.cmake >"$work/log" 2>&1 ||
    { tail -40 "$work/log"; exit 1; }
  prefix=$work/packages/hummock
fi
cmake -S packaging/conan/test_package -B "$work/program" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/program" >>"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
for program in by_shared by_static; do
  [ "$("$work/program/$program")" = "on Hummock" ] || { echo "try_vcpkg.sh: $program is not on Hummock" >&2; exit 1; }
done
echo "the vcpkg port is built with ${vcpkg:-a stand-in for vcpkg}, and two programs run on it"
