"""The files that profiles are written to."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from pprof_file import pprof
from support import CALM, COLUMNS, LIBRARY, TARGET, folded, hummock


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.path = cls.folder + "/"
        hummock("profile", "--live", "--bytes", "8K", "--quiet", "--lib", LIBRARY, "--pprof", cls.path + "p.pb.gz",
                "--folded", cls.path + "f", "--speedscope", cls.path + "s.json", "--html", cls.path + "h.html", "--",
                TARGET, "known", "threads", "kill", status=137)
        cls.total = sum(size for _, size in folded(cls.path + "f"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_pprof(self):
        profile = pprof(self.path + "p.pb.gz")
        self.assertEqual(profile["types"], COLUMNS)
        self.assertEqual(profile["default"], "inuse_space")
        self.assertEqual(profile["strings"][0], "")
        live = sum(values["inuse_space"] for _, values in profile["samples"])
        self.assertLess(abs(live - self.total), 100)
        for names, _ in profile["samples"]:
            self.assertFalse(any("hummock::" in name for name in names), names)

    @unittest.skipUnless(shutil.which("go"), "no go tool pprof")
    def test_pprof_reads_it(self):
        command = ["go", "tool", "pprof", "-top", "-unit=B", self.path + "p.pb.gz"]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(CALM, GOFLAGS="-mod=mod"))
        if "no such tool" in done.stderr:
            self.skipTest("go has no pprof")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)\bkeep$")
        shown = int(re.search(r"of (\d+)B total", done.stdout).group(1))
        self.assertLess(abs(shown - self.total), 100)

    @unittest.skipUnless(shutil.which("go"), "no go tool pprof")
    def test_pprof_reads_what_the_library_writes(self):
        path = self.path + "text.heap"
        code = ("import ctypes; h = ctypes.CDLL(None); assert h.hummock_profile_start(4096) == 0; "
                "x = [str(i) * 9 for i in range(100000)]; assert h.hummock_profile_stop() == 0; "
                f"assert h.hummock_profile_write(b'{path}') == 0")
        subprocess.run([sys.executable, "-c", code], check=True, env=dict(CALM, LD_PRELOAD=LIBRARY))
        done = subprocess.run(["go", "tool", "pprof", "-top", "-unit=B", path], capture_output=True, text=True, env=CALM)
        if "no such tool" in done.stderr:
            self.skipTest("go has no pprof")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="ascii") as file:
            live = int(file.readline().split()[3])
        self.assertEqual(int(re.search(r"of (\d+)B total", done.stdout).group(1)), live)

    def test_speedscope(self):
        with open(self.path + "s.json", encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(document["$schema"], "https://www.speedscope.app/file-format-schema.json")
        frames = document["shared"]["frames"]
        self.assertEqual([profile["name"] for profile in document["profiles"]], ["live", "asked for", "peak"])
        for profile in document["profiles"]:
            self.assertEqual((profile["type"], profile["unit"]), ("sampled", "bytes"))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertEqual(sum(profile["weights"]), profile["endValue"] - profile["startValue"])
            self.assertTrue(all(0 <= number < len(frames) for sample in profile["samples"] for number in sample))
        self.assertLess(abs(document["profiles"][0]["endValue"] - self.total), 100)
        keeps = [frame for frame in frames if "keep" in frame["name"]]
        self.assertTrue(keeps and keeps[0]["file"].endswith("target.cc") and keeps[0]["line"] > 0)

    def test_html(self):
        with open(self.path + "h.html", encoding="utf-8") as file:
            page = file.read()
        self.assertNotRegex(page, r"(?i)\b(src|href)\s*=|https?://|@import|url\(")
        data = json.loads(re.search(r"(?m)^const data = (\{.*\});$", page).group(1))
        live = sum(values[0] for _, values in data["stacks"])
        self.assertLess(abs(live - self.total), 100)
        self.assertIn('type="search"', page)
        if shutil.which("node"):
            script = re.search(r"(?s)<script>(.*)</script>", page).group(1)
            subprocess.run(["node", "--check", "-"], input=script, text=True, check=True)

    def test_diff(self):
        other = self.path + "other.pb.gz"
        hummock("profile", "--live", "--bytes", "8K", "--quiet", "--lib", LIBRARY, "--pprof", other, "--", TARGET,
                "known", "buffers", "kill", status=137)
        done = hummock("profile", "--diff", self.path + "p.pb.gz", other)
        first, _, *lines = done.stdout.splitlines()
        self.assertRegex(first, r"^live: \S+, then \S+: [+-]?\S+$")
        self.assertTrue(any(re.search(r"^ +\+\S+ +\+\d+  .*grow", line) for line in lines), done.stdout)
        self.assertTrue(any(re.search(r"^ +-\S+ +-\d+  .*keep", line) for line in lines), done.stdout)
        same = hummock("profile", "--diff", other, other).stdout
        self.assertEqual(len(same.splitlines()), 2)

    def test_a_file_that_cannot_be_written(self):
        done = hummock("profile", "--lib", LIBRARY, "--bytes", "8K", "--folded", "/dev/full", "--html",
                       self.path + "page", "--", TARGET, "known", "strings", "exit", status=7)
        self.assertIn("/dev/full cannot be written", done.stderr)
        self.assertGreater(os.path.getsize(self.path + "page"), 1000)  # the other one is
        done = hummock("profile", "--pprof", TARGET, "--lib", LIBRARY, "--", "echo", "ran", status=125)
        self.assertEqual((done.stdout, done.stderr),
                         ("", f"hummock profile: {TARGET} is a program or a library, and is not written over\n"))
        for path, why in ((self.path + "none/x", "No such file or directory"), (self.path, "it is a folder")):
            done = hummock("profile", "--html", path, "--lib", LIBRARY, "--", "echo", "ran", status=125)  # told before it runs
            self.assertEqual((done.stdout, done.stderr), ("", f"hummock profile: {path} cannot be written: {why}\n"))
