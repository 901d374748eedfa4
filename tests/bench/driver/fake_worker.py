#!/usr/bin/env python3
"""Stands in for hummock-bench-work: reports figures that a test can predict, from FAKE_WORKER (JSON).

FAKE_WORKER holds {"speed": {library: operations a second}, "peak": {library: bytes},
"fail": {workload: {library: how}}, "sleep": seconds}; a library is named by a part of its file name, "" is
libc. `log` names a file to which every run's arguments are appended.
"""

import json
import os
import sys
import time

WORKLOADS = [
    {"name": "pair", "group": "basic", "title": "Pairs", "description": "one block at a time", "unit": "pairs",
     "threads": [1, 2], "sizes": [16, 65536], "quick": True},
    {"name": "frames", "group": "games", "title": "Frames", "description": "a game's frames", "unit": "frames",
     "threads": [1], "sizes": [], "quick": False},
    {"name": "sweeps", "group": "games", "title": "Sweeps", "description": "fixed work", "unit": "blocks",
     "threads": [4], "sizes": [], "quick": False,
     "default": {"threads": [4], "sizes": [], "ops": 5000, "seconds": 0.2, "settle": 0.5}},
]  # fmt: skip


def of_library(table, default):
    library = os.path.basename(os.environ.get("LD_PRELOAD", ""))
    for part, value in table.items():
        if part in library if part else not library:
            return value
    return default


def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def misbehave(how):
    if how == "hang":
        time.sleep(600)
    if how == "crash":
        os.kill(os.getpid(), 11)
    if how == "complain":
        sys.exit("the heap is broken")
    if how == "babble":
        print("no JSON at all")
        sys.exit(0)
    if how == "grow":
        held = b"x" * (200 << 20)
        time.sleep(600)
        print(len(held))


def main():
    if sys.argv[1] == "--list":
        print(json.dumps(WORKLOADS))
        return
    plan = json.loads(os.environ.get("FAKE_WORKER", "{}"))
    workload = sys.argv[1]
    if "log" in plan:
        with open(plan["log"], "a", encoding="ascii") as file:
            line = [os.path.basename(os.environ.get("LD_PRELOAD", "")) or "libc", *sys.argv[1:]]
            file.write(" ".join(line) + "\n")
    misbehave(of_library(plan.get("fail", {}).get(workload, {}), ""))
    time.sleep(plan.get("sleep", 0))
    speed = of_library(plan.get("speed", {}), 1000)
    peak = of_library(plan.get("peak", {}), 1 << 20)
    run = {"workload": workload, "threads": int(option("--threads", 1)), "size": int(option("--size", 0)),
           "seed": int(option("--seed", 1)), "unit": "blocks", "operations": speed * 2, "seconds": 2.0,
           "cpu_seconds": 1.0, "ops_per_second": speed, "peak_bytes": peak, "settled_bytes": peak // 2,
           "live_bytes": 1000, "minor_faults": 10, "major_faults": 0, "page_size": 4096}  # fmt: skip
    if workload == "frames":
        run["latency"] = {"unit": "ns", "p50": 10, "p90": 20, "p99": 30, "p999": 40, "max": 50, "mean": 12}
        run["rows"] = [{"label": "</script>", "value": 1}]
    if "--series" in sys.argv:
        run["series"] = [{"t": 0.0, "resident": 1000}, {"t": 0.1, "resident": 2000}]
    print(json.dumps(run))


main()
