"""Writes a catalogue of N entries, as load.xml and as load.json.

Usage: make_xml.py N
"""

import json
import random
import sys

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "rk", "st", "l", "nd")]


def entry(source, number):
    return {
        "id": number,
        "name": " ".join(source.choices(WORDS, k=source.randint(1, 4))),
        "price": round(source.uniform(1, 900), 2),
        "kind": source.choice(WORDS[:20]),
        "tags": source.choices(WORDS, k=source.randint(0, 6)),
        "text": " ".join(source.choices(WORDS, k=source.randint(5, 60))),
    }


def xml(one):
    tags = "".join(f"<tag>{tag}</tag>" for tag in one["tags"])
    return (f'<entry id="{one["id"]}" kind="{one["kind"]}"><name>{one["name"]}</name><price>{one["price"]}</price>'
            f"{tags}<text>{one['text']}</text></entry>")  # fmt: skip


def main():
    source = random.Random(7)
    entries = [entry(source, number) for number in range(int(sys.argv[1]))]
    with open("load.json", "w", encoding="ascii") as file:
        json.dump(entries, file)
    with open("load.xml", "w", encoding="ascii") as file:
        file.write("<catalogue>\n" + "\n".join(map(xml, entries)) + "\n</catalogue>\n")


main()
