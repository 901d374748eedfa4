#!/bin/bash
# Runs the fuzz targets and the chaos program for a while, side by side: soak.sh BUILD MINUTES
# With clang the targets are built with libFuzzer (out/fuzz), else those of BUILD draw their bytes at random.
# What is found is told, and left in out/soak: bytes to give to the target, or a seed in the log.
set -u
cd "$(dirname "$0")/.."
case ${2:-} in '' | 0* | *[!0-9]*) echo "soak.sh: minutes are a whole number from 1, not \"${2:-}\"" >&2; exit 2 ;; esac
build=$1 seconds=$(($2 * 60)) out=$PWD/out/soak
targets="malloc space proxy options region_log documents page_figures"
mkdir -p "$out"
rm -f "$out/found"

fuzzers=$build/tests/fuzz
if command -v clang++ >/dev/null 2>&1; then
  fuzzers=out/fuzz/tests/fuzz
  if ! { cmake --preset fuzz && cmake --build out/fuzz -j"$(nproc)" --target $(printf 'fuzz_%s ' $targets); } >"$out/build.log" 2>&1; then
    tail -20 "$out/build.log"
    exit 1
  fi
else
  echo "no clang: bytes are drawn at random, which finds less"
fi

found() {
  echo "$1: a finding; see $2"
  echo "$1" >>"$out/found"
}

# One target after the other. A corpus of its own keeps what is new, from one soak to the next.
fuzz() {
  local target each=$(($1 / $(wc -w <<<"$targets")))
  for target in $targets; do
    mkdir -p "$out/corpus-$target"
    echo "fuzz $target: $each s"
    "$fuzzers/fuzz_$target" -max_total_time=$each -timeout=60 -rss_limit_mb=4096 -artifact_prefix="$out/$target-" \
      "$out/corpus-$target" "tests/fuzz/corpus/$target" >"$out/$target.log" 2>&1 ||
      found "fuzz $target" "$out/$target.log"
  done
}

# One mode after the other, each with another seed, until the time is over.
chaos() {
  local end=$((SECONDS + $1)) seed=$(date +%s) mode program
  while [ $SECONDS -lt $end ]; do
    for mode in default checked decay0 background thp fork limit refuse; do
      [ $SECONDS -lt $end ] || break
      program=chaos seed=$((seed + 1))
      [ $mode = refuse ] && program=chaos_prefixed
      "$build/tests/chaos/$program" --seed $seed --steps 8000 --threads $((1 + seed % 6)) --mode $mode \
        --plugin "$build/tests/chaos/libchaos_plugin.so" >"$out/chaos-$seed.log" 2>&1 &&
        rm "$out/chaos-$seed.log" || found "chaos $mode" "$out/chaos-$seed.log"
    done
  done
}

fuzz $seconds &
chaos $seconds
wait
[ ! -e "$out/found" ] || { echo "$(wc -l <"$out/found") findings"; exit 1; }
echo "no promise broken in $2 minutes"
