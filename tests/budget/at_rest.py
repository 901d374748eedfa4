#!/usr/bin/env python3
"""Ceilings of what threads hold that do nothing any more.

Runs tests/budget/at_rest.c, with the library preloaded and, with --peers, with the allocators installed
beside it.
"""
import argparse
import subprocess
import sys

from instructions import PEERS, environment, find_peer, preload

MIB = 1 << 20

# Mode, threads, MiB at most, what it shows.
CASES = [
    ("burst", 200, 48, "200 threads that freed 60 KiB in blocks of each of 80 sizes"),
    ("turns", 500, 64, "500 threads that freed one block of each size"),
    ("hold", 300, 110, "300 threads that hold one block of each size, beside 400 MiB"),
    ("few", 1000, 72, "1,000 threads that hold twelve small blocks"),
    ("others", 50, 32, "50 threads that freed 16 blocks of another thread's of each size"),
]


def left(program, mode, threads, library):
    env = environment(library)
    done = subprocess.run([program, mode, str(threads)], env=env, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{mode} {threads} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return int(done.stdout.split("=")[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--peers", action="store_true", help="the allocators installed beside it, too")
    options = parser.parse_args()
    library = preload.name_of(options.library)
    failed = 0
    for mode, threads, ceiling, what in CASES:
        figure = left(options.program, mode, threads, library)
        good = figure <= ceiling * MIB
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {what}: {figure / MIB:.1f} MiB, ceiling {ceiling}", flush=True)
        for name, file in PEERS.items() if options.peers else ():
            peer = find_peer(file) if file else None
            if file is None or peer:
                print(f"         {name:10} {left(options.program, mode, threads, peer) / MIB:8.1f}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
