"""A control group whose memory is limited."""

import os
import pathlib
import unittest


class MemoryGroup(unittest.TestCase):
    def make(self, bytes):
        """A control group that may have so much; its folder."""
        groups = dict(line.split(":", 2)[1:] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines())
        if "memory" in groups:
            folder = pathlib.Path("/sys/fs/cgroup/memory" + groups["memory"], f"hummock-{os.getpid()}")
            limit = "memory.limit_in_bytes"
        else:
            folder = pathlib.Path("/sys/fs/cgroup" + groups.get("", "/"), f"hummock-{os.getpid()}")
            limit = "memory.max"
        try:
            folder.mkdir()
            self.addCleanup(folder.rmdir)
            (folder / limit).write_text(str(bytes))
        except OSError as error:
            self.skipTest(f"no control group can be made here: {error}")
        return folder
