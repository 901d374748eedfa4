#!/usr/bin/env python3
"""Runs every workload of hummock-bench-work for a moment, and checks what it prints.

On the system's allocator and on Hummock each must end well; on allocators with a known bug the workload that
is meant to see it must say so.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import preload  # noqa: E402

# Operations a thread of fixed work; the others get so many milliseconds.
FIXED = {
    "small-sweeps": 400000,
    "small-ring": 50000,
    "constant-load": 5000,
    "mmtest": 3000,
    "shrink": 500,
    "residue": 5,
    "idle-producers": 1,
}
PROGRAMS = {"python", "sqlite", "git", "compiler", "redis", "lua"}  # those that are installed
TABLES = {"small-sweeps", "constant-load", "spaces-sequential", "spaces-churn", "shrink", "residue", "idle-producers"}
TIMED = {"random-live-10k", "large-live", "very-large", "server", "spaces-sequential", "spaces-churn", "frames"}
SIZES = {"residue": 8 << 20, "idle-producers": 8 << 20, "spaces-churn": 16 << 20, "realloc-array": 1 << 20}
NUMBERS = [
    "operations", "seconds", "cpu_seconds", "ops_per_second", "peak_bytes", "live_bytes", "start_bytes",
    "minor_faults", "major_faults", "page_size",
]  # fmt: skip

failures = []


def hold(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED", what, flush=True)


def run(program, *arguments, **environment):
    return subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, timeout=1500, env={**os.environ, **environment}
    )


def check_list(workloads):
    names = [workload["name"] for workload in workloads]
    hold(len(names) == len(set(names)) and len(names) > 40, "--list: more than 40 workloads, no name twice")
    cells = 0
    for workload in workloads:
        name = workload["name"]
        for key in ("group", "title", "description", "unit"):
            hold(workload[key], f"--list: {name} has a {key}")
        hold(workload["threads"], f"--list: {name} has threads")
        hold(workload["full"] and workload["full"]["threads"], f"--list: {name} is in the full set")
        for mode in ("quick", "default", "full"):
            plan = workload[mode]
            if plan is None:
                continue
            hold(plan.get("seconds") > 0, f"--list: {name}: {mode} says how long")
            hold(set(plan["threads"]) <= set(workload["threads"]), f"--list: {name}: threads of {mode}")
            hold(set(plan["sizes"]) <= set(workload["sizes"]), f"--list: {name}: sizes of {mode}")
            if mode == "quick":
                cells += len(plan["threads"]) * max(1, len(plan["sizes"]))
    hold(25 <= cells <= 45, f"--list: the quick set has 25 to 45 cells, not {cells}")


def arguments_of(workload, threads):
    name = workload["name"]
    arguments = [name, "--threads", threads, "--seed", 7, "--settle", 0]
    if name in SIZES:
        arguments += ["--size", SIZES[name]]
    if name in PROGRAMS:
        return arguments + ["--ops", 1]
    if name in FIXED:
        return arguments + ["--ops", FIXED[name]]
    return arguments + ["--seconds", 0.02]


def check_report(what, result, workload, threads):
    name = workload["name"]
    hold(result.returncode == 0, f"{what}: exit status {result.returncode}: {result.stderr.strip()}")
    if result.returncode != 0:
        return
    report = json.loads(result.stdout)
    hold(report["workload"] == name and report["threads"] == threads and report["seed"] == 7, f"{what}: repeats what it ran")
    for key in NUMBERS:
        hold(isinstance(report[key], (int, float)) and report[key] >= 0, f"{what}: {key} is a number")
    hold(report["operations"] > 0 and report["seconds"] > 0 and report["cpu_seconds"] > 0, f"{what}: did something")
    hold(report["peak_bytes"] >= report["start_bytes"] > 0, f"{what}: the peak is not below the start")
    hold(report["settled_bytes"] is None, f"{what}: --settle 0")
    hold(("rows" in report) == (name in TABLES), f"{what}: rows")
    if name in TABLES:
        hold(report["rows"], f"{what}: has rows")
    if name in TIMED:
        latency = report["latency"]
        parts = [latency[key] for key in ("p50", "p90", "p99", "p999", "max")]
        hold(parts == sorted(parts) and latency["max"] > 0 and latency["unit"] == "ns", f"{what}: latency {latency}")


def check_workloads(program, workloads, libraries):
    for workload in workloads:
        threads = [t for t in workload["threads"] if t <= 8]
        for allocator, library in libraries.items():
            if workload["name"] in PROGRAMS and not library:
                continue  # they take long
            for count in sorted({threads[0], max(threads)}):
                what = f"{workload['name']} on {allocator}, {count} threads"
                environment = {"LD_PRELOAD": library} if library else {}
                check_report(what, run(program, *arguments_of(workload, count), **environment), workload, count)


def check_programs(program, library):
    """Real programs are there when they are installed, run on what is preloaded, and leave nothing behind."""
    with tempfile.TemporaryDirectory() as directory:
        bare = run(program, "--list", PATH=directory)
        hold(not PROGRAMS & {workload["name"] for workload in json.loads(bare.stdout)}, "--list: without programs")
        missing = run(program, "sqlite", "--ops", 1, PATH=directory)
        hold(missing.returncode == 2 and "apt-get install sqlite3" in missing.stderr, f"no sqlite3: {missing.stderr}")
        listed = json.loads(run(program, "--list").stdout)
        hold({workload["name"] for workload in listed} & PROGRAMS >= {"python", "compiler"}, "--list: with programs")
        used = run(program, "python", "--ops", 1, "--series", TMPDIR=directory, LD_PRELOAD=library, HUMMOCK_STATS="exit")
        hold(used.returncode == 0 and used.stderr.count("live") >= 2, "python3 runs on what is preloaded")
        hold(len(json.loads(used.stdout)["series"]) > 2, "a program's memory over time")
        hold(os.listdir(directory) == [], "files of a program are removed")
        linked = run(program, "python", "--ops", 1, TMPDIR=directory, LD_DEBUG="bindings", LD_PRELOAD="")
        owners = {line.split(" [0] to ")[1].split(" ")[0] for line in linked.stderr.splitlines() if "symbol `malloc'" in line}
        owners = {owner for owner in owners if ".so" in owner}  # a program's own table leads to libc as well
        hold(owners and all("libc.so" in owner for owner in owners), f"without a preload programs run on {owners}")


def check_same_work(program):
    """With --ops the same seed does the same work."""
    reports = []
    for seed in (3, 3, 4):
        result = run(program, "random-live-10k", "--ops", 20000, "--seed", seed, "--settle", 0)
        reports.append(json.loads(result.stdout))
    hold(reports[0]["operations"] == reports[1]["operations"] >= 20000, "--ops: as many operations")
    hold(reports[0]["live_bytes"] == reports[1]["live_bytes"], "the same seed, the same work")
    hold(reports[0]["live_bytes"] != reports[2]["live_bytes"], "another seed, other work")


def check_memory(program):
    """Peak, settled and the series are about what is known to happen: 64 MiB come and go."""
    result = run(program, "idle-producers", "--size", "64M", "--ops", 1, "--settle", 0.2, "--series")
    report = json.loads(result.stdout)
    grown = report["peak_bytes"] - report["start_bytes"]
    hold(0.8 * report["live_bytes"] < grown < 4 * report["live_bytes"], f"peak {grown}, live {report['live_bytes']}")
    hold(50e6 < report["live_bytes"] < 80e6, f"live bytes {report['live_bytes']}")
    hold(report["minor_faults"] > 10000, "64 MiB are faulted in")
    series = report["series"]
    times = [point["t"] for point in series]
    hold(2 <= len(series) <= 200 and times == sorted(times) and times[-1] > 0.2, f"series of {len(series)} points")
    highest = max(point["resident"] for point in series)
    hold(0.5 * report["peak_bytes"] < highest <= report["peak_bytes"] * 1.01, "the series reaches the peak")
    hold(report["settled_bytes"] > 0, "settled memory is read")


def check_series_length(program):
    result = run(program, "pair", "--seconds", 3, "--settle", 0, "--series")
    series = json.loads(result.stdout)["series"]
    hold(20 < len(series) <= 200 and series[-1]["t"] > 2.9, f"a long series has {len(series)} points")


def check_trace(program):
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace")
        written = run(program, "trace-replay", "--ops", 1, "--settle", 0, "--write-trace", trace)
        again = run(program, "trace-replay", "--ops", 1, "--settle", 0, "--trace", trace)
        hold(written.returncode == 0 and again.returncode == 0, f"a trace is written and read: {again.stderr}")
        first, second = json.loads(written.stdout), json.loads(again.stdout)
        hold(first["live_bytes"] == second["live_bytes"] > 0, "the trace that was written is the one that ran")
        with open(trace, "rb") as file:
            whole = file.read()
        spoilt = {
            "cut": whole[:-8],
            "empty": b"",
            "another file": b"HUMMOCKX" + whole[8:],
            "freed twice": whole[:24] + bytes(4 * [0]) + whole[28:40] + 2 * (whole[28:32] + bytes(12)) + whole[72:],
            "id too high": whole[:24] + bytes(4) + b"\xff\xff\xff\x7f" + whole[32:],
        }
        for what, content in spoilt.items():
            with open(trace, "wb") as file:
                file.write(content)
            result = run(program, "trace-replay", "--ops", 1, "--trace", trace)
            hold(result.returncode == 2 and result.stderr.count("\n") == 1, f"trace, {what}: {result.returncode}")


def check_mistakes(program):
    mistakes = {
        (): "workload",
        ("parr",): "'pair'",
        ("random-live-10",): "'random-live-10k'",
        ("pair", "--threads", "0"): "--threads",
        ("pair", "--threads", "x"): "'x'",
        ("pair", "--threads"): "value",
        ("pair", "--seconds", "-1"): "--seconds",
        ("pair", "--size", "0"): "--size",
        ("pair", "--frobnicate", "1"): "--frobnicate",
        ("--threads", "2", "pair"): "first",
        ("queue-1to1", "--threads", "1"): "at least 2",
        ("queue-1to1", "--threads", "3"): "even",
        ("spaces-churn", "--threads", "2"): "one thread",
        ("trace-replay", "--trace", "/nonexistent"): "/nonexistent",
    }
    for arguments, said in mistakes.items():
        result = run(program, *arguments)
        good = result.returncode == 2 and result.stdout == "" and said in result.stderr and result.stderr.count("\n") == 1
        hold(good, f"{' '.join(arguments) or 'no arguments'}: exit status {result.returncode}, says {result.stderr!r}")


def check_broken(program, broken):
    """A bug of the allocator is seen, and none is seen where there is none."""
    cases = [
        ("random-live-10k", ["", "twice", "overlap", "full"]),
        ("batch-1000-random", ["", "twice", "overlap", "full"]),
        ("server", ["", "twice", "overlap"]),
        ("queue-1to1", ["", "twice", "overlap"]),
        ("calloc", ["", "dirty"]),
        ("realloc-small", ["", "lost"]),
        ("realloc-strings", ["", "lost"]),
    ]
    for name, bugs in cases:
        for bug in bugs:
            result = run(program, name, "--ops", 20000, "--settle", 0, "--size", 1024, LD_PRELOAD=broken, BROKEN=bug)
            expected = 3 if bug else 0
            hold(
                result.returncode == expected and result.stderr.count("\n") == (1 if bug else 0),
                f"{name}, {bug or 'no'} bug: exit status {result.returncode}, not {expected}: {result.stderr.strip()}",
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--broken", required=True)
    options = parser.parse_args()
    options.library, options.broken = map(preload.name_of, (options.library, options.broken))
    listed = run(options.program, "--list")
    hold(listed.returncode == 0, "--list")
    workloads = json.loads(listed.stdout)
    check_list(workloads)
    check_workloads(options.program, workloads, {"the system's allocator": None, "Hummock": options.library})
    check_programs(options.program, options.library)
    check_same_work(options.program)
    check_memory(options.program)
    check_series_length(options.program)
    check_trace(options.program)
    check_mistakes(options.program)
    check_broken(options.program, options.broken)
    print(f"{len(workloads)} workloads, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
