#!/usr/bin/env python3
"""Guarded blocks: faults of a program are told where they happen, and as often as the option says.

Usage: guards.py LIBRARY TARGET
"""

import os
import re
import signal
import subprocess
import sys
import unittest

LIBRARY, TARGET = sys.argv[1:3]
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}
STACKS = {"allocated": "allocate_here", "freed": "free_here"}


def run(*words, conf="guards:100K"):
    done = subprocess.run([TARGET, *map(str, words)], capture_output=True, text=True, check=False,
                          env={**CALM, "LD_PRELOAD": LIBRARY, "HUMMOCK_CONF": conf})
    return done.returncode, done.stdout, done.stderr


def stacks(report):
    """{what: the functions of its stack}"""
    found, lines = {}, None
    for line in report.splitlines():
        if event := re.search(r"  (allocated|freed|this call|this access) by thread \d+:$", line):
            lines = found.setdefault(event[1], [])
        elif lines is not None and (frame := re.search(r"    #\d+ .* (\S+)\+0x[0-9a-f]+$", line)):
            lines.append(frame[1])
    return found


class Guards(unittest.TestCase):
    def check(self, kind, message, events, *, runs=5, words=(2000000, 2000)):
        """One block in 1,000 is guarded: with 2,000 faults, at least one is told but for one run in 500 million."""
        for _ in range(runs):
            status, _, report = run(kind, *words, 104, conf="guards:2K" if words[0] < 100000 else "guards:10400")
            self.assertEqual(status, -signal.SIGABRT, report)
            self.assertRegex(report.splitlines()[0], message)
            found = stacks(report)
            self.assertEqual(set(found), set(events), report)
            for event, function in events.items():
                self.assertTrue(any(function in name for name in found[event]), report)

    def test_overflow(self):
        self.check("write-behind", r"(write to|access to) 0x[0-9a-f]+: at byte 136 of a block of 104 bytes",
                   {"allocated": "allocate_here", "this access": "write_far_behind"})
        self.check("read-behind", r"(read of|access to) 0x[0-9a-f]+: at byte 136 of a block of 104 bytes",
                   {"allocated": "allocate_here", "this access": "read_far_behind"})

    def test_free_tells_what_no_page_guards(self):
        self.check("next-byte", r"free\(0x[0-9a-f]+\): something was written at byte 104 of a block of 104 bytes",
                   {"allocated": "allocate_here", "this call": "run_in_thread"})
        self.check("before", r"free\(0x[0-9a-f]+\): something was written 1 byte before a block of 104 bytes",
                   {"allocated": "allocate_here", "this call": "run_in_thread"})

    def test_use_after_free(self):
        self.check("write-freed", r"(write to|access to) 0x[0-9a-f]+: at byte 52 of a freed block of 104 bytes",
                   {"allocated": "allocate_here", "freed": "free_here", "this access": "write_after_free"})
        self.check("read-freed", r"(read of|access to) 0x[0-9a-f]+: at byte 103 of a freed block of 104 bytes",
                   {"allocated": "allocate_here", "freed": "free_here", "this access": "read_after_free"})

    def test_misuse_of_guarded_blocks(self):
        """Nearly every block is guarded."""
        for kind, message, events in (
                ("twice", r"free\(0x[0-9a-f]+\): double free: the block of 104 bytes is free already",
                 {"allocated": "allocate_here", "freed": "free_here", "this call": "free_twice"}),
                ("inside", r"free\(0x[0-9a-f]+\): no live block starts there; it points at byte 1 of a block of 104",
                 {"allocated": "allocate_here", "this call": "free_inside"})):
            status, _, report = run(kind, 100, 1, 104, conf="guards:2")
            self.assertEqual(status, -signal.SIGABRT, report)
            self.assertRegex(report.splitlines()[0], message)
            self.assertEqual(set(stacks(report)), set(events), report)
            for event, function in events.items():
                self.assertTrue(any(function in name for name in stacks(report)[event]), report)

    def test_rate(self):
        """One block of 693 bytes at a mean of 1,000: guarded in half of all runs."""
        runs = 600
        told = sum(run("read-freed", 1, 1, 693, conf="guards:1000")[0] == -signal.SIGABRT for _ in range(runs))
        self.assertLess(abs(told - runs / 2), 0.2 * runs / 2)  # five times the usual error

    def test_child(self):
        status, _, report = run("child", "read-freed", 1000, 100, 104, conf="guards:104")
        self.assertEqual(status, 128 + signal.SIGABRT, report)
        self.assertIn("of a freed block of 104 bytes", report)

    def test_other_faults_take_their_way(self):
        for kind in ("elsewhere", "sent"):
            status, _, report = run(kind)
            self.assertEqual((status, report), (-signal.SIGSEGV, ""))
        self.assertEqual(run("handler", conf="stats:none"), (7, "the program's handler\n", ""))

    def test_no_fault_no_word(self):
        for size, align in ((1, 0), (16, 0), (100, 0), (4096, 0), (4097, 4096), (20000, 64), (61440, 0), (61441, 0),
                            (100000, 0)):
            self.assertEqual(run("none", 20000, 0, size, align, conf=f"guards:{10 * size}"), (0, "", ""), (size, align))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
