#!/bin/sh
# Installs the .deb packages into a clean Debian, uses them, removes them; nothing may be left. As root.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "try_packages.sh: needs root for a clean Debian; the packages are not tried"; exit 0; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mmdebstrap --variant=minbase --include=gcc,libc6-dev,pkg-config bookworm "$root" >"$root.log" 2>&1 || { tail -20 "$root.log"; exit 1; }
rm -f "$root.log"
files() { (cd "$root" && find . -xdev -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./proc -prune -o \
  -path ./var/cache -prune -o -path ./var/lib/apt -prune -o -path ./etc/resolv.conf -prune -o -path ./debs -prune -o -path ./tmp -prune -o -print | sort); }
mkdir "$root/debs"
files >"$root/tmp/before"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true  # what they depend on comes from the mirror
cp out/packages/*.deb "$root/debs"
cat >"$root/tmp/program.c" <<'C'
#include <hummock/hummock.h>
#include <stdio.h>
int main(void) { return puts(hummock_is_active() ? "on Hummock" : "not on Hummock") < 0; }
C
mount -t proc proc "$root/proc" 2>/dev/null || echo "no /proc in the clean root"
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
chroot "$root" sh -euc '
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
  apt-get install -y -qq --no-install-recommends /debs/*.deb >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
  hummock run -- grep -q libhummock /proc/self/maps
  hummock check cat
  hummock profile --quiet --folded /tmp/folded -- cat /tmp/program.c >/tmp/log
  hummock export --help >/tmp/log
  hummock record --help >/tmp/log
  cc /tmp/program.c -o /tmp/shared $(pkg-config --cflags --libs hummock)
  cc -static /tmp/program.c -o /tmp/static $(pkg-config --static --cflags --libs hummock)
  /tmp/shared
  /tmp/static
  apt-get purge -y -qq --autoremove hummock libhummock-dev libhummock1 >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }
'
files >"$root/tmp/after"
diff "$root/tmp/before" "$root/tmp/after" || { echo "files are left" >&2; exit 1; }
echo "the packages install, work and are removed without a trace"
