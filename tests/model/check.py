#!/usr/bin/env python3
"""Searches the whole state space of a Promela model.

Usage: check.py [--mutant|--large] MODEL [-DNAME[=VALUE]]...
What MODEL includes stands beside it.
Passes when the search was complete and found no error; a mutant, when it found one. 77: no spin."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MEMORY_MIB = 3500
DEPTH = 1000000


def run(command, directory, **more):
    return subprocess.run(
        command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more
    )


def must(command, directory):
    done = run(command, directory)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stdout}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutant", action="store_true")
    parser.add_argument("--large", action="store_true", help="tens of millions of states: worth the compiler's while")
    parser.add_argument("model")
    arguments, defines = parser.parse_known_args()
    if shutil.which("spin") is None:
        print("spin is not installed")
        sys.exit(77)

    with tempfile.TemporaryDirectory() as directory:
        for part in pathlib.Path(arguments.model).parent.glob("*.pml"):
            shutil.copy(part, directory)
        model = os.path.basename(arguments.model)
        must(["spin", *defines, "-a", model], directory)
        # Exhaustive: COLLAPSE stores states compressed, and loses none.
        # Optimised, the search takes half the time, and its compilation ten times as long: as 8 million states.
        flags = ["-O2" if arguments.large else "-O0", "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MIB}"]
        must([os.environ.get("CC", "cc"), *flags, "-o", "pan", "pan.c"], directory)
        output = run(["./pan", f"-m{DEPTH}", "-w25"], directory).stdout

        errors = re.search(r"errors: (\d+)", output)
        states = re.search(r"(\d+) states, stored", output)
        if errors is None or states is None:
            sys.exit(f"the search did not end well:\n{output}")
        found = int(errors.group(1)) != 0
        complete = "Search not completed" not in output and "depth too small" not in output
        what = re.search(r"pan:\d+: (.*)", output)
        print(f"{int(states.group(1)):,} states, errors: {errors.group(1)}")
        if what is not None:
            print(what.group(1))
        if arguments.mutant:
            sys.exit(0 if found else "this protocol is wrong, but no error was found")
        if found:
            print(run(["spin", *defines, "-t", "-p", model], directory).stdout)
            sys.exit(1)
        if not complete:
            sys.exit(f"the search was cut short:\n{output}")


main()
