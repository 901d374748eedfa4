#!/bin/sh
# Services on Hummock under systemd, in a clean Debian that it boots in a container. As root, after `make deb`.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "try_systemd.sh: needs root for the container" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mmdebstrap --variant=minbase --include=systemd,systemd-sysv,nginx-light,php-fpm,redis-server,busybox-static bookworm \
  "$root" >"$root.log" 2>&1 || { tail -20 "$root.log"; exit 1; }
rm -f "$root.log"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
mkdir "$root/debs"
cp out/packages/*.deb "$root/debs"
chroot "$root" sh -euc '
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends /debs/*.deb; } >/tmp/log 2>&1 || { cat /tmp/log; exit 1; }'
units=$root/etc/systemd/system
library=$(cd "$root" && find usr/lib -name libhummock.so.1 | head -1)

# A unit's own start, by `hummock run`.
start_by_hummock() {
  mkdir -p "$units/$1.d"
  sed -n 's|^ExecStart=|ExecStart=\nExecStart=/usr/bin/hummock run -- |p; /^\[Service\]/p' "$root/lib/systemd/system/$1" \
    >"$units/$1.d/hummock.conf"
}
start_by_hummock nginx.service
start_by_hummock "$(basename "$root"/lib/systemd/system/php*-fpm.service)"
mkdir -p "$units/redis-server.service.d"
sed "s|/usr/local/lib/libhummock.so.1|/$library|" examples/deploy/redis-server.service.d/hummock.conf \
  >"$units/redis-server.service.d/hummock.conf"
# The example unit with a program that Hummock cannot serve.
sed 's|^ExecStart=.*|ExecStart=/usr/bin/hummock run -- /bin/busybox sleep 1|' examples/deploy/hummock-demo.service \
  >"$units/refused.service"
cat >"$units/inside.service" <<'UNIT'
[Unit]
SuccessAction=poweroff
FailureAction=poweroff
[Service]
Type=oneshot
ExecStart=/bin/bash /debs/inside.sh
StandardOutput=file:/debs/result
StandardError=file:/debs/result
UNIT
cp tests/systemd/inside.sh "$root/debs/inside.sh"
timeout 600 systemd-nspawn -q -D "$root" -b --register=no --keep-unit --private-network systemd.unit=inside.service \
  >"$root.log" 2>&1 </dev/null || true
cat "$root/debs/result" 2>/dev/null || tail -50 "$root.log"
rm -f "$root.log"
grep -q '^systemd .*: 0 failed$' "$root/debs/result"
