#!/bin/sh
# Makes the Conan package and a program that uses it, in a Conan home of its own.
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
conan=$work/venv/bin/conan
"$conan" profile detect --force >"$work/log" 2>&1
"$conan" create packaging/conan -s build_type=Release >>"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
[ "$(grep -c '^on Hummock$' "$work/log")" -ge 2 ] || { tail -40 "$work/log"; exit 1; }
echo "the Conan package is made, and two programs run on it"
