#!/bin/sh
# Puts packages of out/packages one after the other into a clean Debian, runs programs with each, removes it; no file
# may be left. As root. scripts/try has what each of them does there.
# Usage: scripts/try_packages.sh [deb|rpm|wheel|dist|formula]...   without a name: those that are there
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "try_packages.sh: needs root for a clean Debian; the packages are not tried"; exit 0; }

fail() {
  echo "try_packages.sh: $1" >&2
  exit 1
}

# A file that stands for each kind.
file_of() {
  case $1 in
    deb) echo 'libhummock1_*.deb' ;;
    rpm) echo 'hummock-devel-*.rpm' ;;
    wheel) echo "hummock-*_$(uname -m).whl" ;;
    dist) echo 'hummock-*.tar.gz' ;;
    formula) echo 'hummock.rb' ;;
    *) fail "no package called $1" ;;
  esac
}

is_there() { [ -n "$(find out/packages -name "$(file_of "$1")" 2>/dev/null)" ]; }

kinds=$*
[ "$kinds" ] || for kind in deb rpm wheel dist formula; do
  ! is_there $kind || kinds="$kinds $kind"
done
[ "$kinds" ] || fail "there are no packages in out/packages; make packages makes them"
for kind in $kinds; do
  is_there "$kind" || fail "there is no $(file_of "$kind") in out/packages"
done

work=$(mktemp -d)
root=$work/root
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$work"' EXIT
mmdebstrap --variant=minbase bookworm "$root" >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true  # what packages depend on comes from the mirror
mount -t proc proc "$root/proc" 2>/dev/null || fail "cannot mount /proc in the clean root"
mkdir "$root/packages" "$root/try"
cp out/packages/* "$root/packages"
cp scripts/try/* "$root/try"

# Not what the package managers keep of their own.
files() {
  (cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/lib/rpm -o -path ./var/log -o \
    -path ./var/cache -o -path ./proc -o -path ./tmp \) -prune -o -print | sort)
}

# With nothing of the caller's environment but the way to the mirror.
inside() {
  chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1 sh -eu "$@"
}

for kind in $kinds; do
  inside "/try/$kind.sh" prepare
  files >"$work/before"
  inside "/try/$kind.sh" use
  files >"$work/after"
  diff "$work/before" "$work/after" || fail "$kind: files are left"
  echo "$kind: installed, used and removed without a trace"
done
