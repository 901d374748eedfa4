"""Limits and memory pressure in a control group."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from memory_group import MemoryGroup
from support import LIBRARY, TARGET, CALM, Target


class Limits(MemoryGroup):
    """In a control group of 512 MiB: a program whose bursts fit in, but not with what is kept after them."""

    def run_in(self, folder, **options):
        env = dict(CALM, LD_PRELOAD=LIBRARY, **{f"HUMMOCK_{k.upper()}": v for k, v in options.items()})
        return subprocess.run(["sh", "-c", f"echo $$ >{folder}/cgroup.procs; exec {TARGET} burst"], env=env).returncode

    def test_it_lives_within_its_group(self):
        folder = self.make(512 << 20)
        self.assertEqual(self.run_in(folder, limit_soft="90%"), 0)
        self.assertEqual(self.run_in(folder, limit_hard="80%"), 0)


READER = """
import os, sys
room = bytearray(1 << 20)
while True:
    with open(sys.argv[1], "rb", buffering=0) as file:
        while file.readinto(room):
            pass
"""


class Pressure(MemoryGroup):
    """Readers of a file that is larger than their group: each page that comes takes the place of another."""

    def stalled(self):
        return int(pathlib.Path("/proc/pressure/memory").read_text().split("total=")[1].split()[0])

    def resident(self, target):
        return int(pathlib.Path(f"/proc/{target.pid}/statm").read_text().split()[1]) * 4096

    def press(self, folder, file):
        def enter():
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        reader = subprocess.Popen([sys.executable, "-S", "-c", READER, file], env=CALM, preexec_fn=enter)

        def end():
            reader.kill()
            reader.wait()
        self.addCleanup(end)

    def test_an_idle_program_gives_free_memory_back(self):
        try:
            self.stalled()
        except OSError as error:
            self.skipTest(f"the kernel tells of no memory pressure: {error}")
        folder = self.make(128 << 20)
        under = ["env", "-u", "LD_PRELOAD", "sh", "-c",
                 f'echo $$ >{folder}/cgroup.procs; LD_PRELOAD={LIBRARY} exec "$0" "$@"']
        with tempfile.NamedTemporaryFile(dir=".") as file, \
                Target("leave_free", 40, under=under, background="on", decay_ms="1h", dirty_max="1G") as target:
            for _ in range(300):
                file.write(bytes(1 << 20))
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.assertGreater(self.resident(target), 40 << 20)
            for _ in range(4):
                self.press(folder, file.name)
            before = self.stalled()
            # Three seconds of waiting in all are more than the trigger needs; the minutes are against hangs.
            for _ in range(1200):
                if self.resident(target) < 12 << 20:
                    return
                if self.stalled() - before > 30_000_000:
                    self.fail(f"it kept {self.resident(target) >> 20} MiB")
                time.sleep(0.1)
            self.skipTest("there was no memory pressure: is the file in memory alone?")
