# Read by the scripts beside this, which run in the clean Debian as: sh -eu /try/KIND.sh prepare|use

# What a command prints is shown only if it fails.
must() {
  "$@" >/tmp/log 2>&1 || { cat /tmp/log; echo "failed: $*"; exit 1; }
}

install() {
  must apt-get update -qq
  must apt-get install -y -qq --no-install-recommends "$@"
}

# The tool that is installed.
use_tool() {
  must hummock run -- grep -q libhummock /proc/self/maps
  must hummock check cat
  must hummock profile --quiet --folded /tmp/folded -- perl -e '$kept[$_] = "x" x 1000 for 1 .. 100000'
  [ -s /tmp/folded ] || { echo "the profile is empty"; exit 1; }
  must hummock leaks -- ls /tmp
  must hummock record --output /tmp/recording -- ls /tmp
  must hummock replay /tmp/recording
  must hummock export --help
}

# The libraries, found by pkg-config.
use_libraries() {
  cat >/tmp/program.c <<'C'
#include <hummock/hummock.h>
#include <stdio.h>
int main(void) { return puts(hummock_is_active() ? "on Hummock" : "not on Hummock") < 0; }
C
  cc /tmp/program.c -o /tmp/shared $(pkg-config --cflags --libs hummock)
  cc -static /tmp/program.c -o /tmp/static $(pkg-config --static --cflags --libs hummock)
  for program in shared static; do
    [ "$(/tmp/$program)" = "on Hummock" ] || { echo "the $program program is not on Hummock"; exit 1; }
  done
}
