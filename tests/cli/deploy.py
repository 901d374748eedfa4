#!/usr/bin/env python3
"""The recipes of docs/running.md: units are verified by systemd, where it is there; the document shows the files.

Usage: deploy.py TOOL LIBRARY SOURCE
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL, LIBRARY = map(os.path.realpath, sys.argv[1:3])
SOURCE = pathlib.Path(sys.argv[3])
DEPLOY = SOURCE / "examples/deploy"


def verify(unit):
    return subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True,
                          timeout=600, check=False, env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"})


class Deploy(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_the_unit(self):
        text = (DEPLOY / "hummock-demo.service").read_text()
        unit = self.folder / "hummock-demo.service"
        unit.write_text(text.replace("/usr/local/bin/hummock", f'"{TOOL}"'))
        done = verify(unit)
        self.assertNotIn("hummock-demo", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        unit.write_text(text.replace("ExecStart=/usr/local/bin/hummock", "ExecStart=/nowhere/hummock"))
        self.assertIn("hummock-demo", verify(unit).stderr)  # it does look

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_the_drop_in(self):
        unit = self.folder / "redis-server.service"
        unit.write_text("[Service]\nExecStart=/bin/cat\n")
        shutil.copytree(DEPLOY / "redis-server.service.d", str(unit) + ".d")
        done = verify(unit)
        self.assertNotIn("redis-server", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_document_shows_what_the_files_say(self):
        text = (SOURCE / "docs/running.md").read_text(encoding="utf-8")
        drop_in = (DEPLOY / "redis-server.service.d/hummock.conf").read_text()
        self.assertIn("\n".join(line for line in drop_in.splitlines() if not line.startswith("#")), text)
        dockerfile = (DEPLOY / "Dockerfile").read_text()
        for line in re.search(r"## Docker\n\n```\n(.*?)```", text, re.S)[1].splitlines():
            self.assertIn(line, dockerfile.splitlines())

    def test_started_as_the_unit_does_it_is_the_program(self):
        """The chain of the unit: a shell that becomes `hummock run`, which becomes the program."""
        with subprocess.Popen([TOOL, "run", "--", "sh", "-c", "echo $$; cat /proc/$$/comm; exec cat /proc/self/maps"],
                              stdout=subprocess.PIPE, text=True) as child:
            lines = child.stdout.read().splitlines()
            self.assertEqual(child.wait(timeout=600), 0)
        self.assertEqual((int(lines[0]), lines[1]), (child.pid, "sh"))
        self.assertTrue(any(os.path.realpath(LIBRARY) in line for line in lines[2:]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
