. /try/common.sh
python=/opt/venv/bin/python
if [ "$1" = prepare ]; then
  install python3-venv
  must python3 -m venv /opt/venv
  exit
fi
must $python -m pip install --no-index "/packages/"hummock-*_"$(uname -m)".whl
cat >/tmp/program.py <<'P'
import hummock
kept = [bytes(100) + bytes([n % 256]) for n in range(100_000)]
assert hummock.is_active() and hummock.stats().live > 10_000_000, hummock.stats()
P
must $python -m hummock run /tmp/program.py
must env LD_PRELOAD="$($python -m hummock path)" grep -q libhummock /proc/self/maps
must $python -m pip uninstall -y hummock
