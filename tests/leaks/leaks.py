#!/usr/bin/env python3
"""`hummock leaks` on programs of known leaks.

Usage: leaks.py TOOL LIBRARY TARGET
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

TOOL, LIBRARY, TARGET = sys.argv[1:4]
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}
AMOUNT = r"(?:\d+ bytes?|[\d.]+[KMG]) in (\d+) blocks?"
SUMMARY = re.compile(f"lost: {AMOUNT}; behind them: {AMOUNT}; suppressed: {AMOUNT}; still reachable: {AMOUNT}\n")


def hummock(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, env=CALM, stdin=subprocess.DEVNULL)


def leaks(program, *options, status=0, end="0"):
    done = hummock("leaks", "--lib", LIBRARY, *options, "--", TARGET, program, end)
    found = SUMMARY.search(done.stderr)
    assert found and done.returncode == status, f"{program}: {done.returncode}\n{done.stderr}"
    return [int(word) for word in found.groups()], done.stderr


class Leaks(unittest.TestCase):
    def test_ten_programs(self):
        for program, lost, behind, held in [("plain", 10, 0, 0), ("large", 3, 0, 0), ("huge", 1, 0, 0),
                                            ("list", 1, 4, 0), ("ring", 1, 1, 0), ("freed", 1, 0, 0),
                                            ("interior", 0, 0, 1), ("threads", 0, 0, 6),
                                            ("containers", 0, 0, 250), ("mixed", 7, 0, 251)]:
            with self.subTest(program):
                counts, text = leaks(program)
                self.assertEqual(counts[:3], [lost, behind, 0], text)
                self.assertGreaterEqual(counts[3], held, text)
                self.assertEqual("leak_here" in text, lost > 0, text)
                self.assertEqual("hang_here" in text, program == "list", text)
                self.assertNotIn("keep_here", text)
                self.assertNotIn("live", text)  # what is lost is not called live

    def test_reachable_is_shown_when_asked_for(self):
        self.assertIn("keep_here", leaks("interior", "--reachable")[1])

    def test_status(self):
        leaks("plain", status=3, end="3")
        leaks("plain", "--fail", status=23)
        leaks("interior", "--fail")
        leaks("interior", "--fail", status=3, end="3")

    def test_suppressed(self):
        for text in ["leak:lose\n", "# known\nleak:target.cc\n",
                     "{\n  a\n  Memcheck:Leak\n  match-leak-kinds: all\n  fun:malloc\n  fun:*leak_here*\n  ...\n"
                     "  fun:main\n}\n", "{\n b\n Memcheck:Leak\n ...\n obj:*leaks_target\n}\n"]:
            with tempfile.NamedTemporaryFile("w") as file:
                file.write(text)
                file.flush()
                with self.subTest(text):
                    counts, said = leaks("plain", "--fail", "--suppressions", file.name)
                    self.assertEqual(counts[:3], [0, 0, 10], said)
        for text in ["leak:somewhere_else\n", "{\n a\n Memcheck:Leak\n fun:main\n}\n",
                     "{\n a\n Memcheck:Leak\n ...\n fun:main\n ...\n fun:*leak_here*\n}\n",
                     # Never twice in a stack: each way to pass it must not be tried.
                     "{\n a\n Memcheck:Leak\n" + " ...\n fun:*\n" * 3 + " ...\n" * 200 + " fun:nobody\n}\n"]:
            with tempfile.NamedTemporaryFile("w") as file, self.subTest(text[:60]):
                file.write(text)
                file.flush()
                leaks("plain", "--fail", "--suppressions", file.name, status=23)

    def test_growth_of_a_process(self):
        process = subprocess.Popen([TARGET, "grow"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=dict(CALM, LD_PRELOAD=LIBRARY))
        try:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            for _ in range(2):
                done = hummock("leaks", str(process.pid), "--after", "500ms", "--bytes", "1", "--fail", "--wait", "20000")
                self.assertEqual(done.returncode, 23, done.stderr)
                first = done.stdout.splitlines()[2]
                self.assertIn("leak_here", first)
                shown = {name for name in ("leak_here", "keep_here") if name in done.stdout}
                self.assertEqual(shown, {"leak_here"}, done.stdout)
        finally:
            process.stdin.close()
            process.wait()
            process.stdout.close()

    def test_a_process_that_is_not_there(self):
        for name, words in (("no-such-program", "there is no process no-such-program"),
                            ("999999999", "process 999999999: there is no such process")):
            done = hummock("leaks", name)
            self.assertEqual((done.stderr, done.returncode), (f"hummock leaks: {words}\n", 1))

    def test_wrong_use(self):
        for arguments, word in [(["--suppressions", "/nowhere", "--", TARGET, "plain"], "/nowhere"),
                                ([], "process"), (["--after", "3s", "--", TARGET, "plain"], "--after"),
                                (["--after", "soon", "1"], "--after"), (["--reachable", "1"], "--reachable")]:
            with self.subTest(arguments):
                done = hummock("leaks", *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
