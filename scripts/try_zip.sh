#!/bin/sh
# Unpacks the zip for Windows in a Wine of its own, runs programs with what is in it, removes it; no file may be left.
# The 32-bit files are looked at only: most machines' Wine runs no 32-bit programs.
set -eu
cd "$(dirname "$0")/.."
zip=$(ls "$PWD"/out/packages/hummock-*-windows.zip)
work=$(mktemp -d)
WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=;winemenubuilder.exe,winedbg.exe=d"
export WINEPREFIX WINEDEBUG WINEDLLOVERRIDES
unset DISPLAY
trap 'wineserver -k 2>/dev/null || true; rm -rf "$work"' EXIT
fail() {
  cat "$work/log"
  echo "try_zip.sh: $1" >&2
  exit 1
}
cc=x86_64-w64-mingw32-gcc

mkdir "$work/try"
cd "$work/try"
cat >plain.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  for (int i = 0; i < 1000; i++) *(char* volatile*)malloc(100) = 0;
  return puts("ran") < 0;
}
C
cat >linked.c <<'C'
#include <hummock/hummock.h>
#include <stdio.h>
int main(void) {
  struct hummock_stats stats = {sizeof stats};
  void* block = hummock_malloc(5 << 20);
  hummock_stats(&stats);
  return printf("%d\n", block && stats.live >= 5 << 20) < 0;
}
C
$cc plain.c -o plain.exe
wine wineboot --init >"$work/log" 2>&1 || fail "Wine does not start"
wineserver -w
files() { find "$work/wine" "$work/try" | sort; }
files >"$work/before"

python3 -m zipfile -e "$zip" .
folder=$(ls -d hummock-*)
for width in x64 x86; do
  for file in hummock.dll hummock_bi.dll hummock.exe; do
    format=$(objdump -f "$folder/$width/$file" | sed -n 's/.*file format //p')
    case $width$format in x64pei-x86-64 | x86pei-i386) ;; *) echo "$format" >"$work/log"; fail "$width/$file is of another width" ;; esac
  done
done
for file in x86/hummock.lib LICENSE.txt windows.md arma.md include/hummock/hummock.h; do
  [ -s "$folder/$file" ] || fail "there is no $file"
done
wine "$folder/x64/hummock.exe" run --verbose --stats -- plain.exe >"$work/log" 2>&1 || fail "plain.exe does not run"
grep -q '^ran' "$work/log" && grep -q '1 module(s) of it on Hummock' "$work/log" || fail "plain.exe is not on Hummock"
$cc linked.c -o "$folder/x64/linked.exe" -I"$folder/include" "$folder/x64/hummock.lib"
wine "$folder/x64/linked.exe" >"$work/log" 2>&1 || fail "linked.exe does not run"
grep -q '^1' "$work/log" || fail "linked.exe is not on Hummock"
rm -r "$folder"
wineserver -w
files >"$work/after"
diff "$work/before" "$work/after" >"$work/log" || fail "files are left"
echo "zip: unpacked, used and removed without a trace"
