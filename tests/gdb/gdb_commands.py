#!/usr/bin/env python3
"""The GDB commands say of a live process and of its core file what the program did.

Usage: gdb_commands.py GDB LIBRARY TARGET SCRIPT
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

GDB, LIBRARY, TARGET, SCRIPT = sys.argv[1:5]
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}
ASKED = ["hummock heap", "hummock classes", "hummock block blocks[500]", "hummock block blocks[500] + 77",
         "hummock block freed", "hummock block large + 1000", "hummock block mapped + 5", "hummock block &blocks",
         "hummock block"]


def gdb(*commands, options=()):
    words = [GDB, "-nx", "-batch", *options, TARGET]
    for command in (f"source {SCRIPT}", *commands):
        words += ["-ex", command]
    return subprocess.run(words, capture_output=True, text=True, env=CALM, timeout=600, check=False,
                          stdin=subprocess.DEVNULL)


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        core = cls.folder.name + "/core"
        live = gdb("set startup-with-shell off", "set environment LD_PRELOAD " + LIBRARY, "break stop_here", "run",
                   "generate-core-file " + core, *ASKED)
        cls.said = {"live": live.stdout + live.stderr}
        dead = gdb(*ASKED, options=["-core", core])
        cls.said["core"] = dead.stdout + dead.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check(self, said):
        [(blocks, live)] = re.findall(r"^ +3072 +\d+ +(\d+) +(\S+) +\S+$", said, re.M)
        self.assertGreaterEqual(int(blocks), 1000, said)
        self.assertLess(int(blocks), 1100, said)
        self.assertRegex(said, r"(?m)^large blocks +1 +1M +1M$")
        self.assertRegex(said, r"(?m)^blocks with mappings +1 +100M +100M$")
        self.assertRegex(said, r"(?m)^0x\w+ is 0 bytes into a live block of 3072 bytes at 0x\w+$")
        self.assertRegex(said, r"(?m)^0x\w+ is 77 bytes into a live block of 3072 bytes at 0x\w+$")
        self.assertRegex(said, r"(?m)^0x\w+ is 0 bytes into a free block of \d+ bytes at 0x\w+$")
        self.assertRegex(said, r"(?m)^0x\w+ is 1000 bytes into a live block of 1048576 bytes at 0x\w+, large$")
        self.assertRegex(said, r"(?m)^0x\w+ is 5 bytes into a live block of 104857600 bytes at 0x\w+, huge$")
        self.assertIn("is not Hummock's", said)
        self.assertIn("block: name an address", said)

    def test_live(self):
        self.check(self.said["live"])

    def test_core(self):
        self.check(self.said["core"])

    def test_same(self):
        table = r"(?m)^ *\d+ +\d+ +\d+ +\S+ +\S+$"
        self.assertEqual(re.findall(table, self.said["live"]), re.findall(table, self.said["core"]))

    def test_guarded(self):
        done = gdb("set startup-with-shell off", "set environment LD_PRELOAD " + LIBRARY,
                   "set environment HUMMOCK_CONF guards:2", "break stop_here", "run", "hummock heap",
                   "hummock block blocks[500] + 77", "hummock block blocks[500] + 5000", "hummock block freed")
        said = done.stdout + done.stderr
        self.assertRegex(said, r"(?m)^guarded blocks +1\d\d\d +2[.0-9]+M +[34][.0-9]+M$")
        self.assertRegex(said, r"(?m)^0x\w+ is 77 bytes into a live block of 3000 bytes at 0x\w+, guarded$")
        self.assertRegex(said, r"(?m)^0x\w+ stands beside a guarded block of 3000 bytes at 0x\w+$")
        self.assertRegex(said, r"(?m)^0x\w+ stands in free memory of the region at 0x\w+$")

    def test_without_hummock(self):
        done = gdb("set startup-with-shell off", "break stop_here", "run", "hummock heap")
        self.assertIn("no Hummock in this process", done.stdout + done.stderr)


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main()
