# As a user of the tarball: builds, installs, uninstalls.
. /try/common.sh
if [ "$1" = prepare ]; then
  install make cmake ninja-build g++ pkg-config python3 libcli11-dev nlohmann-json3-dev libfmt-dev libncurses-dev \
    libcpp-httplib-dev libdw-dev libprotozero-dev zlib1g-dev libzstd-dev
  exit
fi
mkdir /tmp/source
tar -xzf /packages/hummock-*.tar.gz -C /tmp/source --strip-components=1
cd /tmp/source
must make install
must ldconfig
use_tool
use_libraries
must make uninstall
must ldconfig
cd /
rm -r /tmp/source
