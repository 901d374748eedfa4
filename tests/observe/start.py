"""What the page costs a process that starts."""

import pathlib
import subprocess
import tempfile
import unittest

from support import LIBRARY, CALM, hummock, Target, page_of


class Start(unittest.TestCase):
    def mappings(self, observe):
        with Target("idle", observe=observe) as target:
            return len(pathlib.Path(f"/proc/{target.pid}/maps").read_text().splitlines())

    def test_mappings(self):
        self.assertLessEqual(self.mappings("on") - self.mappings("off"), 2)

    def test_system_calls(self):
        """Its time is that of a few calls: by number, as time is not asserted. They take 25 microseconds."""
        def calls(observe):
            with tempfile.NamedTemporaryFile("r") as out:
                done = subprocess.run(["strace", "-f", "-o", out.name, "-E", "LD_PRELOAD=" + LIBRARY, "-E",
                                       "HUMMOCK_OBSERVE=" + observe, "/bin/true"], env=CALM, capture_output=True)
                if done.returncode != 0:
                    self.skipTest("strace does not work here")
                return len(out.read().splitlines())
        try:
            extra = calls("on") - calls("off")
        except FileNotFoundError:
            self.skipTest("strace is not there")
        self.assertGreater(extra, 0)
        self.assertLessEqual(extra, 10)

    def test_descriptors(self):
        with Target("idle") as target:
            own = page_of(target.pid)
            self.assertIsNotNone(own)
            self.assertGreaterEqual(int(own.rsplit("/", 1)[1]), 40)  # out of the program's way
        done = subprocess.run(["sh", "-c", "exec ls -l /proc/self/fd"], capture_output=True, text=True,
                              env=dict(CALM, LD_PRELOAD=LIBRARY))
        self.assertEqual(done.stdout.count("memfd:hummock"), 1)  # ls's own: that of sh ended with its program
