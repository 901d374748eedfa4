#!/usr/bin/env python3
"""`hummock record` and `hummock replay`, used as people use them.

Usage: record.py TOOL LIBRARY TARGET WORKER calls|ends|replay|hostile
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

TOOL, LIBRARY, TARGET, WORKER = sys.argv[1:5]
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}
# "target (12): 170000 calls in 5 threads, 85000 blocks and 2 resizes of 20.1M in all"
LISTED = re.compile(r"(.+) \((\d+)\): (\d+) calls in (\d+) threads?, (\d+) blocks and (\d+) resizes of (\S+) in all")
ODD = 12347


def hummock(*arguments, status=0, **options):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, errors="replace", env=CALM,
                          timeout=600, check=False, **options)
    if status is not None and done.returncode != status:
        raise AssertionError(f"hummock {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def record(trace, *command, status=0):
    return hummock("record", "-o", trace, "--lib", LIBRARY, "--", *command, status=status)


def listed(trace):
    lines = hummock("replay", trace, "--list").stdout.splitlines()
    return [(m[1], *map(int, m.groups()[1:6])) for m in map(LISTED.fullmatch, lines)]


def replay(trace, *options, status=0):
    return hummock("replay", trace, "--lib", LIBRARY, "--worker", WORKER, "--settle", "0", *options, status=status)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.trace = folder.name + "/t.trace"


class Calls(InFolder):
    """What the program calls is what the trace has."""

    def test_all_calls(self):
        done = record(self.trace, TARGET)
        made = int(done.stdout)
        self.assertIn("none was dropped", done.stderr)
        [(name, _, calls, threads, blocks, resizes)] = listed(self.trace)
        self.assertEqual(name, "record_target")
        self.assertEqual(threads, 5)
        self.assertEqual(resizes, 2)
        # And those of libc itself: of threads, of output.
        self.assertGreaterEqual(blocks, made + 6)
        self.assertLess(blocks, made + 6 + 100)
        self.assertGreaterEqual(calls, 2 * made + 14)

    def test_misuse_that_a_handler_leaves(self):
        record(self.trace, TARGET)
        [(_, _, calls, _, blocks, resizes)] = listed(self.trace)
        record(self.trace, TARGET, "misuse")
        [(_, _, more_calls, _, more_blocks, more_resizes)] = listed(self.trace)
        self.assertEqual((more_blocks - blocks, more_resizes - resizes), (1000, 1000))
        self.assertEqual(more_calls - calls, 3000)

    def test_bytes(self):
        record(self.trace, TARGET)
        done = replay(self.trace, "--with", "hummock", "--repeat", "1", "--json", self.folder + "/r.json")
        recorded = int(re.search(r"recorded: .* (\d+) bytes", done.stdout)[1])
        with open(self.folder + "/r.json", encoding="utf-8") as file:
            run = json.load(file)["results"][0]["runs"][0]
        self.assertEqual(run["bytes"], recorded)
        known = 4 * sum(16 + i % 500 for i in range(20000)) + ODD * (3 + 1 + 40 + 3) + 3331 + (16 << 20)
        self.assertGreaterEqual(recorded, known)
        self.assertLess(recorded, known + 200000)


class Ends(InFolder):
    """However the program ends, and whatever it starts."""

    def test_killed(self):
        done = record(self.trace, TARGET, "kill", status=128 + 9)
        self.assertIn("ended by SIGKILL", done.stderr)
        self.assertGreaterEqual(listed(self.trace)[0][2], 2 * int(done.stdout) + 12)

    def test_status(self):
        record(self.trace, TARGET, "status", status=7)

    def test_programs(self):
        record(self.trace, "sh", "-c", f"{TARGET}; exec {TARGET}")
        self.assertEqual([name for name, *_ in listed(self.trace)].count("record_target"), 2)

    def test_fork(self):
        plain = record(self.trace, TARGET)
        blocks = listed(self.trace)[0][4]
        self.assertNotIn("fork", plain.stderr)
        done = record(self.trace, TARGET, "fork")
        self.assertIn("1 fork", done.stderr)
        self.assertLess(listed(self.trace)[0][4], blocks + 100)

    def test_no_room_for_the_trace(self):
        """The program goes on to its end, whenever the file takes no more, and whatever takes the file."""
        long = f"for i in 1 2 3 4 5 6 7 8 9 10; do {TARGET} || exit; done; exit 7"
        done = record("/dev/full", "sh", "-c", long, status=7)
        self.assertRegex(done.stderr, r"(?m)^hummock record: /dev/full cannot be written: No space left on device")
        self.assertEqual(len(done.stdout.split()), 10)
        self.assertEqual(record("/dev/full", TARGET, status=125).stderr.count("\n"), 1)
        read, write = os.pipe()
        os.close(read)
        done = hummock("record", "-o", f"/dev/fd/{write}", "--lib", LIBRARY, "--", "sh", "-c", long, status=7,
                       pass_fds=[write])
        os.close(write)
        self.assertEqual(len(done.stdout.split()), 10)
        self.assertRegex(done.stderr, "(?m)^hummock record: /dev/fd/\\d+ cannot be written: Broken pipe")
        done = subprocess.run(["sh", "-c", f"ulimit -f 1000; {TOOL} record -o {self.trace} -- {TARGET}"],
                              capture_output=True, text=True, env=CALM, timeout=600, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (125, "hummock record: no memory for the calls: File too large\n"))

    def test_wrong_use(self):
        self.assertRegex(record(self.trace, "no-such-program", status=127).stderr, r"\A.*not found.*\n\Z")
        done = record(self.folder + "/none/t", TARGET, status=125)
        self.assertRegex(done.stderr, r"^hummock record: \S+/none/t cannot be written: .*\n$")
        self.assertEqual(done.stdout, "")
        hummock("record", status=2)


class Replay(InFolder):
    """What is replayed is what was recorded, on each allocator."""

    def setUp(self):
        super().setUp()
        record(self.trace, TARGET)

    def test_counts_and_report(self):
        page, result, lines = (self.folder + name for name in ("/r.html", "/r.json", "/r.csv"))
        done = replay(self.trace, "--with", "glibc,hummock", "--repeat", "2", "--html", page, "--json", result,
                      "--csv", lines)
        recorded = re.search(r"^recorded: (.*)$", done.stdout, re.M)[1]
        self.assertEqual(re.findall(r"^replayed: (.*) on (\w+)$", done.stdout, re.M),
                         [(recorded, "hummock"), (recorded, "system")])
        self.assertRegex(done.stdout, r"(?m)^best for time( \(of the processor, .*\))?: (hummock|system) \(")
        self.assertRegex(done.stdout, r"(?m)^leanest: (hummock|system) \(")
        self.assertRegex(done.stdout, r"(?m)^Hummock is [12] of 2 \(\d\.\d\d of the best\) for time")
        with open(result, encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual(len(document["verdict"]), 3)
        if jsonschema is not None:
            schema = pathlib.Path(__file__).parents[2] / "bench" / "schema.json"
            jsonschema.validate(document, json.loads(schema.read_text(encoding="utf-8")))
        for one in document["results"]:
            self.assertGreaterEqual(len(one["runs"]), 2)  # those beside other load are repeated
            self.assertGreater(len(one["series"]), 1)
            run = one["runs"][0]
            self.assertGreaterEqual(run["peak_bytes"] + (1 << 20), run["live_bytes"])
        self.assertIn("replayed", hummock("bench", "table", result, "--by", "workload").stdout.replace("record_target", "replayed"))
        self.assertGreater(os.path.getsize(page), 1000)
        with open(lines, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 3)

    def test_touch(self):
        peaks = []
        for touch in ("none", "all"):
            replay(self.trace, "--with", "glibc", "--repeat", "1", "--touch", touch, "--json", self.folder + "/r")
            with open(self.folder + "/r", encoding="utf-8") as file:
                peaks.append(json.load(file)["results"][0]["runs"][0]["peak_bytes"])
        self.assertLess(peaks[0] + (8 << 20), peaks[1])  # a block of 16 MiB that lives all along

    def test_allocators_by_group(self):
        """`apt` stands for those that are installed, or for none."""
        done = replay(self.trace, "--with", "apt", "--repeat", "1", status=None)
        self.assertIn(done.returncode, (0, 2), done.stderr)
        if done.returncode == 2:
            self.assertEqual(done.stderr, "hummock replay: --with: none of these allocators is installed\n")
        self.assertNotRegex(done.stdout, "(?m)^replayed: .* on (hummock|system)$")

    def test_a_full_disk_loses_neither_the_table_nor_other_files(self):
        lines = self.folder + "/r.csv"
        done = replay(self.trace, "--with", "hummock", "--repeat", "1", "--json", "/dev/full", "--csv", lines, status=None)
        self.assertIn("/dev/full cannot be written", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("best for time", done.stdout)
        with open(lines, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 2)

    def test_an_earlier_result_stays_where_nothing_runs(self):
        earlier = self.folder + "/r.json"
        pathlib.Path(earlier).write_text("earlier", encoding="utf-8")
        replay(self.trace, "--with", "hummock", "--json", earlier, "--csv", self.folder + "/none/x", status=2)
        self.assertEqual(pathlib.Path(earlier).read_text(encoding="utf-8"), "earlier")

    def test_narrow_window(self):
        replay(self.trace, "--with", "hummock", "--repeat", "1", "--window", "200")

    def test_wrong_use(self):
        for options, said in ((["--with", "hummok"], "hummock"), (["--process", "1"], "--process"),
                              (["--touch", "some"], "--touch"), (["--html", self.folder + "/none/x"], "none/x")):
            done = replay(self.trace, *options, status=2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(said, done.stderr)


class Hostile(InFolder):
    """Files that are no traces, or are no longer."""

    def check(self, data):
        path = self.folder + "/bad"
        with open(path, "wb") as file:
            file.write(data)
        done = hummock("replay", path, "--list", status=None)
        self.assertIn(done.returncode, (0, 2), done.stderr)
        if done.returncode == 2:
            self.assertRegex(done.stderr, rf"\Ahummock replay: {path} .*\n\Z")
        return done.returncode

    def test_no_traces(self):
        for data in (b"", b"HUM", b"HUMTRACE", b"HUMTRACE\x02\0\0\0", b"\0" * 4096, os.urandom(4096)):
            self.assertEqual(self.check(data), 2)
        for path in ("/nowhere", "/"):
            done = hummock("replay", path, status=2)
            self.assertRegex(done.stderr, rf"\Ahummock replay: {path} .*\n\Z")

    def test_cut_and_garbled(self):
        record(self.trace, TARGET)
        with open(self.trace, "rb") as file:
            whole = file.read()
        draw = random.Random(1)
        for _ in range(15):
            self.check(whole[:draw.randrange(len(whole))])
        refused = 0
        for _ in range(15):
            data = bytearray(whole)
            for _ in range(draw.choice((1, 1, 10))):
                data[draw.randrange(12, len(data))] ^= 1 << draw.randrange(8)
            refused += self.check(data) == 2
        self.assertGreater(refused, 10)  # zstd has a checksum of each frame

    def test_cut_is_replayed(self):
        record(self.trace, TARGET)
        calls = listed(self.trace)[0][2]
        os.truncate(self.trace, os.path.getsize(self.trace) * 4 // 5)
        self.assertLess(listed(self.trace)[0][2], calls)
        done = replay(self.trace, "--with", "hummock", "--repeat", "1")
        self.assertIn("the file is cut short", done.stderr)


if __name__ == "__main__":
    parts = {"calls": Calls, "ends": Ends, "replay": Replay, "hostile": Hostile}
    suite = unittest.TestLoader().loadTestsFromTestCase(parts[sys.argv[5]])
    sys.exit(0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1)
