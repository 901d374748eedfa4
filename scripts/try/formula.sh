# No Homebrew comes as a Debian package: formula.rb does the few things of it that a formula needs.
. /try/common.sh
if [ "$1" = prepare ]; then
  install ruby cmake ninja-build g++
  exit
fi
mkdir /tmp/formula
must ruby /try/formula.rb /packages/hummock.rb /packages /tmp/formula
rm -r /tmp/formula
