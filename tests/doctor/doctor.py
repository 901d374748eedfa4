#!/usr/bin/env python3
"""hummock doctor: what it says of machines that are described to it, and of this one.

Usage: doctor.py TOOL SUPPORT [real]
"""
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

TOOL = sys.argv[1]
sys.path.insert(0, sys.argv[2])
import huge_pool  # noqa: E402

REAL = "real" in sys.argv[3:]
THP = "sys/kernel/mm/transparent_hugepage/"
POOL = "sys/kernel/mm/hugepages/hugepages-2048kB/"
GIANTS = "sys/kernel/mm/hugepages/hugepages-1048576kB/"
LIMITS = "Limit                     Soft Limit           Hard Limit           Units\n"

# A machine where nothing is to be done.
GOOD = {
    "proc/sys/kernel/osrelease": "6.12.3-amd64\n",
    "proc/meminfo": "MemTotal:       16777216 kB\nMemAvailable:   12000000 kB\nCommitLimit:     8388608 kB\n"
                    "Committed_AS:     191496 kB\n",
    "proc/self/status": "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nTHP_enabled:\t1\n",
    "proc/self/limits": LIMITS + "Max locked memory         unlimited            unlimited            bytes\n"
                                 "Max address space         unlimited            unlimited            bytes\n"
                                 "Max data size             unlimited            unlimited            bytes\n",
    "proc/self/cgroup": "0::/user/app\n",
    "proc/sys/vm/overcommit_memory": "0\n",
    "proc/sys/vm/max_map_count": "65530\n",
    "proc/sys/vm/zone_reclaim_mode": "0\n",
    "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "sys/devices/system/node/online": "0\n",
    THP + "enabled": "always [madvise] never\n",
    THP + "defrag": "always defer defer+madvise [madvise] never\n",
    POOL + "nr_hugepages": "64\n",
    POOL + "free_hugepages": "64\n",
    POOL + "resv_hugepages": "0\n",
    POOL + "surplus_hugepages": "0\n",
    POOL + "nr_overcommit_hugepages": "0\n",
    GIANTS + "nr_hugepages": "1\n",
}


def examine(changes):
    """The exit status and the findings by topic on a machine like GOOD, but for `changes`."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {**GOOD, **changes}.items():
            if text is None:
                continue
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return look("--root", root)


def look(*arguments):
    done = subprocess.run([TOOL, "doctor", "--json", *arguments], capture_output=True, text=True, timeout=1500, check=False)
    answer = json.loads(done.stdout)
    assert answer["status"] == done.returncode, (answer["status"], done.returncode)
    return done.returncode, {finding["topic"]: finding for finding in answer["findings"]}


@unittest.skipIf(REAL, "another part")
class Described(unittest.TestCase):
    def finding(self, topic, level, changes, fix=None, state=None):
        status, all_of_them = examine(changes)
        self.assertIn(topic, all_of_them)
        found = all_of_them[topic]
        self.assertEqual(found["level"], level, found)
        self.assertEqual(status, 1 if level == "finding" else 0)
        if level != "fine":
            self.assertTrue(found["consequence"])
        if fix is not None:
            self.assertEqual(found.get("fix", ""), fix)
        if state is not None:
            self.assertIn(state, found["state"])
        others = [f["topic"] for f in all_of_them.values() if f["level"] == "finding" and f["topic"] != topic]
        self.assertEqual(others, [])

    def test_nothing_to_be_done(self):
        status, all_of_them = examine({})
        self.assertEqual(status, 0)
        self.assertEqual({f["level"] for f in all_of_them.values()}, {"fine"})
        self.assertGreaterEqual(len(all_of_them), 13)

    def test_transparent(self):
        enabled = "/" + THP + "enabled"
        self.finding("transparent huge pages", "finding", {THP + "enabled": "always madvise [never]"},
                     "echo madvise > " + enabled, "never")
        self.finding("transparent huge pages", "note", {THP + "enabled": "[always] madvise never"},
                     "echo madvise > " + enabled)
        self.finding("transparent huge pages", "finding", {THP + "enabled": None}, "")
        own = THP + "hugepages-2048kB/enabled"  # goes over the other
        self.finding("transparent huge pages", "finding", {own: "always inherit madvise [never]"}, "echo madvise > /" + own,
                     "never")
        self.finding("transparent huge pages", "fine", {own: "always inherit [madvise] never", THP + "enabled": "[never]"})
        self.finding("transparent huge pages", "fine", {own: "always [inherit] madvise never"}, "", "madvise")
        self.finding("defragmentation for huge pages", "finding",
                     {THP + "defrag": "always defer defer+madvise madvise [never]"},
                     "echo defer+madvise > /" + THP + "defrag")
        self.finding("defragmentation for huge pages", "note", {THP + "defrag": "[always] defer madvise never"})
        self.finding("transparent huge pages of this session", "finding",
                     {"proc/self/status": GOOD["proc/self/status"].replace("THP_enabled:\t1", "THP_enabled:\t0")}, "")

    def test_set_aside(self):
        topic = "reserved huge pages"
        none = {POOL + "nr_hugepages": "0", POOL + "free_hugepages": "0"}
        self.finding(topic, "note", none, "sysctl -w vm.nr_overcommit_hugepages=1024", "0 of 2 MiB")  # by default not needed
        for name, value in (("HUMMOCK_CONF", "decay_ms:1,huge_pages:2m"), ("HUMMOCK_HUGE_PAGES", "require"),
                            ("HUMMOCK_SPACE_HUGE", "try"), ("HUMMOCK_SPACE_WITH", "lock+tryhuge")):
            with unittest.mock.patch.dict(os.environ, {name: value}):
                self.finding(topic, "finding", none)
        with unittest.mock.patch.dict(os.environ, {"HUMMOCK_CONF": "huge_pages:thp"}):
            self.finding(topic, "note", none)
        self.finding(topic, "note", {POOL + "free_hugepages": "15"}, state="15 free")
        self.finding(topic, "note", {POOL + "resv_hugepages": "60"})  # promised to others
        self.finding(topic, "fine", {**none, POOL + "nr_overcommit_hugepages": "100"})
        self.finding(topic, "note", {**none, POOL + "nr_overcommit_hugepages": "100", POOL + "surplus_hugepages": "90"},
                     "sysctl -w vm.nr_overcommit_hugepages=1124")
        self.finding(topic, "note", {name: None for name in GOOD if name.startswith(POOL)})
        self.finding("huge pages of 1 GiB", "note", {GIANTS + "nr_hugepages": "0"},
                     "echo 4 > /" + GIANTS + "nr_hugepages")

    def test_limits(self):
        def limits(name, value):
            kept = [line for line in GOOD["proc/self/limits"].splitlines() if not line.startswith(name)]
            return {"proc/self/limits": "\n".join(kept + [f"{name:25} {value:20} unlimited            bytes"]) + "\n"}

        self.finding("locked memory limit", "note", limits("Max locked memory", "8388608"), "ulimit -l unlimited", "8.0 MiB")
        with_right = GOOD["proc/self/status"].replace("CapEff:\t0000000000000000", "CapEff:\t000001fffeffffff")
        self.finding("locked memory limit", "fine",
                     {**limits("Max locked memory", "8388608"), "proc/self/status": with_right}, state="8.0 MiB")
        self.finding("address space limit", "finding", limits("Max address space", "1073741824"), "ulimit -v unlimited")
        self.finding("address space limit", "note", limits("Max address space", str(64 << 30)))
        self.finding("data limit", "finding", limits("Max data size", "1000000"), "ulimit -d unlimited")

    def test_memory(self):
        self.finding("overcommit", "finding", {"proc/sys/vm/overcommit_memory": "2"}, "sysctl -w vm.overcommit_memory=0",
                     "of 8.0 GiB promised")
        self.finding("overcommit", "fine", {"proc/sys/vm/overcommit_memory": "1"})
        self.finding("mappings of a process", "finding", {"proc/sys/vm/max_map_count": "1000"},
                     "sysctl -w vm.max_map_count=262144")
        self.finding("memory", "finding", {"proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 100000 kB\n"}, "")
        self.finding("memory nodes", "note", {"sys/devices/system/node/online": "0-3"}, "numactl --interleave=all program")
        self.finding("zone reclaim", "finding", {"proc/sys/vm/zone_reclaim_mode": "1"}, "sysctl -w vm.zone_reclaim_mode=0")

    def test_groups(self):
        topic, base = "memory limit of the group", "sys/fs/cgroup/"
        self.finding(topic, "fine", {base + "user/app/memory.max": "max"}, state="none")
        self.finding(topic, "note", {base + "user/app/memory.max": "2147483648", base + "user/app/memory.current": "1048576"},
                     state="2.0 GiB, 1.0 MiB used")
        # The group around it may be tighter.
        self.finding(topic, "note", {base + "user/app/memory.max": "2147483648", base + "user/memory.max": "1073741824"},
                     state="1.0 GiB")
        self.finding(topic, "finding", {base + "user/app/memory.max": "1000000000", base + "user/app/memory.current": "950000000"},
                     "echo 2000000000 > /sys/fs/cgroup/user/app/memory.max")
        self.finding(topic, "note", {"proc/self/cgroup": "9:name=systemd:/\n4:memory:/a/b\n0::/\n",
                                     base + "memory/a/b/memory.limit_in_bytes": "1073741824"}, state="1.0 GiB")

    def test_kernels(self):
        self.finding("kernel", "fine", {"proc/sys/kernel/osrelease": "6.1.0-13-amd64"})
        self.finding("kernel", "note", {"proc/sys/kernel/osrelease": "5.15.0"}, state="5.15.0")
        self.finding("kernel", "note", {"proc/sys/kernel/osrelease": "5.4.0"})
        self.finding("kernel", "note", {"proc/sys/kernel/osrelease": "strange"})

    def test_nothing_to_look_at(self):
        with tempfile.TemporaryDirectory() as root:
            done = subprocess.run([TOOL, "doctor", "--root", root], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no proc folder", done.stderr)

    def test_the_library_is_tried(self):
        _, found = look()
        self.assertEqual(found["library"]["level"], "fine", found["library"])
        with tempfile.TemporaryDirectory() as folder:
            tool = os.path.join(folder, "hummock")
            shutil.copy(TOOL, tool)
            for library in (None, "/etc/passwd"):
                if library:
                    shutil.copy(library, os.path.join(folder, "libhummock.so.1"))
                done = subprocess.run([tool, "doctor", "--json"], capture_output=True, text=True, check=False)
                found = {each["topic"]: each for each in json.loads(done.stdout)["findings"]}
                self.assertEqual((done.returncode, found["library"]["level"]), (1, "finding"), found["library"])

    def test_text(self):
        done = subprocess.run([TOOL, "doctor"], capture_output=True, text=True, timeout=1500, check=False)
        self.assertIn(done.returncode, (0, 1))
        self.assertEqual("!!" in done.stdout.rpartition("\n")[0].split("The lines")[0], done.returncode == 1)


def parameter(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


@contextlib.contextmanager
def kept(path):
    """The file as it was, after all. Of a list with one word in brackets that word."""
    before = parameter(path)
    value = before.partition("[")[2].partition("]")[0] or before
    try:
        yield
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(value)


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


@unittest.skipUnless(REAL, "another part")
class This(unittest.TestCase):
    """This machine: its state is named as it is, and the commands do what is said of them."""

    def test_it_says_what_is(self):
        _, found = look()
        self.assertIn(os.uname().release, found["kernel"]["state"])
        if huge_pool.thp_mode() != "none":
            self.assertEqual(found["transparent huge pages"]["state"], huge_pool.thp_mode())
        self.assertIn(f"{huge_pool.read('nr_hugepages')} of 2 MiB", found["reserved huge pages"]["state"])
        limit = subprocess.run(["sh", "-c", "ulimit -l"], capture_output=True, text=True, check=True).stdout.strip()
        shown = found["locked memory limit"]["state"]
        if limit == "unlimited":
            self.assertEqual(shown, limit)
        elif int(limit) >= 1024:
            self.assertAlmostEqual(float(shown.split()[0]), int(limit) / 1024 ** (1 if int(limit) < 1 << 20 else 2), 0)

    def fixes(self, topic, path, bad, after=None):
        with kept(path):
            write(path, bad)
            if bad not in parameter(path):
                self.skipTest(f"{path} cannot be set here")
            status, found = look()
            self.assertEqual((status, found[topic]["level"]), (1, "finding"), found[topic])
            subprocess.run(found[topic]["fix"], shell=True, check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(look()[1][topic]["level"], after or "fine")

    def test_the_pool(self):
        if huge_pool.read("nr_hugepages") != 0:
            self.skipTest("pages are reserved here")
        with unittest.mock.patch.dict(os.environ, {"HUMMOCK_HUGE_PAGES": "2m"}):
            self.fixes("reserved huge pages", huge_pool.FOLDER + "nr_overcommit_hugepages", "0")

    def test_transparent(self):
        if huge_pool.thp_mode() == "none":
            self.skipTest("no transparent huge pages")
        self.fixes("transparent huge pages", "/" + THP + "enabled", "never")
        own = "/" + THP + "hugepages-2048kB/enabled"
        if os.path.exists(own):
            self.fixes("transparent huge pages", own, "never")
        self.fixes("defragmentation for huge pages", "/" + THP + "defrag", "never")

    def test_map_count(self):
        self.fixes("mappings of a process", "/proc/sys/vm/max_map_count", "60000")

    def test_limits(self):
        command = f"ulimit -S -v 2000000; {shlex.quote(TOOL)} doctor --json"
        found = json.loads(subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout)
        limit, = [f for f in found["findings"] if f["topic"] == "address space limit"]
        self.assertEqual(limit["level"], "finding")
        command = f"ulimit -S -v 2000000; {limit['fix']}; {shlex.quote(TOOL)} doctor --json"
        found = json.loads(subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout)
        limit, = [f for f in found["findings"] if f["topic"] == "address space limit"]
        self.assertEqual(limit["level"], "fine")


if __name__ == "__main__":
    if REAL and (not huge_pool.can_change() or shutil.which("sysctl") is None):
        print("skipped: only root may change the machine, by sysctl")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
