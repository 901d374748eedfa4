"""Limits in a control group."""

import os
import pathlib
import subprocess
import unittest

from support import LIBRARY, TARGET, CALM, hummock


class Group(unittest.TestCase):
    """In a control group of 512 MiB: a program whose bursts fit in, but not with what is kept after them."""

    def setUp(self):
        groups = dict(line.split(":", 2)[1:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines())
        if "memory" in groups:
            self.folder = pathlib.Path("/sys/fs/cgroup/memory" + groups["memory"], f"hummock-{os.getpid()}")
            limit = "memory.limit_in_bytes"
        else:
            self.folder = pathlib.Path("/sys/fs/cgroup" + groups.get("", "/"), f"hummock-{os.getpid()}")
            limit = "memory.max"
        try:
            self.folder.mkdir()
            self.addCleanup(self.folder.rmdir)
            (self.folder / limit).write_text(str(512 << 20))
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error}")

    def run_with(self, **options):
        env = dict(CALM, LD_PRELOAD=LIBRARY, **{f"HUMMOCK_{k.upper()}": v for k, v in options.items()})
        return subprocess.run(["sh", "-c", f"echo $$ >{self.folder}/cgroup.procs; exec {TARGET} burst"], env=env).returncode

    def test_it_lives_within_its_group(self):
        self.assertEqual(self.run_with(limit_soft="90%"), 0)
        self.assertEqual(self.run_with(limit_hard="80%"), 0)
