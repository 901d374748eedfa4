#!/usr/bin/env python3
"""clang reads each file of the library with the project's own flags, without a warning: clang.py BUILD"""
import json
import pathlib
import shlex
import shutil
import subprocess
import sys

SKIP = 77
# What g++ alone understands, and what a look needs not.
DROPPED = {"-c", "-MD"}
DROPPED_WITH_VALUE = {"-o", "-MT", "-MF"}


def flags_of(command):
    words = iter(shlex.split(command))
    for word in words:
        if word in DROPPED_WITH_VALUE:
            next(words)
        elif word not in DROPPED:
            yield word


def main():
    clang = shutil.which("clang++")
    if clang is None:
        print("no clang++ here")
        return SKIP
    build = pathlib.Path(sys.argv[1])
    files = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["file"])
        if "src" in path.parts and "hummock_core.dir" in entry["command"]:
            files[path] = entry
    if not files:
        print("no file of the library in compile_commands.json")
        return 1
    failed = 0
    for path, entry in sorted(files.items()):
        words = list(flags_of(entry["command"]))
        at = next(i for i, word in enumerate(words) if word.startswith("-"))  # before it: ccache, the compiler
        command = [clang, "-fsyntax-only", "-Wno-unknown-warning-option", *words[at:]]
        failed += subprocess.run(command, cwd=entry["directory"], check=False).returncode != 0
    print(f"{len(files)} files read, {failed} with a complaint")
    return 1 if failed else 0


sys.exit(main())
