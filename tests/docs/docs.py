#!/usr/bin/env python3
"""Holds the documents to the sources. Prints one line for each thing that is not so.

Usage: docs.py SOURCE one_malloc_one_free|links|options|reference|version
       docs.py SOURCE sizes PROGRAM
       docs.py SOURCE manual TOOL
"""

import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True

ROOT = pathlib.Path(sys.argv[1])
DOCS = sorted((ROOT / "docs").glob("*.md"))

QUOTED_PATH = r"`((?:src|include|tools|tests|bench|scripts|cmake)/[\w./-]+)`"
# "`name` in `file`" and "`name` (`file`)": what the documents write of a function's or a type's place.
PLACED = re.compile(r"`(\w+)`(?: in | \()" + QUOTED_PATH)
NAME = re.compile(r"`([A-Za-z]\w+)`")


def read(path):
    return path.read_text(encoding="utf-8")


def code_of(path):
    """The file without comments and strings."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", read(path), flags=re.S)


def after_parameters(code, at):
    """Where the parenthesis that opens at `at` is closed."""
    depth = 0
    for index in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[index], 0)
        if depth == 0:
            return index + 1
    return len(code)


def defines(code, name):
    """Does a function of that name have its body here, or a type or a variable its place?"""
    words = r"^[ \t]*(?!return\b|else\b|throw\b|delete\b|new\b|case\b|goto\b)[\w:<>,*&\[\]()]+(?:[ \t]+[\w:<>,*&\[\]()]+)*"
    for match in re.finditer(words + r"[ \t*&]+" + name + r"[ \t]*(\()", code, re.M):
        if re.match(r"(?:\s|\b(?:const|noexcept|override|__THROW)\b|\w+\((?:[^()]|\([^()]*\))*\))*\{",
                    code[after_parameters(code, match.start(1)):]):
            return True
    variable = words + r"[ \t*&]+" + name + r"[ \t]*(?:[=;{\[]|__attribute__)"
    kind = r"\b(?:struct|class|enum class|enum|namespace)\s+" + name + r"\b[^;(]*\{"
    return re.search(variable, code, re.M) is not None or re.search(kind, code) is not None


def one_malloc_one_free():
    walk = read(ROOT / "docs" / "one-malloc-one-free.md")
    for path in DOCS:
        for file in sorted(set(re.findall(QUOTED_PATH, read(path)))):
            if not (ROOT / file).exists():
                yield f"{path.name}: there is no {file}"
    for name, file in sorted(set(PLACED.findall(walk))):
        if (ROOT / file).is_file() and not defines(code_of(ROOT / file), name):
            yield f"{name} is not defined in {file}"
    sources = [code_of(path) for path in sorted((ROOT / "src").rglob("*.[ch]*"))]
    for name in sorted(set(NAME.findall(walk))):
        if not any(defines(code, name) for code in sources):
            yield f"nothing in src is called {name}"
    if len(PLACED.findall(walk)) < 20:
        yield "the walk names too few places; is it written as this test reads it?"


def anchors(path):
    heads = re.findall(r"^#+ +(.*)$", read(path), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def links():
    found = 0
    for path in [ROOT / "README.md"] + DOCS:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", read(path), flags=re.S)
        targets = re.findall(r"\]\(([^()\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
        for target in targets:
            if re.match(r"[a-z]+:", target):
                continue
            found += 1
            file, _, anchor = target.partition("#")
            aim = (path.parent / file) if file else path
            if not aim.exists():
                yield f"{path.relative_to(ROOT)}: {target} leads nowhere"
            elif anchor and aim.suffix == ".md" and anchor not in anchors(aim):
                yield f"{path.relative_to(ROOT)}: {target}: no such heading"
    if found < 5:
        yield "fewer than five links were found; does this test still read them?"


def options():
    table = re.findall(r"^  X\(\w+, (\w+), \w+,", read(ROOT / "src/base/options.h"), re.M)
    rows = read(ROOT / "README.md").partition("| option | default |")[2].partition("\n\n")[0]
    readme = dict(re.findall(r"^\| (\w+) \| ([^|]+?) \| [^|]+\|$", rows, re.M))
    manual = read(ROOT / "man/hummock.7").partition(".SH OPTIONS\n")[2].partition("\n.SH ")[0]
    entries = {name: (initial, text.strip()) for name, initial, text in
               re.findall(r'^\.TP\n\.BR (\w+) " \((.+?)\)"\n(.*?)(?=^\.TP$|\Z)', manual, re.M | re.S)}
    for name in table:
        if name not in readme:
            yield f"README.md: its table of options lacks {name}"
        if name not in entries or not entries[name][1]:
            yield f"man/hummock.7: {name} is not described"
        elif readme.get(name, entries[name][0]) != entries[name][0]:
            yield f"{name}: the default is {readme[name]} in README.md, {entries[name][0]} in man/hummock.7"
    for file, names in (("README.md", readme), ("man/hummock.7", entries)):
        for name in sorted(set(names) - set(table)):
            yield f"{file}: there is no option {name}"
    if len(table) < 5:
        yield "src/base/options.h: fewer than five options were found; does this test still read them?"


def reference():
    """The site's pages of the headers describe every function that a header declares, and have no comment twice."""
    sys.path.insert(0, str(ROOT / "docs/site"))
    import api  # noqa: PLC0415
    nav = read(ROOT / "docs/site/mkdocs.yml")
    found = 0
    for header in sorted((ROOT / "include/hummock").glob("*.h*")):
        if header.name == "proxy_inline.h":  # what proxy.h is made of, for C++
            continue
        if f"api/{header.name}.md" not in nav:
            yield f"docs/site/mkdocs.yml: {header.name} has no page"
        page, described = api.page_of(header.name, read(header))
        functions = re.findall(r"^HUMMOCK_EXPORT[^;]*?\b([a-z]\w+)\(", code_of(header), re.M)
        found += len(functions)
        for name in functions:
            if name not in described or not re.search(rf"\b{name}\(", page):
                yield f"{header.name}: {name} is not on its page"
        if "HUMMOCK_EXPORT" in page or "HUMMOCK_NOEXCEPT" in page:
            yield f"{header.name}: its page shows the header's own macros"
    if found < 80:
        yield f"only {found} functions were found; does this test still read the headers?"


# Where a document names a size: the document, its words around the number, and the number's name and unit in sizes.cc.
SIZES = [
    ("design.md", r"comes in \*regions\* of ([\d.]+) MiB", "region", 1 << 20),
    ("design.md", r"A region has (\d+) \*slots\*", "slots in a region", 1),
    ("design.md", r"\*slots\* of ([\d.]+) KiB", "slot", 1 << 10),
    ("design.md", r"\*header\* of (\d+) bytes", "slab header", 1),
    ("layout.md", r"\*\*regions\*\* of ([\d.]+) MiB", "region", 1 << 20),
    ("layout.md", r"has (\d+) \*\*slots\*\*", "slots in a region", 1),
    ("layout.md", r"\*\*slots\*\* of ([\d.]+) KiB", "slot", 1 << 10),
    ("layout.md", r"\*\*slab headers\*\* of (\d+) bytes", "slab header", 1),
    ("layout.md", r"a table of ([\d,]+) distances", "map entries", 1),
    ("layout.md", r"(\d+) slots are a \*\*huge page\*\*", "slots in a huge page", 1),
    ("layout.md", r"A first-class heap's record is ([\d.]+) KiB", "first-class heap record", 1 << 10),
    ("layout.md", r"A thread's record is ([\d.]+) KiB", "thread record", 1 << 10),
    ("layout.md", r"([\d.]+) KiB of it hold", "remote entries", 1 << 10),
]


def version():
    """The number stands in hummock.h; files in formats of others, which cannot read it there, repeat it."""
    header = read(ROOT / "include/hummock/hummock.h")
    number = ".".join(re.findall(r"^#define HUMMOCK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.M))
    repeated = {
        "packaging/vcpkg/hummock/vcpkg.json": r'"version": "(.*)"',
        "bindings/rust/Cargo.toml": r'^version = "(.*)"',
        "bindings/rust/hummock/Cargo.toml": r'^hummock-sys = \{ version = "(.*?)"',
        "bindings/rust/Cargo.lock": r'^name = "hummock(?:-sys)?"\nversion = "(.*)"',
        "examples/rust/Cargo.lock": r'^name = "hummock(?:-sys)?"\nversion = "(.*)"',
        **{f"man/hummock.{section}": r'^\.TH HUMMOCK . "[-\d]+" "Hummock (.*?)"' for section in (1, 3, 7)},
        "tests/windows/c_interface.c": r'hummock_version\(\), "(.*?)"',
        "bindings/python/tests/test_python.py": r'"hummock (\d.*?)\\n"',
    }
    for path, where in repeated.items():
        found = re.findall(where, read(ROOT / path), re.M)
        if not found or set(found) != {number}:
            yield f"{path}: says {', '.join(sorted(set(found))) or 'no version'}, hummock.h {number}"
    if not re.search(rf"^## {re.escape(number)}$", read(ROOT / "CHANGELOG.md"), re.M):
        yield f"CHANGELOG.md: has no section {number}"


def commands_of(help_text):
    """The names under Commands:, whose lines of a longer text begin further right."""
    part = help_text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    return re.findall(r"^  (\S+)", part, re.M)


def manual():
    """hummock(1) has each command's options, in a part of its name, and no others."""
    def help_of(*words):
        return subprocess.run([sys.argv[3], *words, "--help"], capture_output=True, text=True, check=True).stdout

    commands = [(name,) for name in commands_of(help_of())]
    commands += [(*outer, name) for outer in commands for name in commands_of(help_of(*outer))]
    page = read(ROOT / "man/hummock.1")
    synopsis = page.partition(".SH SYNOPSIS\n")[2].partition("\n.SH ")[0]
    parts = {}
    for titles, text in re.findall(r"^\.SS ([^\n]*)\n(.*?)(?=^\.S[SH] )", page.partition("\n.SH OPTIONS\n")[2], re.M | re.S):
        for title in titles.split(", "):
            parts[title] = set(re.findall(r"--[a-z][-a-z]*", re.sub(r"\\-", "-", text)))
    for words in commands:
        name = " ".join(("hummock", *words))
        if not re.search(rf"^\.B {name}(?: \\-|$)", synopsis + "\n", re.M):
            yield f"man/hummock.1: {name} is not in the synopsis"
        shown = set(re.findall(r"^  (?:-\w,)?(--[a-z][-a-z]*)", help_of(*words), re.M)) - {"--help"}
        own = parts.pop(name, set())
        for option in sorted(shown - own):
            yield f"man/hummock.1: {option} is not in the part of {name}"
        for option in sorted(own - shown):
            yield f"man/hummock.1: {name} has no option {option}"
    for title in parts:
        yield f"man/hummock.1: there is no command {title}"
    if len(commands) < 15:
        yield f"only {len(commands)} commands were found; does this test still read the help?"


def sizes():
    printed = subprocess.run([sys.argv[3]], capture_output=True, text=True, check=True).stdout
    real = {name: int(value) for name, value in (line.split(": ") for line in printed.splitlines())}
    for document, words, name, unit in SIZES:
        said = re.findall(words, read(ROOT / "docs" / document))
        if len(said) != 1:
            yield f"{document}: {len(said)} places are like {words!r}; this test reads one"
            continue
        digits = len(said[0].partition(".")[2])
        if float(said[0].replace(",", "")) != round(real[name] / unit, digits):
            yield f"{document}: {name} is {said[0]}, in the code {real[name] / unit:g}"


if __name__ == "__main__":
    wrong = list({"one_malloc_one_free": one_malloc_one_free, "links": links, "options": options, "reference": reference, "sizes": sizes, "manual": manual,
                  "version": version}[sys.argv[2]]())
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
