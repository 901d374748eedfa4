#!/bin/sh
# Names, in one sentence, the tests that `make test` leaves out: those with the label `long`.
# Usage: scripts/left_out.sh BUILD
set -eu
names=$(ctest --test-dir "$1" -N -L '^long$' | sed -n 's/^ *Test *#[0-9]*: //p')
count=$(printf '%s\n' "$names" | wc -l)
[ -n "$names" ] || exit 0
echo
echo "Left out are $count long tests ($(echo $names | sed 's/ /, /g')): make test-all runs them as well."
