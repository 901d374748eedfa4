#!/bin/sh
# Packages in out/packages, from what is committed; each build of a commit gives the same bytes.
# Usage: scripts/make_packages.sh dist|deb|rpm|zip|sums...
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

# A folder with the sources as a tag has them, always at the same place: paths are in debug information.
fresh() {
  work=$root/out/package-$1
  rm -rf "$work"
  mkdir -p "$work"
}

dist() {
  git archive --prefix="hummock-$version/" HEAD | gzip -n9 >"$tarball"
}

deb() {
  dist
  fresh deb
  tar -xzf "$tarball" -C "$work"
  cd "$work/hummock-$version"
  cp -r packaging/debian debian
  printf 'hummock (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- The Hummock authors <hummock@localhost.localdomain>  %s\n' \
    "$version" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" >debian/changelog
  DEB_BUILD_OPTIONS="nocheck parallel=$jobs" dpkg-buildpackage -b -us -uc >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
  lintian --fail-on error --suppress-tags bogus-mail-host-in-debian-changelog,bogus-mail-host "$work"/*.changes
  cp "$work"/*.deb "$out"
  cd "$root"
}

rpm() {
  dist
  fresh rpm
  rpmbuild -bb --nodeps --define "_topdir $work" --define "_sourcedir $out" --define "hummock_version $version" \
    --define "_buildhost reproducible" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" packaging/rpm/hummock.spec >"$work/log" 2>&1 || { tail -40 "$work/log"; exit 1; }
  cp "$work"/RPMS/*/*.rpm "$out"
}

zip() {
  for width in x64 x86; do
    cmake --preset windows-$width -DHUMMOCK_TESTS=OFF -B out/package-windows-$width >out/package-windows-$width.log
    cmake --build out/package-windows-$width -j"$jobs" --target hummock_shared hummock_bi
  done
  python3 -B scripts/windows_zip.py "$version" "$out/hummock-$version-windows.zip"
}

# What a tag has: names, sizes, checksums.
sums() {
  cd "$out"
  rm -f SHA256SUMS
  sha256sum -- * >"$root/out/SHA256SUMS"
  mv "$root/out/SHA256SUMS" .
  ls -l -- * | awk '{ print $5, $NF }'
  cat SHA256SUMS
  cd "$root"
}

for part in "$@"; do
  case $part in
    dist | deb | rpm | zip | sums) $part ;;
    *) echo "make_packages.sh: no package called $part" >&2; exit 2 ;;
  esac
done
