#!/usr/bin/env python3
"""Executed instructions of malloc and free, counted by callgrind and held to their budget.

A loop is run with N and with 2N rounds; the difference cancels start-up. The same loop over functions
that do nothing gives what loop and calls cost, which is subtracted; those functions' own return is one
instruction each and is not, since malloc's and free's own returns are part of them.
"""
import argparse
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import preload  # noqa: E402

PEERS = {
    "glibc": None,
    "jemalloc": "libjemalloc.so.2",
    "mimalloc": "libmimalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
}
DIRECTORIES = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]

# name, heap state, batch, size, rounds, most instructions for one malloc and one free
SMALL = [
    ("pair 64 B", "empty", 1, 64, 20000, 40.0),
    ("batch-1000 64 B", "empty", 1000, 64, 100, 40.0),
    ("pair 16 B", "empty", 1, 16, 20000, None),
    ("pair 1 KiB", "empty", 1, 1024, 20000, None),
    ("pair 20 KB", "empty", 1, 20000, 10000, None),
    ("batch-1000 1 KiB", "empty", 1000, 1024, 50, None),
    ("pair 64 B, used heap", "small", 1, 64, 20000, None),
]
LARGE = [
    ("1 MiB pair, empty heap", "empty", 1, 1 << 20, 4000, 400.0),
    ("1 MiB pair, fragmented heap", "fragmented", 1, 1 << 20, 4000, 400.0),
    ("1 MiB pair, after small blocks", "small", 1, 1 << 20, 4000, 400.0),
    ("16 x 1 MiB, fragmented heap", "fragmented", 16, 1 << 20, 300, None),
    ("100 KiB pair, fragmented heap", "fragmented", 1, 100 << 10, 4000, None),
    ("4 MiB pair, fragmented heap", "fragmented", 1, 4 << 20, 1000, None),
]
# operator new and the sized operator delete, as C++ containers call them: at most 15 over malloc and free.
OPERATORS = [
    ("new, sized delete 64 B", "empty", 1, 64, 20000, 55.0),
    ("batch-1000 64 B", "empty", 1000, 64, 100, 55.0),
    ("new, sized delete 1 KiB", "empty", 1, 1024, 20000, None),
    ("new, sized delete 5 KB", "empty", 1, 5000, 20000, None),
    ("new, sized delete 1 MiB", "empty", 1, 1 << 20, 4000, None),
]
# The same in checked mode, with the stacks of the loop's few frames and without stacks.
CHECKED = [
    ("checked pair 64 B", "empty", 1, 64, 5000, 2000.0),
    ("checked batch-1000 64 B", "empty", 1000, 64, 5, 2000.0),
]
NO_STACKS = [case[:5] + (900.0,) for case in CHECKED]
# While blocks are sampled: what is not takes a dozen instructions more; samples are in it, with their stacks of a
# few frames.
PROFILE = [
    ("profiled pair 64 B", "empty", 1, 64, 200000, 58.0),
    ("profiled batch-1000 64 B", "empty", 1000, 64, 200, 58.0),
    ("profiled pair 5 KB", "empty", 1, 5000, 20000, None),
]
CASES = {
    "profile": PROFILE,
    "small": SMALL,
    "large": LARGE,
    "operators": OPERATORS,
    "checked": CHECKED,
    "checked_no_stacks": NO_STACKS,
}
MODES = {
    "profile": {"HUMMOCK_PROFILE": "on"},
    # The quarantine is full from the start, so that each free lets go of a block.
    "checked": {"HUMMOCK_CHECKED": "on", "HUMMOCK_QUARANTINE": "256k"},
    "checked_no_stacks": {"HUMMOCK_CHECKED": "on", "HUMMOCK_QUARANTINE": "256k", "HUMMOCK_STACKS": "0"},
}
mode = {}
kind = "real"


def find_peer(name):
    return next((os.path.join(d, name) for d in DIRECTORIES if os.path.exists(os.path.join(d, name))), None)


def environment(library):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_")}
    env.pop("LD_PRELOAD", None)
    env.update(mode)
    if library:
        env["LD_PRELOAD"] = library
    return env


def collected(loop, library, arguments):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", loop] + arguments
    run = subprocess.run(command, env=environment(library), capture_output=True, text=True, timeout=1500)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found:
        raise RuntimeError(f"{' '.join(command)} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
    origin = re.search(r"malloc from (.*)", run.stdout)
    if library and (not origin or not os.path.samefile(origin.group(1), library)):
        raise RuntimeError(f"malloc is not from {library} but {origin and origin.group(1)}")
    return int(found.group(1))


def per_operation(loop, library, which, state, batch, size, rounds):
    runs = [
        collected(loop, library, ["count", which, state, str(batch), str(size), str(n)])
        for n in (rounds, 2 * rounds)
    ]
    return (runs[1] - runs[0]) / (rounds * batch)


def measure(loop, library, case, overheads):
    _, state, batch, size, rounds, _ = case
    if batch not in overheads:
        overheads[batch] = per_operation(loop, None, "empty", "empty", batch, 64, rounds) - 2
    return per_operation(loop, library, kind, state, batch, size, rounds) - overheads[batch]


def traps(loop, library, case):
    """The message of a system call in the steady state, or None."""
    _, state, batch, size, rounds, _ = case
    command = [loop, "trap", kind, state, str(batch), str(size), str(rounds * 10)]
    # Now and then, by the clock, collapse asks the system whether huge pages are allowed.
    env = environment(library) | {"HUMMOCK_HUGE_PAGES": "off"}
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1500)
    if run.returncode == 77:
        return None
    return None if run.returncode == 0 else run.stderr.strip() or f"ended with {run.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loop", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--peers", action="store_true", help="count the allocators installed beside it too")
    parser.add_argument("cases", choices=list(CASES))
    options = parser.parse_args()
    global kind
    kind = "operators" if options.cases == "operators" else "real"
    mode.update(MODES.get(options.cases, {}))
    try:
        subprocess.run(["valgrind", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        print("skipped: valgrind is not installed")
        return 77

    columns = {"hummock": preload.name_of(options.library)}
    if options.peers:
        for name, file in PEERS.items():
            path = find_peer(file) if file else None
            if file is None or path:
                columns[name] = path
    failures = []
    overheads = {}
    print(f"{'instructions of one malloc + free':36}" + "".join(f"{name:>10}" for name in columns) + "   budget")
    for case in CASES[options.cases]:
        name, budget = case[0], case[5]
        row = {}
        for column, library in columns.items():
            try:
                row[column] = measure(options.loop, library, case, overheads)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                if column == "hummock":
                    print(error)
                    return 1
                row[column] = float("nan")
        figures = "".join(f"{row[column]:10.1f}" for column in columns)
        print(f"{name:36}{figures}   {budget if budget else '-'}", flush=True)
        if budget and not row["hummock"] <= budget:
            failures.append(f"{name}: {row['hummock']:.1f} instructions, budget {budget}")
        if options.cases == "profile":
            continue  # a stack that is seen for the first time may ask the system what is readable
        trap = traps(options.loop, columns["hummock"], case)
        if trap and budget:
            failures.append(f"{name}: {trap}")
        elif trap:
            print(f"  note: {trap}")
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
