#!/usr/bin/env python3
"""How much there is to read: lines of the core, mechanisms, and what a cold malloc(64) and a cold free of it go through.

Usage: counts.py [--build BUILD] [--list]

Cold is the first call of its size class in a thread that has a heap: malloc makes a slab. What runs is counted under
callgrind; the names of functions and files are those of the debug information. --list names them. Nothing here fails:
figures stand beside their targets, for a reader.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE = ("base", "os", "pages", "slab", "shard", "heap")
FACE = ("libc.cc", "family.h")
LINES, MECHANISMS = 8000, 25
COLD = {"malloc": (30, 12), "free": (20, 8)}  # functions, files


def core_files():
    files = [path for folder in CORE for path in sorted((ROOT / "src" / folder).rglob("*.*"))]
    return [path for path in files if path.parent.name != "windows"] + [ROOT / "src/faces" / name for name in FACE]


def without_comments(text):
    """Lines that hold more than blanks and comments."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', lambda match: match[1] or "", text, flags=re.S)
    return sum(1 for line in text.splitlines() if line.strip())


def count_mechanisms():
    text = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    section = text.split("## The mechanisms", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return len(rows) - 2  # its head, and the line below that


def executed(profile, library):
    """Addresses of the library that ran, as its file has them."""
    names, found, position, obj, after_call = {}, set(), 0, "", False
    for line in open(profile, encoding="utf-8", errors="replace"):
        if line.startswith("ob="):
            number, _, name = line[3:].strip().partition(" ")
            obj = names.setdefault(number, name)
        elif line.startswith("calls="):
            after_call = True
        elif line.startswith(("0x", "+", "-", "*")):
            word = line.split()[0]
            position = int(word, 16) if word.startswith("0x") else position if word == "*" else position + int(word, 16)
            if not after_call and os.path.realpath(obj) == library:
                found.add(position)
            after_call = False
        elif line.startswith("cob="):
            number, _, name = line[4:].strip().partition(" ")
            names.setdefault(number, name)
    return found


def plain(name):
    """Without what the compiler made of it: parts of a function are one function."""
    return re.sub(r"hummock::|\(anonymous namespace\)::| \[clone .*|\.(constprop|isra|part|cold).*", "", name)


def names_of(addresses, library):
    """Functions that are called, those inlined there, the files of the first, and of both."""
    text = subprocess.run(["addr2line", "-C", "-f", "-i", "-a", "-e", library], text=True, capture_output=True, check=True,
                          input="\n".join(hex(each) for each in sorted(addresses))).stdout
    called, inlined, own_files, files = set(), set(), set(), set()
    for block in re.split(r"^0x[0-9a-f]+\n", text, flags=re.M)[1:]:
        lines = block.splitlines()
        chain = [(plain(lines[i]), lines[i + 1].split(" ")[0].rsplit(":", 1)[0]) for i in range(0, len(lines) - 1, 2)]
        chain = [(name, file) for name, file in chain if "/src/" in file]
        if not chain:
            continue
        called.add(chain[-1][0])
        own_files.add(chain[-1][1].rsplit("/src/", 1)[1])
        inlined.update(name for name, _ in chain[:-1])
        files.update(file.rsplit("/src/", 1)[1] for _, file in chain)
    return called, inlined - called, own_files, files


def cold(call, build, library):
    with tempfile.TemporaryDirectory() as folder:
        profile = pathlib.Path(folder) / "profile"
        subprocess.run(["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--collect-atstart=no",
                        f"--toggle-collect=cold_{call}", f"--callgrind-out-file={profile}", build / "tests/budget/budget_cold"],
                       env={"PATH": os.environ["PATH"], "LD_PRELOAD": library}, check=True, capture_output=True)
        return names_of(executed(profile, library), library)


def row(what, figure, target=None):
    print(f"  {what:<58}{figure:>6}{'' if target is None else f'   target {target}':<16}"
          f"{'' if target is None or figure <= target else '   above'}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--list", action="store_true", help="name the functions and files")
    options = parser.parse_args()
    library = os.path.realpath(options.build / "libhummock.so")
    if not os.path.exists(library) or not (options.build / "tests/budget/budget_cold").exists():
        sys.exit(f"counts.py: {options.build} has no libhummock.so, or no tests: `make counts` builds both")
    print("The core: base, os for Linux, pages, slab, shard, heap, libc's face")
    lines, bare = {}, {}
    for path in core_files():
        text = path.read_text(encoding="utf-8")
        lines[path], bare[path] = text.count("\n"), without_comments(text)
    for folder in (*CORE, "faces"):
        own = [path for path in lines if path.relative_to(ROOT / "src").parts[0] == folder]
        print(f"    {folder:<8}{len(own):>4} files{sum(lines[each] for each in own):>7} lines, "
              f"{sum(bare[each] for each in own)} without comments and blank ones")
    row("lines", sum(lines.values()), LINES)
    row("lines without comments and blank ones", sum(bare.values()), LINES)
    row("mechanisms in the table of docs/design.md", count_mechanisms(), MECHANISMS)
    for call, (functions, files) in COLD.items():
        called, inlined, own, seen = cold(call, options.build, library)
        print(f"A cold {call}(64)")
        row("functions that are called", len(called), functions)
        row("with those inlined into them", len(called) + len(inlined), functions)
        row("source files of the functions that are called", len(own), files)
        row("with those of the inlined ones: headers, mostly", len(seen), files)
        if options.list:
            for kind, names in (("called", called), ("inlined", inlined), ("their files", own), ("all files", seen)):
                print(f"    {kind}:", *sorted(names), sep="\n      ")


if __name__ == "__main__":
    main()
