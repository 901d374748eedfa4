#!/bin/sh
# Installs the Debian packages that the named groups need, or names them when it may not.
# Usage: scripts/packages.sh [libraries|tool|build|demo|test|bench|programs|lint|fuzz|cross|platforms|bindings|rust|windows|wine|site|abi|systemd]...   Quick when nothing is missing.
set -eu

packages_of() {
  case $1 in
    libraries) echo "g++ gcc libc6-dev binutils cmake ninja-build" ;;
    tool) echo "libcli11-dev nlohmann-json3-dev libfmt-dev libncurses-dev libcpp-httplib-dev libdw-dev libprotozero-dev zlib1g-dev libzstd-dev python3" ;;
    build) echo "g++ gcc libc6-dev binutils cmake ninja-build libcli11-dev nlohmann-json3-dev libfmt-dev libncurses-dev libcpp-httplib-dev libdw-dev libprotozero-dev zlib1g-dev libzstd-dev" ;;
    demo) echo "redis-server redis-tools python3" ;;
    test) echo "doctest-dev valgrind python3 pkg-config perl sqlite3 git redis-server redis-tools spin python3-jsonschema strace gdb" ;;
    bench) echo "libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 libtbbmalloc2 redis-server redis-tools sqlite3 git lua5.4" ;;
    programs) echo "g++ clang rustc z3 ghostscript ruby lua5.4 perl python3 php-cli sqlite3 jq xsltproc graphviz git imagemagick ffmpeg redis-server memcached nginx" ;;
    lint) echo "clang-format clang-tidy libcli11-dev nlohmann-json3-dev libfmt-dev doctest-dev" ;;
    fuzz) echo "clang libclang-rt-14-dev" ;;
    windows) echo "g++-mingw-w64-x86-64-win32 g++-mingw-w64-i686-win32 python3" ;;
    wine) echo "wine wine64 python3" ;;
    cross) echo "g++-aarch64-linux-gnu qemu-user" ;;
    package-dist) echo "git" ;;
    package-deb) echo "$(packages_of libraries) $(packages_of tool) git dpkg-dev debhelper lintian" ;;
    package-rpm) echo "$(packages_of libraries) $(packages_of tool) git rpm" ;;
    package-wheel) echo "$(packages_of libraries) git python3 python3-venv g++-aarch64-linux-gnu" ;;
    package-crates) echo "git g++"; command -v cargo >/dev/null 2>&1 || packages_of rust ;;
    package-formula) echo "git" ;;
    package-try) echo "$(packages_of test) $(packages_of cross) mmdebstrap $(packages_of wine) $(packages_of windows)" ;;
    site) echo "python3 python3-venv mandoc" ;;
    systemd) echo "mmdebstrap systemd-container" ;;
    abi) echo "abigail-tools" ;;
    platforms) echo "doctest-dev qemu-user musl-tools g++-aarch64-linux-gnu g++-riscv64-linux-gnu g++-arm-linux-gnueabihf g++-i686-linux-gnu" ;;
    package-zip) echo "$(packages_of windows) git cmake ninja-build" ;;
    bindings) echo "fp-compiler fp-units-rtl python3 python3-venv libmimalloc2.0 valgrind" ;;
    rust)
      # Of Debian 12's two compilers the other is too old for the crates.
      if grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then echo "cargo-web rustc-web"; else echo "cargo rustc rust-clippy"; fi
      ;;
    *) echo "packages.sh: no group called $1" >&2; exit 2 ;;
  esac
}

# Groups without which the work goes on, with less in it.
is_optional() {
  case $1 in tool | demo | bench | programs | fuzz) true ;; *) false ;; esac
}

wanted= optional=yes
for group in "${@:-build}"; do
  wanted="$wanted $(packages_of "$group")"
  is_optional "$group" || optional=no
done

if ! command -v dpkg-query >/dev/null 2>&1; then
  exit 0  # not Debian: the configure step names what it misses
fi

missing=
for package in $wanted; do
  case " $missing " in *" $package "*) continue ;; esac
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    as_root=sudo
  else
    echo "packages are missing; install them with: apt-get install$missing" >&2
    [ $optional = yes ] && exit 0 || exit 1
  fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 $missing >"$log" 2>&1
}
echo "installing:$missing"
# The package lists of a fresh machine are missing or old: fetch them when they do not do.
if ! install; then
  $as_root apt-get update -qq >"$log" 2>&1 || true
  if ! install; then
    cat "$log" >&2
    echo "apt-get could not install:$missing" >&2
    [ $optional = yes ] && exit 0 || exit 1
  fi
fi
