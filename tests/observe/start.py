"""What the page costs a process that starts."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import TARGET, LIBRARY, CALM, hummock, Target, page_of


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

    def system_calls(self, *program, **options):
        with tempfile.NamedTemporaryFile("r") as out:
            pairs = [word for name, value in options.items() for word in ("-E", f"HUMMOCK_{name.upper()}={value}")]
            done = subprocess.run(["strace", "-f", "-o", out.name, "-E", "LD_PRELOAD=" + LIBRARY, *pairs, *program],
                                  env=CALM, capture_output=True, text=True)
            if done.returncode != 0:
                self.skipTest("strace does not work here")
            return out.read(), done.stderr

    @unittest.skipIf(shutil.which("strace") is None, "strace is not there")
    def test_names_of_regions(self):
        """A small program makes no call for them; where the kernel knows no names a large one makes one."""
        naming = r"(?m)^.*prctl\((?:PR_SET_VMA|0x53564d41), (?:PR_SET_VMA_ANON_NAME|0),.*$"
        self.assertEqual(re.findall(naming, self.system_calls("/bin/true")[0]), [])
        calls = re.findall(naming, self.system_calls(TARGET, "burst")[0])
        refused = [call for call in calls if "= -1" in call]
        self.assertEqual(len(refused), 1 if len(calls) == 1 else 0, calls)
        self.assertGreaterEqual(len(calls), 1)
        with Target("hold", 100, 1000000) as target:
            maps = pathlib.Path(f"/proc/{target.pid}/maps").read_text()
            self.assertEqual("[anon:hummock]" in maps, not refused)

    @unittest.skipIf(shutil.which("strace") is None, "strace is not there")
    def test_memory_pressure(self):
        """The background thread watches for it, or the text says that it cannot."""
        calls, said = self.system_calls("/bin/true", background="on", verbose="on")
        self.assertRegex(calls, r"open(at)?\(.*/proc/pressure/memory|memory\.pressure")
        watches = re.search(r"write\(\d+, \"some 100000 2000000[^\n]* = \d", calls) is not None
        self.assertEqual("the system does not tell of memory pressure" in said, not watches)

    def test_limit_on_the_size_of_files(self):
        """Under `ulimit -f` there is no page; the program runs, whatever it has written."""
        done = subprocess.run(["sh", "-c", f"ulimit -f 8; LD_PRELOAD={LIBRARY} exec seq 3"], capture_output=True, text=True,
                              env=dict(CALM, HUMMOCK_PROFILE="4K"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1\n2\n3\n", ""))
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["sh", "-c", f"ulimit -f 1; LD_PRELOAD={LIBRARY} exec seq 3"], capture_output=True, text=True,
                                  env=dict(CALM, HUMMOCK_CONF=f"stats:{folder}/figures.json,log:{folder}/log"))
            self.assertEqual((done.returncode, done.stdout), (0, "1\n2\n3\n"), done.stderr)

    def test_descriptors(self):
        with Target("idle") as target:
            own = page_of(target.pid)
            self.assertIsNotNone(own)
            self.assertGreaterEqual(int(own.rsplit("/", 1)[1]), 40)  # out of the program's way
        done = subprocess.run(["sh", "-c", "exec ls -l /proc/self/fd"], capture_output=True, text=True,
                              env=dict(CALM, LD_PRELOAD=LIBRARY))
        self.assertEqual(done.stdout.count("memfd:hummock"), 1)  # ls's own: that of sh ended with its program
