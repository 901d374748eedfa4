#!/usr/bin/env python3
"""`hummock profile`, used as people use it.

Usage: profile.py TOOL LIBRARY TARGET known|process|files|hostile
"""

import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from pprof_file import pprof

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from memory_group import MemoryGroup

TOOL, LIBRARY, TARGET = sys.argv[1:4]
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}
PATIENCE = ["--wait", "20000"]  # against hangs alone
SAMPLES = slice(88, 96)  # of the head: include/hummock/profile.h
COLUMNS = ["inuse_objects", "inuse_space", "alloc_objects", "alloc_space", "peak_objects", "peak_space"]


def hummock(*arguments, status=0, **options):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, errors="replace", env=CALM,
                          **options)
    if status is not None and done.returncode != status:
        raise AssertionError(f"hummock {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def folded(path):
    """(names from the outermost, bytes) of each line."""
    with open(path, encoding="utf-8") as file:
        lines = [line.rsplit(" ", 1) for line in file.read().splitlines()]
    return [(stack.split(";"), int(size)) for stack, size in lines]


def bytes_through(stacks, function):
    return sum(size for names, size in stacks if any(function in name for name in names))


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


class Served:
    def __init__(self, *command, **options):
        env = dict(CALM, LD_PRELOAD=LIBRARY, **options)
        self.process = subprocess.Popen(command or [TARGET, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = str(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Process(unittest.TestCase):
    def test_a_running_process(self):
        with Served() as served:
            done = hummock("profile", served.pid, "--seconds", "1", "--bytes", "16K", "--churn", *PATIENCE)
            self.assertRegex(done.stdout, rf"^profile_target \({served.pid}\): \S+ asked for in some \d+ blocks within ")
            self.assertIn("drop_soon (target.cc:", done.stdout)
            again = hummock("profile", served.pid, "--seconds", "0.5", *PATIENCE).stdout
            self.assertIn("keep (target.cc:", again)
            self.assertNotIn("drop_soon (target.cc:", hummock("profile", "profile_target", "--seconds", "0.2", *PATIENCE).stdout
                             .split("\n", 3)[2])

    def test_files_are_those_that_the_process_sees(self):
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespace of mounts can be made here")
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/program"
            shutil.copy(TOOL, path)  # what stands there for all others
            with Served("unshare", "-m", "sh", "-c", f"mount --bind {TARGET} {path} && exec {path} serve") as served:
                done = hummock("profile", served.pid, "--seconds", "0.5", "--bytes", "16K", *PATIENCE)
            self.assertRegex(done.stdout, r"keep \(target.cc:\d+\)")

    def test_it_stops_when_nobody_looks(self):
        with Served() as served:
            for _ in range(3):
                hummock("profile", served.pid, "--seconds", "0", *PATIENCE)
            samples = [self.samples(served.pid)]
            time.sleep(0.3)
            samples.append(self.samples(served.pid))
            self.assertEqual(*samples)

    def samples(self, pid):
        """The head's `samples` (include/hummock/profile.h), once `on` is 0."""
        for _ in range(500):
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                try:
                    if os.readlink(path) != "/memfd:hummock-profile (deleted)":
                        continue
                except FileNotFoundError:
                    continue
                with open(path, "rb") as file:
                    head = file.read(4096)
                if int.from_bytes(head[20:24], "little") == 0:
                    return int.from_bytes(head[SAMPLES], "little")
            time.sleep(0.02)
        raise AssertionError("the profiler is still on")

    def test_on_from_the_start_and_not_stopped(self):
        with Served(HUMMOCK_PROFILE="16K") as served:
            for _ in range(2):
                done = hummock("profile", served.pid, "--seconds", "0.2", *PATIENCE)
                self.assertIn("a sample in 16", done.stdout)
                self.assertIn("keep (target.cc:", done.stdout)

    def test_interrupted(self):
        with Served() as served:
            tool = subprocess.Popen([TOOL, "profile", served.pid, "--seconds", "1000", "--bytes", "16K", *PATIENCE],
                                    stdout=subprocess.PIPE, env=CALM)
            self.samples_at_least(tool.pid, 5)
            tool.send_signal(signal.SIGINT)
            output = tool.communicate()[0].decode()
            self.assertEqual(tool.returncode, 0)
            self.assertIn("keep (target.cc:", output)

    def samples_at_least(self, pid, count):
        """Where that process has the profile open: the target, or the tool."""
        for _ in range(5000):
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                try:
                    if os.readlink(path) != "/memfd:hummock-profile (deleted)":
                        continue
                    with open(path, "rb") as file:
                        if int.from_bytes(file.read(4096)[SAMPLES], "little") >= count:
                            return
                except FileNotFoundError:
                    pass
            time.sleep(0.02)
        raise AssertionError("there are no samples")

    def test_the_process_is_killed_meanwhile(self):
        with Served() as served:
            tool = subprocess.Popen([TOOL, "profile", served.pid, "--seconds", "1000", "--bytes", "16K", *PATIENCE],
                                    stdout=subprocess.PIPE, env=CALM)
            self.samples_at_least(tool.pid, 50)
            served.process.kill()
            served.process.wait()
            output = tool.communicate()[0].decode()
            self.assertEqual(tool.returncode, 0)
            self.assertIn("keep (target.cc:", output)

    def test_refusals(self):
        for options, why in [({"HUMMOCK_CHECKED": "on"}, "checked mode"), ({"HUMMOCK_OBSERVE": "off"}, "no page")]:
            with Served(**options) as served:
                done = hummock("profile", served.pid, *PATIENCE, status=1)
                self.assertIn(why, done.stderr)


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
        done = hummock("profile", "--lib", LIBRARY, "--bytes", "8K", "--folded", "/dev/full", "--", TARGET, "known",
                       "strings", "exit", status=1)
        self.assertIn("/dev/full cannot be written", done.stderr)
        for path in (self.path + "none/x", self.path):  # told before the program runs
            done = hummock("profile", "--html", path, "--lib", LIBRARY, "--", "echo", "ran", status=1)
            self.assertEqual((done.stdout, done.stderr), ("", f"hummock profile: {path} cannot be written\n"))


class Hostile(unittest.TestCase):
    """What stands in another process's memory, or in a file, may be anything."""

    def test_broken_profiles_of_pprof(self):
        rng = random.Random(7)
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/p.pb.gz"
            hummock("profile", "--bytes", "64K", "--quiet", "--lib", LIBRARY, "--pprof", path, "--", TARGET, "known",
                    "strings", "kill", status=137)
            with gzip.open(path) as file:
                good = file.read()
            for _ in range(25):
                data = bytearray(good)
                for _ in range(rng.randrange(1, 20)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                if rng.randrange(3) == 0:
                    del data[rng.randrange(20, len(data)):]
                with open(folder + "/bad", "wb") as file:
                    file.write(bytes(data) if rng.randrange(2) else gzip.compress(bytes(data))[:rng.randrange(10, len(data))])
                done = hummock("profile", "--diff", path, folder + "/bad", status=None)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertNotRegex(done.stdout, r"[\x00-\x09\x0b-\x1f\x7f]")  # nothing that a terminal obeys

    def test_a_process_that_writes_nonsense(self):
        # A program that keeps overwriting its own profile, through the descriptor that it was given.
        code = r"""
import mmap, os, random, struct
fd, _ = map(int, os.environ["HUMMOCK_RUN_PROFILE"].split(":"))
size = os.fstat(fd).st_size // 256
rng = random.Random(int(os.environ["SEED"]))
memory = mmap.mmap(fd, size)
keep = [bytearray(5000) for _ in range(3000)]
head = bytes(memory[0:4096])
for _ in range(300):
    at = rng.randrange(4096, size - 16000)
    memory[at:at + 8000] = rng.randbytes(8000)
stacks = 4096 + 512 * 256
for i in range(2000):
    sums = [rng.getrandbits(64) for _ in range(8)]
    depth = rng.choice([3, 64, 65, 1 << 31])
    struct.pack_into("<QQQQQQQQIIII", memory, stacks + 144 * i, *sums, 1, rng.getrandbits(32), rng.getrandbits(20), depth)
more = [bytearray(5000) for _ in range(3000)]
del keep, more
memory[24:400] = rng.randbytes(376)
known = rng.choice([20, 72])
memory[0:known] = head[0:known]
os.kill(os.getpid(), 9)
"""
        for seed in range(5):
            with tempfile.TemporaryDirectory() as folder:
                command = [TOOL, "profile", "--bytes", "1K", "--lib", LIBRARY, "--pprof", folder + "/p", "--html",
                           folder + "/h", "--", sys.executable, "-c", code]
                done = subprocess.run(command, capture_output=True, text=True, env=dict(CALM, SEED=str(seed)), errors="replace")
                self.assertEqual(done.returncode, 137, done.stderr)


def main():
    part = sys.argv.pop(4)
    parts = {"known": (Known, KilledByItsGroup), "process": (Process,), "files": (Files,), "hostile": (Hostile,)}
    suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, parts[part]))
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)


if __name__ == "__main__":
    main()
