. /try/common.sh
if [ "$1" = prepare ]; then
  install gcc libc6-dev pkg-config
  exit
fi
must apt-get install -y -qq --no-install-recommends /packages/*.deb
use_tool
use_libraries
must apt-get purge -y -qq --autoremove $(dpkg-query -W -f '${Package} ' '*hummock*')
! dpkg-query -W '*hummock*' 2>/dev/null || { echo "packages are left"; exit 1; }
