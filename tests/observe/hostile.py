"""What a process may do to whoever looks at it: pages that are none, odd names, rights that hide it. And what the
process's own output may meet."""

import contextlib
import mmap
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from support import CALM, LIBRARY, PATIENCE, TARGET, TOOL, Target, hummock, page_of

VERSION, SIZE, PID, TAKEN = 8, 12, 16, 96  # where they stand in the page

# A process that does not run on Hummock and shows a page all the same: that in the file, with its own number.
POSER = """
import ctypes, fcntl, os, struct, sys
page = bytearray(open(sys.argv[1], "rb").read())
page[16:20] = struct.pack("<I", os.getpid())
fd = os.memfd_create("hummock", os.MFD_ALLOW_SEALING)
os.write(fd, page)
fcntl.fcntl(fd, 1033, 2 | 4)  # F_ADD_SEALS: F_SEAL_SHRINK, F_SEAL_GROW
name = sys.argv[2].encode("latin-1")
ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
print("ready", flush=True)
sys.stdin.read()
"""


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Target("names") as target:
            target.stats()
            with open(page_of(target.pid), "rb") as page:
                cls.page = page.read()
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    @contextlib.contextmanager
    def poser(self, page, name="poser"):
        path = self.folder.name + "/page"
        with open(path, "wb") as file:
            file.write(page)
        process = subprocess.Popen([sys.executable, "-S", "-c", POSER, path, name], env=CALM, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(process.stdout.readline(), "ready\n")
            yield str(process.pid)
        finally:
            process.communicate()

    def changed(self, offset, bytes):
        return self.page[:offset] + bytes + self.page[offset + len(bytes):]

    def counts_at(self):
        """Where class_count stands: the one word of the table of counts, found by what the real page has there."""
        return TAKEN + 8 * 22

    def test_pages_of_other_versions(self):
        with self.poser(self.page) as pid:
            self.assertIn("poser", hummock("stats", pid, "--wait", "1").stdout)
        newer = self.changed(SIZE, struct.pack("<I", len(self.page) + 800)) + bytes(range(200)) * 4
        with self.poser(newer) as pid:
            self.assertIn("poser", hummock("stats", pid, "--wait", "1").stdout)
        for page in (self.changed(VERSION, struct.pack("<I", 2)), self.changed(SIZE, struct.pack("<I", 100))):
            with self.poser(page) as pid:
                for command in (("stats", pid), ("trim", pid), ("set", pid, "decay_ms=5"), ("top", pid)):
                    done = hummock(*command, "--wait", "1", status=None) if command[0] != "top" else None
                    if done is not None:
                        self.assertEqual(done.returncode, 1, command)
                        self.assertIn("of another version of Hummock", done.stderr)
                self.assertIn("of another version of Hummock", hummock("ps").stderr)

    def test_pages_that_are_broken(self):
        counts = self.counts_at()
        classes = counts + 16
        self.assertEqual(struct.unpack_from("<Q", self.page, classes)[0], 16)  # the smallest blocks but one
        pages = {"text": self.changed(32, b"x" * 16), "count": self.changed(counts, struct.pack("<I", 97)),
                 "magic": self.changed(0, b"HUMMPAGE"),
                 "one class twice": self.changed(classes + 48, self.page[classes:classes + 48])}
        for what, page in pages.items():
            with self.subTest(what), self.poser(page) as pid:
                self.assertIn("its page of figures is", hummock("stats", pid, "--wait", "1", status=1).stderr)
                self.assertRegex(hummock("ps").stderr, rf"process {pid} \(poser\): its page of figures is")

    def test_pages_of_any_bytes(self):
        rng = random.Random(int(os.environ.get("TEST_SEED", "1")))
        for _ in range(int(os.environ.get("OBSERVE_PAGES", "20"))):
            page = bytearray(self.page)
            for _ in range(rng.choice((1, 10, 1000))):
                struct.pack_into("<Q", page, rng.randrange(TAKEN // 8, len(page) // 8) * 8, rng.getrandbits(64))
            with self.poser(bytes(page)) as pid:
                for form in ((), ("--json",), ("--prometheus",)):
                    done = hummock("stats", pid, *form, "--wait", "1", status=None)
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    self.assertEqual(done.returncode == 1, "hummock stats: process" in done.stderr)

    def test_names_with_anything_in_them(self):
        with self.poser(self.page, "\x1b[2Jevil\"\\\x7f") as pid:
            for done in (hummock("stats", pid, "--wait", "1"), hummock("ps"),
                         hummock("stats", pid, "--prometheus", "--wait", "1")):
                self.assertNotRegex(done.stdout + done.stderr, "[\x00-\x09\x0b-\x1f\x7f]")
                self.assertIn("?[2Jevil", done.stdout)
        with self.poser(self.changed(0, b"HUMMPAGE"), "\x1b[2Jevil") as pid:
            said = hummock("ps").stderr
            self.assertIn("(?[2Jevil)", said)
            self.assertNotIn("\x1b", said)

    def test_promtool_takes_what_they_say(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not there")
        with self.poser(self.page, "a\"b\\c{}\n") as pid:
            metrics = hummock("stats", pid, "--prometheus", "--wait", "1").stdout
        done = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


class Rights(unittest.TestCase):
    """Who may look: by a copy of the tool in a place where all may go."""

    NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.folder = tempfile.mkdtemp(dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        for file in (TOOL, LIBRARY, TARGET):
            shutil.copy(os.path.realpath(file), self.folder)
        self.library = os.path.join(self.folder, os.path.basename(os.path.realpath(LIBRARY)))
        if subprocess.run([*self.NOBODY, self.place_of(TOOL), "--version"], capture_output=True).returncode != 0:
            self.skipTest("nobody else may run programs here")

    def place_of(self, file):
        return os.path.join(self.folder, os.path.basename(os.path.realpath(file)))

    def target(self, *arguments, under=()):
        return Target(*arguments, under=["env", "-u", "LD_PRELOAD", "-u", "OBSERVE_PLUGIN", *under, "env", "LD_PRELOAD=" + self.library],
                      program=self.place_of(TARGET))

    def look(self, pid, under):
        return subprocess.run([*under, self.place_of(TOOL), "stats", pid, *PATIENCE], capture_output=True, text=True,
                              cwd="/", env=CALM)

    def test_the_same_user_and_no_child_of_it(self):
        with self.target("threads", 1, under=["setsid", *self.NOBODY]) as target:
            done = self.look(target.pid, self.NOBODY)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.look(target.pid, ()).returncode, 0)

    def test_who_hides(self):
        with self.target("hidden", 1, under=self.NOBODY) as target:
            self.assertIn("it has rights of its own, or hides", self.look(target.pid, self.NOBODY).stderr)
            self.assertEqual(self.look(target.pid, ()).returncode, 0)

    def test_somebody_elses(self):
        with self.target("threads", 1) as target:
            self.assertIn("belongs to somebody else: try as root", self.look(target.pid, self.NOBODY).stderr)

    def test_root_without_the_right(self):
        with self.target("threads", 1, under=self.NOBODY) as target:
            done = self.look(target.pid, ["setpriv", "--bounding-set=-sys_ptrace"])
            self.assertIn("lacks the capability CAP_SYS_PTRACE", done.stderr)


class Output(unittest.TestCase):
    """Of programs that have no standard error or no room."""

    def run_on(self, *command, **options):
        env = dict(CALM, LD_PRELOAD=LIBRARY, **{f"HUMMOCK_{k.upper()}": v for k, v in options.items()})
        return subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(2))

    def test_a_closed_standard_error(self):
        """Its number is that of the next file which the program opens."""
        with tempfile.TemporaryDirectory() as folder:
            mine = folder + "/mine"
            program = f"import os; print(os.open({mine!r}, os.O_CREAT | os.O_WRONLY))"
            done = self.run_on(sys.executable, "-S", "-c", program, stats="exit", verbose="on", decay_ms="nonsense")
            self.assertEqual((done.returncode, done.stdout), (0, "2\n"))
            self.assertEqual(os.path.getsize(mine), 0)

    def test_a_full_disk(self):
        env = dict(CALM, LD_PRELOAD=LIBRARY, HUMMOCK_STATS="/dev/full")
        done = subprocess.run(["true"], env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^hummock: the statistics of process \d+ cannot be written to /dev/full whole")

    def test_the_tools_own_output(self):
        with Target("threads", 1) as target, open("/dev/full", "w") as full:
            for command in (["ps"], ["ps", "--json"], ["stats", target.pid, *PATIENCE]):
                done = subprocess.run([TOOL, *command], stdout=full, stderr=subprocess.PIPE, text=True, env=CALM)
                self.assertEqual(done.returncode, 1, command)
                self.assertIn("standard output cannot be written: No space left", done.stderr)
