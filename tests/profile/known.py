"""Profiles of programs that know what they have."""

import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import unittest

from pprof_file import pprof
from support import COLUMNS, LIBRARY, TARGET, bytes_through, folded, hummock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from memory_group import MemoryGroup


class Known(unittest.TestCase):
    """What is estimated is what there is, though the program is killed."""

    def check(self, kind, end, status):
        with tempfile.TemporaryDirectory() as folder:
            done = hummock("profile", "--live", "--bytes", "8K", "--folded", folder + "/f", "--lib", LIBRARY, "--",
                           TARGET, "known", kind, end, status=status)
            live = json.loads(done.stdout)
            stacks = folded(folder + "/f")
        self.assertIn("live in some", done.stderr)
        total = sum(live.values())
        self.assertLess(abs(bytes_through(stacks, "keep") + bytes_through(stacks, "grow") - total), 0.05 * total)
        for function, size in live.items():
            self.assertLess(abs(bytes_through(stacks, function) - size), 0.05 * total, function)
        self.assertEqual(bytes_through(stacks, "drop_soon"), 0)

    def test_strings(self):
        self.check("strings", "kill", 128 + signal.SIGKILL)

    def test_buffers(self):
        self.check("buffers", "kill", 128 + signal.SIGKILL)

    def test_threads(self):
        self.check("threads", "exit", 7)

    def test_churn_and_peak(self):
        with tempfile.TemporaryDirectory() as folder:
            hummock("profile", "--churn", "--bytes", "8K", "--pprof", folder + "/p", "--quiet", "--lib", LIBRARY, "--",
                    TARGET, "known", "strings", "kill", status=137)
            profile = pprof(folder + "/p")
        self.assertEqual(profile["default"], "alloc_space")
        dropped = sum(values["alloc_space"] for names, values in profile["samples"] if any("drop_soon" in n for n in names))
        blocks = sum(values["alloc_objects"] for names, values in profile["samples"] if any("drop_soon" in n for n in names))
        self.assertLess(abs(dropped - 400000 * 500), 0.05 * 400000 * 500)
        self.assertLess(abs(blocks - 400000), 0.05 * 400000)

    def test_lifetimes(self):
        with tempfile.TemporaryDirectory() as folder:
            done = hummock("profile", "--lifetime", "--bytes", "8K", "--html", folder + "/h", "--lib", LIBRARY, "--",
                           TARGET, "lives")
            self.assertRegex(done.stderr, r"(?m)^profile_target \(\d+\): \S+ freed, a sample in 8.0K$")
            rows = {m[3]: m.groups() for m in re.finditer(
                r"(?m)^ +(\S+) +\S+% +< (\S+ m?s) +< \S+ m?s +\d+%  (?:::)?(\w+) \(target.cc:\d+\)$", done.stderr)}
            self.assertEqual(rows["drop_soon"][1], "0.1 ms", done.stderr)
            self.assertNotIn(rows["hold_for_a_while"][1], ("0.1 ms", "1 ms", "10 ms"), done.stderr)
            self.assertNotIn("keep", rows)
            for function in ("drop_soon", "hold_for_a_while"):
                self.assertAlmostEqual(float(rows[function][0].rstrip("M")), 19.1, delta=2, msg=done.stderr)
            done = hummock("profile", "--lifetime", "--pprof", folder + "/p", "--", TARGET, "lives", status=2)
            self.assertIn("--lifetime", done.stderr)

    def test_children_of_fork_have_their_own(self):
        done = hummock("profile", "--live", "--bytes", "8K", "--lib", LIBRARY, "--", TARGET, "fork", 3)
        self.assertRegex(done.stderr, r"and [23] more processes: ")
        true = sum(20 + i % 300 for i in range(50000)) * 3
        with tempfile.TemporaryDirectory() as folder:
            hummock("profile", "--live", "--bytes", "8K", "--folded", folder + "/f", "--quiet", "--lib", LIBRARY, "--",
                    "sh", "-c", f"{TARGET} fork 2; {TARGET} fork 1")
            self.assertLess(abs(bytes_through(folded(folder + "/f"), "keep") - true), 0.05 * true)

    def test_status_and_words(self):
        done = hummock("profile", "--lib", LIBRARY, "--", "sh", "-c", "exit 5", status=5)
        self.assertIn("no process has taken a sample", done.stderr)
        done = hummock("profile", "--lib", LIBRARY, "--", "/nonexistent", status=127)
        self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), done.stderr)
        self.assertIn("name a process", hummock("profile", status=2).stderr)
        self.assertIn("there is no process", hummock("profile", "nobody-has-this-name", status=1).stderr)
        hummock("profile", "--live", "--churn", "1", status=2)
        done = hummock("profile", os.getpid(), status=1)
        self.assertIn("it does not run on Hummock", done.stderr)

    def test_run_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            done = hummock("run", "--lib", LIBRARY, "--conf", "profile_bytes:8K", "--profile", "--", TARGET, "known",
                           "strings", "exit", status=7)
            self.assertIn("live at the peak", done.stderr)
            done = hummock("run", "--lib", LIBRARY, f"--profile={folder}/p.pb.gz", "--", TARGET, "known", "buffers",
                           "exit", status=7)
            self.assertEqual(done.stderr, "")
            self.assertEqual(pprof(folder + "/p.pb.gz")["types"], COLUMNS)


class KilledByItsGroup(MemoryGroup):
    def test_the_profile_is_whole(self):
        limit = 64 << 20
        folder = self.make(limit)
        with tempfile.TemporaryDirectory() as place:
            hummock("profile", "--live", "--bytes", "16K", "--folded", place + "/f", "--quiet", "--lib", LIBRARY, "--", "sh",
                    "-c", f"echo $$ >{folder}/cgroup.procs; exec {TARGET} hoard", status=128 + signal.SIGKILL)
            kept = bytes_through(folded(place + "/f"), "keep")
        self.assertGreater(kept, 0.6 * limit)  # the profile is of the group, too
        self.assertLess(kept, 1.05 * limit)
