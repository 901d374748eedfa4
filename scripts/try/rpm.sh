# Debian has no .rpm of what these need: its own packages bring the libraries, so rpm itself cannot check for them.
. /try/common.sh
if [ "$1" = prepare ]; then
  install rpm gcc libc6-dev pkg-config libcpp-httplib0.11 libdw1 libfmt9 libncurses6 libzstd1 zlib1g
  echo /usr/lib64 >/etc/ld.so.conf.d/lib64.conf  # as systems that use .rpm have it
  must rpm --initdb
  exit
fi
must rpm -i --nodeps /packages/*.rpm
must ldconfig
for file in $(rpm -ql hummock hummock-devel | grep -e /bin/ -e '\.so'); do
  ! ldd "$file" 2>/dev/null | grep 'not found' || { echo "$file misses libraries"; exit 1; }
done
use_tool
PKG_CONFIG_PATH=/usr/lib64/pkgconfig
export PKG_CONFIG_PATH
use_libraries
must rpm -e --nodeps hummock hummock-devel
must ldconfig
[ -z "$(rpm -qa)" ] || { echo "packages are left"; exit 1; }
