# As a user of the tarball: builds, installs in a folder of its own, uninstalls.
. /try/common.sh
if [ "$1" = prepare ]; then
  install make cmake ninja-build g++ pkg-config python3 libcli11-dev nlohmann-json3-dev libfmt-dev libncurses-dev \
    libcpp-httplib-dev libdw-dev libprotozero-dev zlib1g-dev libzstd-dev
  exit
fi
prefix=/opt/hummock
mkdir /tmp/source
tar -xzf /packages/hummock-*.tar.gz -C /tmp/source --strip-components=1
cd /tmp/source
must make install PREFIX=$prefix
PATH=$prefix/bin:$PATH PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
export PATH PKG_CONFIG_PATH LD_LIBRARY_PATH
use_tool
use_libraries
must make uninstall PREFIX=$prefix
cd /
rm -r /tmp/source
