#!/usr/bin/env python3
"""Tables in the documents are what the stored results make.

Usage: documents.py SOURCE HUMMOCK
"""

import pathlib
import re
import subprocess
import sys

SOURCE, TOOL = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
MARK = re.compile(r"^<!-- hummock bench table (\S+)( --by \w+)? -->$", re.M)


def main():
    status = 0
    tables = 0
    for document in [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]:
        for result, by in MARK.findall(document.read_text(encoding="utf-8")):
            tables += 1
            command = [TOOL, "bench", "table", result, *by.split(), "--check", document.relative_to(SOURCE)]
            status |= subprocess.run(command, cwd=SOURCE, check=False).returncode
    if not MARK.search((SOURCE / "docs/results.md").read_text(encoding="utf-8")):
        print("docs/results.md has no table of the bench")
        status = 1
    print(f"{tables} tables")
    return status


if __name__ == "__main__":
    sys.exit(main())
