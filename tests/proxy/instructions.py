#!/usr/bin/env python3
"""Executed instructions of a cached malloc and free of a proxy, counted by callgrind.

A loop is run with N and with 2N rounds; the difference cancels start-up. What the loop itself costs is
measured with calls that do nothing, and subtracted.
"""
import re
import subprocess
import sys

MOST = 35  # on average of the two calls
# name, batch, size, rounds
CASES = [("pair 16 B", 1, 16, 20000), ("pair 64 B", 1, 64, 20000), ("batch-1000 64 B", 1000, 64, 50),
         ("batch-1000 1 KiB", 1000, 1024, 50)]


def collected(loop, arguments):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", loop] + [str(a) for a in arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found:
        raise RuntimeError(f"{' '.join(command)} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
    return int(found.group(1))


def per_pair(loop, way, batch, size, rounds):
    return (collected(loop, [way, batch, size, 2 * rounds]) - collected(loop, [way, batch, size, rounds])) / (rounds * batch)


def main():
    loop = sys.argv[1]
    try:
        subprocess.run(["valgrind", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        print("skipped: valgrind is not installed")
        return 77
    wrong = False
    print(f"{'instructions of one malloc + free':36}{'call':>8}{'inline':>8}   budget")
    for name, batch, size, rounds in CASES:
        none = per_pair(loop, "none", batch, size, rounds)
        row = [per_pair(loop, way, batch, size, rounds) - none for way in ("call", "inline")]
        print(f"{name:36}{row[0]:8.1f}{row[1]:8.1f}   {2 * MOST}")
        wrong |= not all(10 < count <= 2 * MOST for count in row)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
