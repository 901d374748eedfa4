#!/bin/bash
# Runs inside a container that systemd has booted: services on Hummock behave as they do without it. Prints a line
# for each check and ends with the number of those that failed.
failed=0
check() {  # NAME COMMAND...
  local name=$1
  shift
  if "$@"; then echo "ok    $name"; else echo "FAILS $name"; failed=$((failed + 1)); fi
}

main() { systemctl show -P MainPID "$1"; }
children() { cat "/proc/$1/task/$1/children"; }
is_program() { [ "$(readlink "/proc/$1/exe")" = "$(readlink -f "$2")" ]; }
on_hummock() {  # PID...
  [ $# -gt 0 ] || return 1
  local pid
  for pid in "$@"; do grep -q libhummock "/proc/$pid/maps" || return 1; done
}
# Waits for a condition as long as it takes a slow machine; fails after that.
until_true() {
  local i
  for ((i = 0; i < 600; i++)); do "$@" && return 0; sleep 0.1; done
  return 1
}
none_of_those() {  # PID NUMBERS: no process of these is a child of PID, which has some
  local old now=$(children "$1")
  [ -n "$now" ] || return 1
  for old in $2; do case " $now" in *" $old "*) return 1 ;; esac; done
}
no_child() { [ -z "$(children "$1")" ]; }
some_child() { [ -n "$(children "$1")" ]; }
answers() {  # PORT REQUEST TEXT: its first line has the text
  local line
  exec 9<>"/dev/tcp/127.0.0.1/$1" && printf "$2" >&9 && read -r -t 60 line <&9 && [[ $line == *"$3"* ]]
}

# Type=forking; nginx heeds SIGWINCH only then.
nginx() {
  local pid old
  check "nginx starts" systemctl start nginx
  pid=$(main nginx)
  check "nginx: the main process is nginx" is_program "$pid" /usr/sbin/nginx
  check "nginx: there are workers" until_true some_child "$pid"
  check "nginx: master and workers are on Hummock" on_hummock "$pid" $(children "$pid")
  check "nginx: hummock check says so" hummock check "$pid"
  check "nginx answers" answers 80 'GET / HTTP/1.0\r\n\r\n' '200 OK'
  old=$(children "$pid")
  check "nginx: reload" systemctl reload nginx
  check "nginx: reload makes new workers" until_true none_of_those "$pid" "$old"
  check "nginx: new workers are on Hummock" on_hummock $(children "$pid")
  kill -WINCH "$pid"
  check "nginx: SIGWINCH ends the workers" until_true no_child "$pid"
  check "nginx: the main process stays" [ "$(main nginx)" = "$pid" ]
  kill -HUP "$pid"
  check "nginx: SIGHUP brings workers back" until_true some_child "$pid"
  check "nginx answers again" answers 80 'GET / HTTP/1.0\r\n\r\n' '200 OK'
  check "nginx stops" systemctl stop nginx
  check "nginx: stopped without an error" [ "$(systemctl show -P Result nginx)" = success ]
}

# Type=notify: systemd takes the message from the main process alone.
php() {
  local pid old unit
  unit=$(basename /lib/systemd/system/php*-fpm.service)
  check "php-fpm starts" systemctl start "$unit"
  pid=$(main "$unit")
  check "php-fpm: the main process is php-fpm" is_program "$pid" /usr/sbin/"$(basename /usr/sbin/php-fpm*)"
  check "php-fpm: there are workers" until_true some_child "$pid"
  check "php-fpm: master and workers are on Hummock" on_hummock "$pid" $(children "$pid")
  old=$(children "$pid")
  check "php-fpm: reload" systemctl reload "$unit"
  check "php-fpm: reload makes new workers" until_true none_of_those "$pid" "$old"
  check "php-fpm: the main process stays" [ "$(main "$unit")" = "$pid" ]
  check "php-fpm: all of them are on Hummock" on_hummock "$pid" $(children "$pid")
  check "php-fpm stops" systemctl stop "$unit"
}

# With the drop-in of examples/deploy.
redis() {
  local pid
  check "redis starts" systemctl restart redis-server
  pid=$(main redis-server)
  check "redis: the main process is redis" is_program "$pid" /usr/bin/redis-server
  check "redis is on Hummock" on_hummock "$pid"
  check "redis answers" answers 6379 'PING\r\n' PONG
  check "redis stops" systemctl stop redis-server
}

ended_with() { [ "$(systemctl show -P ExecMainStatus refused)" = "$1" ]; }
refused() {
  systemctl start --no-block refused
  check "a program that Hummock cannot serve ends with 125" until_true ended_with 125
  check "the journal says why" until_true sh -c 'journalctl -u refused | grep -q "statically linked"'
  check "it is not tried again" [ "$(systemctl show -P ActiveState refused)" = failed ]
}

for part in nginx php redis refused; do $part; done
echo "systemd $(systemctl --version | sed -n 's/^systemd \([0-9]*\).*/\1/p'): $failed failed"
