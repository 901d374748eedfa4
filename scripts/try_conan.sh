#!/bin/sh
# Makes the Conan package and a program that uses it, in a Conan home of its own; removes it; no file may be left.
set -eu
cd "$(dirname "$0")/.."
work=$PWD/out/conan
mkdir -p "$work"
[ -x "$work/venv/bin/conan" ] || {
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" -q --disable-pip-version-check install 'conan>=2,<3'
}
CONAN_HOME=$work/home
export CONAN_HOME
rm -rf "$CONAN_HOME"
conan=$work/venv/bin/conan
"$conan" profile detect --force >"$work/log" 2>&1
"$conan" create packaging/conan -s build_type=Release >>"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
[ "$(grep -c '^on Hummock$' "$work/log")" -ge 2 ] || { tail -40 "$work/log"; exit 1; }
"$conan" remove -c 'hummock/*' >>"$work/log" 2>&1
left=$(find "$CONAN_HOME/p" -mindepth 1 -name '*hummo*')
[ -z "$left" ] || { echo "$left"; echo "try_conan.sh: files are left" >&2; exit 1; }
rm -rf packaging/conan/test_package/build packaging/conan/test_package/CMakeUserPresets.json
echo "the Conan package is made, two programs run on it, and it is removed without a trace"
