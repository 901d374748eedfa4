#!/usr/bin/env python3
"""Ceilings of resident memory, address space and thread-local storage.

Each gate runs tests/budget/memory.c with the library preloaded and holds the figures it prints to their
ceiling. Times are printed, never asserted.
"""
import argparse
import os
import resource
import statistics
import struct
import subprocess
import sys

from instructions import PEERS, environment, find_peer, preload

MIB = 1 << 20


class Gates:
    def __init__(self, program, library, peers):
        self.program = program
        self.peers = peers
        self.library = preload.name_of(library)
        self.failures = []

    def run(self, *arguments, library="", extra=None, prefix=(), limit=None):
        env = environment(self.library if library == "" else library)
        env.update(extra or {})
        before = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
        command = [*prefix, self.program, *map(str, arguments)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1500, preexec_fn=before)
        if done.returncode != 0:
            self.failures.append(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
            return {}
        pairs = (line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        return {key: float(value) for key, value in pairs}

    def hold(self, what, figure, ceiling, unit="MiB", factor=MIB):
        good = figure is not None and figure <= ceiling
        shown = "none" if figure is None else f"{figure / factor:.2f}"
        print(f"{'ok    ' if good else 'FAILED'} {what}: {shown} {unit}, ceiling {ceiling / factor:.2f}", flush=True)
        if not good:
            self.failures.append(what)

    def mmtest(self):
        """10 times 3,000,000 blocks of 20,000 bytes cut to 1 byte."""
        columns = {"hummock": self.library}
        for name, file in PEERS.items() if self.peers else ():
            path = find_peer(file) if file else None
            if file is None or path:
                columns[name] = path
        times, peaks = {}, {}
        for _ in range(2 if self.peers else 1):
            for name, library in columns.items():
                figures = self.run("mmtest", library=library)
                times.setdefault(name, []).append(figures.get("seconds", float("nan")))
                peaks[name] = figures.get("peak")
        for name in columns:
            shown = (peaks[name] or 0) / MIB
            print(f"  {name:10} best {min(times[name]):6.2f} s   peak {shown:7.1f} MiB")
        self.hold("MMTest: peak resident", peaks["hummock"], 60 * MIB)

    def shrink(self):
        for size in (1000, 2500, 5000, 7500, 9000, 10000, 10001, 12500, 15000, 16500, 18000):
            figures = self.run("shrink", size)
            most = 1.15 if size <= 10000 else 1.35
            if figures:
                ratio = figures["resident"] / figures["payload"]
                self.hold(f"20,000 bytes cut to {size}: resident / payload", ratio, most, "", 1)

    def give_back(self):
        background = {"HUMMOCK_BACKGROUND": "1"}
        for how, extra in (("nothing", {}), ("few", {}), ("active", {}), ("trim", {}), ("idle", background)):
            figures = self.run("go", how, extra=extra)
            print(f"  full {figures.get('full', 0) / MIB:.0f} MiB")
            self.hold(f"500 MB freed, then {how}: resident above before", figures.get("left"), 16 * MIB)

    def bursts(self):
        """What is needed again after the decay time is faulted in again, and raises no bound."""
        for size in (300, 20000, 1000000):
            figures = self.run("bursts", size, extra={"HUMMOCK_DECAY_MS": "200"})
            self.hold(f"four bursts of 200 MB in {size} bytes, with pauses: left", figures.get("left"), 16 * MIB)

    def large(self):
        figures = self.run("large")
        print(f"  full {figures.get('full', 0) / MIB:.0f} MiB")
        ceiling = 1.1 * figures.get("live", 0) + 16 * MIB
        self.hold("500 MB freed in 4 to 20 MB among small blocks that stay: left", figures.get("left"), ceiling)

    def sparse(self):
        figures = self.run("sparse")
        print(f"  full {figures.get('full', 0) / MIB:.0f} MiB, live {figures.get('live', 0) / MIB:.1f} MiB")
        self.hold("300 MB of which one block of 64 lives, after a trim: left", figures.get("left"), 50 * MIB)

    def turns(self):
        for step in (2000, 20000, 100000):
            figures = self.run("turns", step)
            self.hold(
                f"600 buffers grow in turn by up to {step} bytes: resident of live, at worst",
                figures.get("percent"), 125, "%", 1,
            )

    def parked(self):
        """Where the threads had all sizes, what they keep differs from run to run: 64 KiB for each is promised."""
        for stays, name in ((15, "the last 1/16 stays"), (0, "the first 1/16 stays")):
            for size, sizes in ((100, "100 bytes"), (500, "500 bytes"), (0, "all sizes")):
                runs = [self.run("parked", stays, size) for _ in range(1 if size else 3)]
                ceiling = 1.5 * runs[0].get("live", 0) + 16 * MIB
                left = [figures.get("resident", float("inf")) for figures in runs]
                what = f"64 parked threads, {sizes}, {name}: resident"
                self.hold(f"{what}, half of the runs", statistics.median(left), ceiling)
                self.hold(f"{what}, every run", max(left), ceiling + 64 * (64 << 10))
        figures = self.run("parked", 16)
        if figures:
            print(
                f"  each 16th block stays (not asserted): resident {figures['resident'] / MIB:.1f} MiB of "
                f"{figures['full'] / MIB:.1f}, live {figures['live'] / MIB:.1f}"
            )

    def asleep(self):
        """Beyond 16 MiB + 64 KiB a thread there may be what regret adds to bounds: at most what was in use lately,
        which differs from run to run."""
        left = [self.run("asleep").get("left", float("inf")) for _ in range(5)]
        self.hold("64 threads that used 80 sizes and wait: left, half of the runs", statistics.median(left), 25 * MIB)
        self.hold("64 threads that used 80 sizes and wait: left, every run", max(left), 40 * MIB)

    def threads(self):
        for leave, name in ((0, "free all"), (1, "leave blocks that others free, after a trim")):
            # What is resident of the program and its stacks differs by a quarter MiB from run to run.
            runs = [(self.run("threads", leave), self.run("threads", leave, library=None)) for _ in range(3)]
            if not all(ours and system for ours, system in runs):
                continue
            ours, system = (statistics.median(run[side]["left"] for run in runs) for side in (0, 1))
            print(f"  resident left {ours / MIB:.2f} MiB, the same on the system's malloc {system / MIB:.2f}")
            self.hold(f"10,000 threads in turn {name}: more than the system's", ours - system, MIB)

    def producer(self):
        figures = self.run("producer")
        print(f"  full {figures.get('full', 0) / MIB:.0f} MiB")
        self.hold("idle producer, 300 MB freed by another thread: left", figures.get("left"), 16 * MIB)

    def parts(self):
        for size, keep in ((32, 1000), (64, 1000), (300, 218)):
            figures = self.run("parts", size, keep)
            ceiling = figures.get("pages", 0) + 16 * MIB + 64 * 1024 * 9
            what = f"eight threads free 200 MB of {size} bytes in order, one of {keep} stays: beyond its page"
            self.hold(what, figures.get("left"), ceiling)

    def own(self):
        """At random a page of a slab comes free last, and little is freed after that."""
        for order, sizes, spare in (
            ("in order", ((32, 1000), (100, 600), (300, 218), (1000, 65)), 16),
            ("at random", ((100, 600), (300, 218), (1000, 65)), 20),
        ):
            for size, keep in sizes:
                figures = self.run("own", size, keep, order)
                what = f"a thread frees 200 MB of {size} bytes {order}, one of {keep} stays: left"
                self.hold(what, figures.get("left"), 1.1 * figures.get("pages", 0) + spare * MIB)

    def start(self):
        ours, system = self.run("start"), self.run("start", library=None)
        if not ours or not system:
            return
        self.hold("start: resident above the system's", ours["resident"] - system["resident"], 1.5 * MIB)
        self.hold("start: address space", ours["virtual"], 1024 * MIB)
        self.hold("static thread-local storage", self.static_tls(), 63, "bytes", 1)

    def static_tls(self):
        """The size of the PT_TLS segment of the library, 0 without one."""
        with open(self.library, "rb") as file:
            image = file.read()
        offset, entry, count = (
            struct.unpack_from("<Q", image, 32)[0],
            struct.unpack_from("<H", image, 54)[0],
            struct.unpack_from("<H", image, 56)[0],
        )
        for index in range(count):
            at = offset + index * entry
            if struct.unpack_from("<I", image, at)[0] == 7:
                return struct.unpack_from("<Q", image, at + 40)[0]
        return 0

    def runs_on(self, what, **how):
        done = self.run("mixed", **how).get("done") == 1
        print(f"{'ok    ' if done else 'FAILED'} {what}", flush=True)
        if not done:
            self.failures.append(what)

    def limits(self):
        self.runs_on("runs under ulimit -v 4000000", limit=4000000 * 1024)
        self.runs_on("runs under ulimit -v 1000000", limit=1000000 * 1024)

    def valgrind(self):
        if not os.path.exists("/usr/bin/valgrind"):
            print("skipped: valgrind is not installed")
            sys.exit(77)
        own = "--soname-synonyms=somalloc=nouserintercepts"
        self.runs_on("runs under memcheck", prefix=["valgrind", "-q"])
        self.runs_on("runs under memcheck, which leaves malloc alone", prefix=["valgrind", "-q", own])
        self.runs_on("runs under callgrind", prefix=["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=/dev/null"])


GATES = ["mmtest", "shrink", "give_back", "bursts", "large", "sparse", "turns", "parked", "asleep", "threads", "producer", "parts", "own", "start", "limits", "valgrind"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--peers", action="store_true", help="mmtest: the allocators installed beside it, too")
    parser.add_argument("gates", choices=GATES, nargs="+")
    options = parser.parse_args()
    gates = Gates(options.program, options.library, options.peers)
    for name in options.gates:
        getattr(gates, name)()
    for failure in gates.failures:
        print("FAILED", failure)
    return 1 if gates.failures else 0


if __name__ == "__main__":
    sys.exit(main())
