"""The ten commonest words of some files, and what counting them took.

python -m hummock run wordcount.py ../../docs/*.md
"""

import collections
import re
import sys

import hummock

words = collections.Counter()
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        for line in file:
            words.update(re.findall(r"[a-z]+", line.lower(), re.ASCII))
for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0]))[:10]:
    print(count, word)

if not hummock.is_active():
    sys.exit("this process is not on Hummock; start it with: python -m hummock run " + sys.argv[0])
figures = hummock.stats()
print(f"{len(words)} words; {figures.live // 1024} KiB in use, {figures.peak // 1024} KiB at most", file=sys.stderr)
