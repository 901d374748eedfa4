#!/bin/sh
# Builds the newest peers as shared libraries: FOLDER/lib/libNAME.so, and NAME.json with version and flags.
# Usage: bench/peers/build.sh [FOLDER [NAME]...]   Default: build/peers, all. What is built already stays.
# A peer that cannot be built is named; the others are built all the same, and the exit status is 1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:-build/peers}"
folder=$(cd "${1:-build/peers}" && pwd)
[ $# -eq 0 ] || shift
# The slowest last.
[ $# -gt 0 ] || set -- mimalloc-v3 mimalloc-v2 rpmalloc snmalloc jemalloc-5.3.1 google-tcmalloc
PEER_JOBS=${JOBS:-$(nproc)}
export PEER_JOBS
log=$folder/build.log

missing=
for name in "$@"; do
  [ -e "$folder/lib/lib$name.so" ] && [ "$folder/lib/$name.json" -nt "$here/CMakeLists.txt" ] || missing="$missing $name"
done
[ -n "$missing" ] || exit 0

cargo=$(command -v cargo || true)
[ -n "$cargo" ] || [ ! -x "$HOME/.cargo/bin/cargo" ] || cargo=$HOME/.cargo/bin/cargo
if [ -z "$cargo" ]; then
  echo "the newest peers need cargo to fetch them: https://rustup.rs, or on Debian: apt-get install cargo" >&2
  exit 1
fi
for tool in cmake ninja make; do
  command -v $tool >/dev/null || { echo "the newest peers need $tool to be built" >&2; exit 1; }
done

: >"$log"
fail() {
  tail -n 15 "$log" >&2
  echo "$1 (all of it: $log)" >&2
}
if [ ! -e "$folder/vendor/.whole" ]; then
  echo "fetching the sources from crates.io" >&2
  if ! (cd "$here" && "$cargo" vendor --locked "$folder/vendor") >>"$log" 2>&1; then
    fail "the sources could not be fetched"
    exit 1
  fi
  touch "$folder/vendor/.whole"
fi
if ! cmake -G Ninja -S "$here" -B "$folder" -DVENDOR="$folder/vendor" >>"$log" 2>&1; then
  fail "the build could not be configured"
  exit 1
fi
status=0
for name in $missing; do
  started=$(date +%s)
  if cmake --build "$folder" --target "$name" -j "$PEER_JOBS" >>"$log" 2>&1; then
    echo "built $name in $(($(date +%s) - started)) s" >&2
  else
    fail "$name could not be built"
    status=1
  fi
done
exit $status
