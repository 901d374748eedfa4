"""Holds a block for a tag, and prints the figures: as numbers, then as JSON."""

import json

import hummock

with hummock.tagged(4711):
    block = bytearray(10_000_000 - 1)  # it asks for one more
stats = hummock.stats()
print(stats.large_blocks, stats.large_bytes, stats.mapped, stats.purged)
print(json.dumps(hummock.figures()))
