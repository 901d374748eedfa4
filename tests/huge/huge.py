#!/usr/bin/env python3
"""Large pages behind the heap: on which pages blocks stand, what follows a denial, what fork does.

Usage: huge.py PROBE LIBRARY transparent|set_aside|random
       huge.py hummock-bench-work LIBRARY frames
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import huge_pool  # noqa: E402
import preload  # noqa: E402

PROBE, LIBRARY, PART = sys.argv[1:4]
LIBRARY = preload.name_of(LIBRARY)
MIB = 1024  # KiB, as smaps counts
THP = huge_pool.thp_mode()


class Done:
    def __init__(self, process, log):
        self.status, self.errors, self.log = process.returncode, process.stderr, log
        self.output = process.stdout
        self.figures = dict(line.split("=", 1) for line in process.stdout.splitlines() if "=" in line)

    def __getitem__(self, name):
        return int(self.figures.get(name, 0))


def run(conf, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        env = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_")}
        env.update(LD_PRELOAD=LIBRARY, HUMMOCK_CONF=conf, HUMMOCK_LOG=folder + "/%p.log")
        process = subprocess.run([PROBE, *map(str, arguments)], env=env, capture_output=True, text=True,
                                 timeout=1500, check=False)
        logs = [path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(folder).glob("*.log"))]
    return Done(process, "\n".join(logs))


@unittest.skipUnless(PART == "transparent", "another part")
class Transparent(unittest.TestCase):
    def test_off(self):
        done = run("huge_pages:off", "heap", 60)
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertEqual(done["here.AnonHugePages"], 0)
        if THP != "none":
            self.assertIn(" nh", " " + done.figures["here.flags"])
        self.assertEqual((done["full.advised"], done["full.pinned"]), (0, 0))

    def test_thp(self):
        done = run("huge_pages:thp", "heap", 60)
        self.assertEqual((done.status, done.errors), (0, ""))
        if THP in ("madvise", "always"):
            self.assertGreaterEqual(done["here.AnonHugePages"], 2 * MIB)
            self.assertGreaterEqual(done["full.advised"], 60 * MIB)
            self.assertIn(" Alloc THP (", done.log)
        else:
            self.assertIn("Alloc THP failed -> SP", done.log)

    def test_a_small_program_pays_nothing_by_default(self):
        done, without = run("", "heap", 4), run("huge_pages:off", "heap", 4)
        self.assertEqual(done["full.AnonHugePages"], 0)
        self.assertEqual(done["full.advised"], 0)
        self.assertLess(done["full.Rss"], without["full.Rss"] + 512)

    @unittest.skipUnless(THP in ("madvise", "always"), "no transparent huge pages")
    def test_a_large_heap_gets_them_by_default(self):
        done = run("", "heap", 500, "stay")
        self.assertEqual((done.status, done.errors), (0, ""))
        # In a fiftieth of the time: how many, the machine decides.
        self.assertGreaterEqual(done["after.AnonHugePages"], 8 * MIB)
        self.assertGreaterEqual(done["after.advised"], done["after.AnonHugePages"])
        self.assertIn(" Collapse (", done.log)
        self.assertNotIn("Alloc THP", done.log)

    @unittest.skipUnless(THP in ("madvise", "always"), "no transparent huge pages")
    def test_they_cost_no_memory_by_default(self):
        done, without = run("", "heap", 500, "free"), run("huge_pages:off", "heap", 500, "free")
        self.assertLess(done["full.Rss"], without["full.Rss"] + 24 * MIB)
        self.assertLess(done["after.Rss"], without["after.Rss"] + 24 * MIB)

    def test_what_is_hardly_used_stays_small_by_default(self):
        # 300 threads have a byte of one block of each size class, beside a large heap.
        done, without = run("", "heap", 400, "threads"), run("huge_pages:off", "heap", 400, "threads")
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertLess(done["after.Rss"], without["after.Rss"] + 16 * MIB)

    @unittest.skipUnless(THP in ("madvise", "always"), "no transparent huge pages")
    def test_parts_are_given_back_by_default_too(self):
        done, without = run("", "heap", 500, "part"), run("huge_pages:off", "heap", 500, "part")
        self.assertLess(done["after.Rss"], without["after.Rss"] * 1.1 + 24 * MIB)

    @unittest.skipUnless(THP in ("madvise", "always"), "no transparent huge pages")
    def test_asked_for_they_go_back_whole(self):
        done = run("huge_pages:thp", "heap", 200, "free")
        self.assertLess(done["after.Rss"], done["full.Rss"] - 120 * MIB)
        # What is left is not in pieces: all of the heap's memory stands on huge pages.
        self.assertGreater(done["after.AnonHugePages"] + 16 * MIB, done["after.Rss"])
        # Each purge is a multiple of 2 MiB.
        sizes = [int(kib) for kib in re.findall(r"(\d+)k at:0x[0-9a-f]+ Purge", done.log)]
        self.assertTrue(sizes)
        self.assertEqual({kib % 2048 for kib in sizes}, {0})

    def test_disabled_for_the_process(self):
        done = run("huge_pages:thp", "disable", PROBE, "heap", 60)
        if done.status == 77:
            self.skipTest("PR_SET_THP_DISABLE is not there")
        self.assertEqual(done.status, 0)
        self.assertEqual(done["full.AnonHugePages"], 0)
        self.assertEqual(done["full.advised"], 0)
        if THP in ("madvise", "always"):
            self.assertIn("PR_SET_THP_DISABLE is set", done.log)

    @unittest.skipUnless(THP in ("madvise", "always"), "no transparent huge pages")
    def test_the_cap(self):
        done = run("huge_pages:thp,huge_max:64M", "heap", 200)
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertLessEqual(done["full.advised"], 64 * MIB)
        self.assertLessEqual(done["full.AnonHugePages"], 64 * MIB)
        self.assertIn("huge_max is reached", done.log)

    @unittest.skipUnless(THP in ("madvise", "always"), "no transparent huge pages")
    def test_a_reserve_is_there_at_once_and_stays(self):
        done = run("huge_pages:thp,huge_reserve:100M", "heap", 1, "free")
        self.assertEqual((done.status, done.errors), (0, ""))
        for when in ("full", "after"):
            self.assertGreaterEqual(done[when + ".AnonHugePages"], 100 * MIB)

    def test_a_reserve_beyond_all_memory(self):
        done = run("huge_pages:thp,huge_reserve:1T,huge_max:200M", "heap", 1)
        self.assertEqual(done.status, 0)
        self.assertLess(done["full.Rss"], 260 * MIB)


def in_pool():
    return huge_pool.read("nr_hugepages") - huge_pool.read("free_hugepages")


@unittest.skipUnless(PART == "set_aside", "another part")
class SetAside(unittest.TestCase):
    def test_blocks_stand_on_them(self):
        with huge_pool.pool(64):
            done = run("huge_pages:2m", "heap", 60)
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertEqual(done["here.KernelPageSize"], 2048)
        self.assertGreaterEqual(done["full.Private_Hugetlb"], 60 * MIB)
        self.assertEqual(done["full.pinned"], done["full.Private_Hugetlb"])
        self.assertIn(" Alloc LP (", done.log)
        self.assertEqual(done["full.refusals"], 0)

    def test_denial(self):
        with huge_pool.pool(0):
            done = run("huge_pages:2m", "heap", 100)
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertEqual(done["full.pinned"], 0)
        refused = re.findall(r"Alloc LP failed -> THP \(.*\) ENOMEM.*next try in (\d+) ms", done.log)
        self.assertTrue(refused, done.log)
        waits = [int(ms) for ms in refused]
        self.assertEqual(waits, [100 * 2**i for i in range(len(waits))])
        self.assertEqual(done["full.refusals"], len(waits))
        if THP in ("madvise", "always"):
            self.assertGreaterEqual(done["here.AnonHugePages"], 2 * MIB)

    def test_a_pool_that_ends_in_the_middle(self):
        with huge_pool.pool(20):
            done = run("huge_pages:2m", "heap", 100)
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertEqual(done["full.pinned"], 32 * MIB)
        self.assertIn("Alloc LP failed -> THP", done.log)

    def test_required_and_denied(self):
        with huge_pool.pool(0):
            done = run("huge_pages:require", "heap", 1)
        self.assertEqual(done.status, 125)
        self.assertEqual(len(done.errors.splitlines()), 1)
        self.assertIn("huge_pages:require", done.errors)
        self.assertIn("sysctl vm.nr_overcommit_hugepages=", done.errors)

    def test_required_beyond_the_cap(self):
        with huge_pool.pool(64):
            for more in ("huge_max:1M", "huge_max:40M,huge_reserve:64M"):
                done = run("huge_pages:require," + more, "heap", 1)
                self.assertEqual(done.status, 125)
                self.assertEqual(len(done.errors.splitlines()), 1)
                self.assertIn("more than huge_max allows", done.errors)

    def test_required_and_served(self):
        with huge_pool.pool(64):
            done = run("huge_pages:require", "heap", 60)
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertEqual(done["here.KernelPageSize"], 2048)
        self.assertNotIn("a region", done.log)

    def test_required_and_at_an_end(self):
        with huge_pool.pool(16):
            done = run("huge_pages:require", "heap", 100)
        self.assertEqual(done.status, 3)  # malloc returned null
        self.assertEqual(len(done.errors.splitlines()), 1)
        self.assertIn("no more large pages", done.errors)

    def test_a_child_has_what_its_parent_had(self):
        # No page is left for parent or child to copy what they share.
        for pages in (16, 64):
            with huge_pool.pool(pages):
                done = run("huge_pages:2m", "heap", 100, "fork")
            self.assertEqual((done.status, done.errors), (0, ""))
            self.assertEqual((done["child"], done["kept"]), (0, 1))
            self.assertGreaterEqual(done["full.pinned"], 32 * MIB)

    def test_trim_gives_them_back(self):
        with huge_pool.pool(80):
            done = run("huge_pages:2m", "heap", 100, "trim")
        self.assertEqual((done.status, done.errors, done["trimmed"], done["again"]), (0, "", 1, 1))
        self.assertGreaterEqual(done["full.pinned"], 100 * MIB)
        # A region's first 2 MiB hold its headers.
        self.assertLess(done["after.pinned"], 24 * MIB)
        self.assertEqual(done["after.pinned"], done["after.Private_Hugetlb"])

    def test_they_are_kept_without_a_trim(self):
        with huge_pool.pool(80):
            done = run("huge_pages:2m", "heap", 100, "free")
        self.assertEqual(done["after.pinned"], done["full.pinned"])

    def test_a_reserve(self):
        with huge_pool.pool(80):
            done = run("huge_pages:2m,huge_reserve:100M", "heap", 1)
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertEqual(done["full.pinned"], 128 * MIB)  # whole regions

    def test_a_reserve_that_can_be_had_in_part(self):
        with huge_pool.pool(80):
            done = run("huge_pages:2m,huge_reserve:256M", "heap", 1)
        self.assertEqual(done.status, 0)
        self.assertIn("128 of 256 MiB", done.errors)
        self.assertEqual(done["full.pinned"], 128 * MIB)

    def test_a_reserve_that_the_cap_or_the_mode_forbids(self):
        with huge_pool.pool(80):
            done = run("huge_pages:2m,huge_reserve:100M,huge_max:64M", "heap", 1)
            self.assertEqual((done.status, done["full.pinned"]), (0, 64 * MIB))
            self.assertIn("64 of 128 MiB", done.errors)
            done = run("huge_pages:off,huge_reserve:100M", "heap", 1)
            self.assertEqual((done.status, done["full.pinned"]), (0, 0))
            self.assertEqual(done.errors, "hummock: huge_reserve: huge_pages:off takes none\n")

    def test_the_cap(self):
        with huge_pool.pool(80):
            done = run("huge_pages:2m,huge_max:40M", "heap", 100)
        self.assertEqual((done.status, done.errors), (0, ""))
        self.assertEqual(done["full.pinned"], 32 * MIB)
        self.assertLessEqual(done["full.pinned"] + done["full.advised"], 40 * MIB)

    def test_pages_of_1_gib_that_are_not_there(self):
        with huge_pool.pool(32):
            done = run("huge_pages:1g", "heap", 20)
        self.assertEqual((done.status, done.errors), (0, ""))
        if done["full.pinned"] < 1024 * MIB:  # none was set aside
            self.assertIn("Alloc LP failed -> LP 2M", done.log)
            self.assertEqual(done["full.pinned"], 32 * MIB)

    def test_the_pool_is_as_it_was(self):
        before = in_pool()
        with huge_pool.pool(64):
            run("huge_pages:2m", "heap", 60)
        self.assertEqual(in_pool(), before)


MODES = ("huge_pages:off", "huge_pages:auto", "huge_pages:thp", "huge_pages:2m")


def random_reads(rounds=3):
    """Prints the gain, best of the rounds, which take turns, and below it what the same reads gain in plain
    mappings: all that the machine gives. Times are not asserted."""
    plain = {"one mapping, small": "small", "one mapping, huge": "huge"}
    one, several, last = {}, {}, {}
    for _ in range(rounds):
        for what in (*MODES, *plain):
            with huge_pool.pool(640):
                last[what] = done = run("" if what in plain else what, "random", 1024, plain.get(what, ""))
            one[what] = min(one.get(what, 1e9), float(done.figures["ns"]))
            several[what] = min(several.get(what, 1e9), float(done.figures["ns_of_several"]))
    for what, done in last.items():
        slow = "one mapping, small" if what in plain else MODES[0]
        print(f"{what:18} {one[what]:6.1f} ns a read one by one, {one[slow] / one[what]:4.2f} times as fast; "
              f"{several[what]:5.1f} eight at a time, {several[slow] / several[what]:4.2f} times; "
              f"resident {done['full.Rss'] // MIB} MiB, huge {done['full.AnonHugePages'] // MIB} transparent, "
              f"{done['full.Private_Hugetlb'] // MIB} set aside", flush=True)


def frames(rounds=7):
    """Prints what a game's frame loop gains: the median of the rounds' gains, which take turns."""
    took = {conf: [] for conf in MODES}
    arguments = ["frames", "--threads", "1", "--size", "512M", "--seconds", "1", "--settle", "0"]
    for _ in range(rounds):
        for conf in MODES:
            with huge_pool.pool(400):
                result = json.loads(run(conf, *arguments).output)
            took[conf].append((result["cpu_seconds"] / result["operations"], result["latency"]))
    for conf in MODES:
        gain = statistics.median(off[0] / on[0] for off, on in zip(took[MODES[0]], took[conf]))
        tail = {p: min(latency[p] for _, latency in took[conf]) / 1000 for p in ("p50", "p99", "p999")}
        print(f"{conf:16} {100 * (gain - 1):+5.1f} % frames (others measured 6-9 % in Arma 3); a frame "
              f"{tail['p50']:.0f} us, p99 {tail['p99']:.0f}, p99.9 {tail['p999']:.0f}", flush=True)


if __name__ == "__main__":
    if PART != "transparent" and not huge_pool.can_change():
        print("skipped: only root may change the pool of huge pages")
        sys.exit(77)
    if PART == "set_aside" and huge_pool.read("nr_hugepages") != 0:
        print("skipped: pages are set aside here for somebody")
        sys.exit(77)
    if PART == "random":
        random_reads()
    elif PART == "frames":
        frames()
    else:
        unittest.main(argv=sys.argv[:1], verbosity=1)
