#!/usr/bin/env python3
"""Makes the zip for Windows: the DLLs, the import library and hummock.exe by width, the headers, the guides and the licence. The same files give the same bytes.

Usage: windows_zip.py VERSION FILE
"""

import os
import pathlib
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
version, target = sys.argv[1:3]
when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
files = {"LICENSE.txt": ROOT / "LICENSE", "arma.md": ROOT / "docs/arma.md", "windows.md": ROOT / "docs/windows.md"}
for header in (ROOT / "include/hummock").glob("*.h*"):
    files[f"include/hummock/{header.name}"] = header
for width in ("x64", "x86"):
    for name in ("hummock.dll", "hummock.exe", "hummock_bi.dll"):
        files[f"{width}/{name}"] = ROOT / f"out/package-windows-{width}" / name
    files[f"{width}/hummock.lib"] = ROOT / f"out/package-windows-{width}" / "libhummock.dll.a"
with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, path in sorted(files.items()):
        entry = zipfile.ZipInfo(f"hummock-{version}/{name}", when)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, path.read_bytes())
