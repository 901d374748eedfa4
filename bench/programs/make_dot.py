"""Writes a graph of N nodes and some more edges to load.dot.

Usage: make_dot.py N
"""

import random
import sys


def main():
    source = random.Random(13)
    count = int(sys.argv[1])
    lines = ["digraph load {", "node [shape=box];"]
    for node in range(1, count):
        lines.append(f'n{node} [label="node {node}\\nof {count}"];')
        for _ in range(1 + (source.random() < 0.25)):
            lines.append(f"n{source.randrange(max(0, node - 40), node)} -> n{node};")
    with open("load.dot", "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n}\n")


main()
