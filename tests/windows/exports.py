#!/usr/bin/env python3
"""Holds the export table of a hummock_bi.dll to what the engine looks for, by name, and nothing else; and
its imports to what every Windows has.

Usage: exports.py OBJDUMP hummock_bi.dll
"""
import re
import subprocess
import sys

# Bytes of arguments: what the names of 32-bit functions end in.
FUNCTIONS = {
    "MemTotalCommitted": 0, "MemTotalReserved": 0, "MemFlushCache": 4, "MemFlushCacheAll": 0, "MemSize": 4,
    "MemAlloc": 4, "MemFree": 4, "MemSizeA": 8, "MemAllocA": 8, "MemFreeA": 4, "EnableHugePages": 0,
}
SYSTEM = {"advapi32.dll", "kernel32.dll", "msvcrt.dll"}


def main():
    text = subprocess.run([sys.argv[1], "-p", sys.argv[2]], capture_output=True, text=True, check=True).stdout
    wide = "pei-x86-64" in text
    wanted = set(FUNCTIONS) if wide else {f"_{name}@{size}" for name, size in FUNCTIONS.items()}
    table = text.partition("[Ordinal/Name Pointer] Table")[2].partition("\n\n")[0]
    found = set(re.findall(r"^\s*\[ *\d+\] (?:\+base\[ *\d+\]\s+[0-9a-f]+ )?(\S+)$", table, re.M))
    imports = {name.lower() for name in re.findall(r"DLL Name: (\S+)", text)}
    print(f"{'x64' if wide else 'x86'}: exports {sorted(found)}, imports {sorted(imports)}")
    for name in sorted(wanted ^ found):
        print(f"{name} is {'missing' if name in wanted else 'exported for nothing'}")
    for name in sorted(imports - SYSTEM):
        print(f"{name} is needed at run time")
    return 0 if wanted == found and imports <= SYSTEM else 1


if __name__ == "__main__":
    sys.exit(main())
