"""The command line tool, and what it writes."""

import os
import subprocess
import sys

TOOL, LIBRARY, TARGET = sys.argv[1:4]
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}
PATIENCE = ["--wait", "20000"]  # against hangs alone
SAMPLES = slice(88, 96)  # of the head: include/hummock/profile.h
COLUMNS = ["inuse_objects", "inuse_space", "alloc_objects", "alloc_space", "peak_objects", "peak_space"]


def hummock(*arguments, status=0, **options):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, errors="replace", env=CALM,
                          **options)
    if status is not None and done.returncode != status:
        raise AssertionError(f"hummock {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def folded(path):
    """(names from the outermost, bytes) of each line."""
    with open(path, encoding="utf-8") as file:
        lines = [line.rsplit(" ", 1) for line in file.read().splitlines()]
    return [(stack.split(";"), int(size)) for stack, size in lines]


def bytes_through(stacks, function):
    return sum(size for names, size in stacks if any(function in name for name in names))
