"""Writes a history of N commits, as git fast-import reads it, to the file history.

Usage: make_history.py N
"""

import random
import sys


def main():
    source = random.Random(17)
    files = [[f"line {row} of file {name}: {source.getrandbits(60):x}" for row in range(source.randint(20, 400))] for name in range(150)]
    with open("history", "w", encoding="ascii") as out:
        for change in range(1, int(sys.argv[1]) + 1):
            out.write(f"commit refs/heads/main\ncommitter A <a@b> {1600000000 + change * 60} +0000\n")
            out.write(f"data <<END\nchange {change}\nEND\n")
            for name in source.sample(range(len(files)), 3):
                lines = files[name]
                for _ in range(source.randint(1, 6)):
                    lines[source.randrange(len(lines))] = f"changed at {change}: {source.getrandbits(90):x}"
                out.write(f"M 644 inline dir{name % 12}/file{name}\ndata <<END\n" + "\n".join(lines) + "\nEND\n")


main()
