#!/usr/bin/env python3
"""Counts what processors have to agree on: locked instructions executed in malloc and free, for each allocator.

Usage: locked.py [--build BUILD] [--threads N] [NAME=LIBRARY...]

A workload runs under callgrind, which tells how often each instruction was executed; objdump tells which of them
lock (a lock prefix, or xchg with memory). Counts depend on no clock and on no number of processors; as callgrind
runs one thread at a time, retries of a lost race are not in them.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

DEBIAN = "/usr/lib/x86_64-linux-gnu"
PEERS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2.0"}
# A workload, and operations of each thread.
WORKLOADS = {"random-live-10k": 2000, "server": 2000, "transfer-stress": 2000, "xmalloc": 2000, "cross-mid": 1000,
             "mixed-rounds": 2000, "big-brain": 2000}
CALLS = re.compile(r"^(tc_)?(malloc|free)$")
MUTEX = re.compile(r"^_*pthread_mutex_(lock|trylock|unlock)")  # of libc, one locked instruction each
LOCKED = re.compile(r"^\s*([0-9a-f]+):\s+(?:[0-9a-f]{2} )+\s*(lock |xchg\s+.*\(|repz lock )")


def locked_addresses(library):
    text = subprocess.run(["objdump", "-d", "-w", library], capture_output=True, text=True, check=True).stdout
    return {int(match[1], 16) for match in map(LOCKED.match, text.splitlines()) if match}


class Profile:
    """A callgrind file: executions of each instruction of a library, calls of malloc and free, and calls from it."""

    def __init__(self, path, library):
        self.executed, self.calls_to, self.calls_from = {}, 0, {}
        self.names = {}
        position, obj, callee, callee_obj = 0, "", "", ""
        after_call = False
        for line in open(path, encoding="utf-8", errors="replace"):
            if line.startswith(("0x", "+", "-", "*")):
                fields = line.split()
                position = self.moved(position, fields[0])
                if not after_call and obj == library:
                    self.executed[position] = self.executed.get(position, 0) + int(fields[2])
                after_call = False
            elif line.startswith("ob="):
                obj = os.path.realpath(self.name("ob", line[3:]))
            elif line.startswith("fn="):
                self.name("fn", line[3:])
            elif line.startswith("cob="):
                callee_obj = os.path.realpath(self.name("ob", line[4:]))
            elif line.startswith("cfn="):
                callee = self.name("fn", line[4:])
            elif line.startswith("calls="):
                times = int(line[6:].split()[0])
                to = callee_obj or obj
                if obj != library and CALLS.match(callee):
                    self.calls_to += times
                elif obj == library and to != library:
                    self.calls_from[callee] = self.calls_from.get(callee, 0) + times
                callee_obj = ""
                after_call = True

    @staticmethod
    def moved(position, field):
        if field[0] == "*":
            return position
        return position + int(field, 0) if field[0] in "+-" else int(field, 16)

    def name(self, kind, text):
        match = re.match(r"\((\d+)\)(?: (.*))?", text.rstrip("\n"))
        if match is None:
            return text.rstrip("\n")
        if match[2] is not None:
            self.names[kind, match[1]] = match[2]
        return self.names.get((kind, match[1]), "")


def count(worker, library, workload, operations, threads):
    """Locked instructions in 1,000 calls of malloc and free. None: the program failed."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--callgrind-out-file=" + out, worker, workload,
                   "--threads", str(threads), "--ops", str(operations), "--settle", "0"]
        run = subprocess.run(command, env=dict(os.environ, LD_PRELOAD=library), capture_output=True, text=True)
        if run.returncode != 0:
            print(f"{workload} fails on {library}: {run.stderr[-300:]}", file=sys.stderr)
            return None
        profile = Profile(out, os.path.realpath(library))
    locked = sum(profile.executed.get(address, 0) for address in locked_addresses(library))
    locked += sum(n for name, n in profile.calls_from.items() if MUTEX.match(name))
    return 1000 * locked / max(profile.calls_to, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("libraries", nargs="*", metavar="NAME=LIBRARY")
    arguments = parser.parse_args()
    worker = os.path.join(arguments.build, "hummock-bench-work")
    libraries = {"hummock": os.path.join(arguments.build, "libhummock.so.1")}
    libraries.update({name: os.path.join(DEBIAN, file) for name, file in PEERS.items()
                      if os.path.exists(os.path.join(DEBIAN, file))})
    libraries.update(item.split("=", 1) for item in arguments.libraries)
    print("| workload | " + " | ".join(libraries) + " |")
    print("|---|" + "---|" * len(libraries))
    for workload, operations in WORKLOADS.items():
        counts = [count(worker, os.path.realpath(library), workload, operations, arguments.threads)
                  for library in libraries.values()]
        cells = ["fails" if each is None else f"{each:,.0f}" for each in counts]
        print(f"| {workload} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
