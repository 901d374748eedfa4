"""What the commands say of a running process."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from support import TOOL, CALM, LIBRARY, TARGET, SOURCE, PATIENCE, hummock, Target, page_of, children_of


class Outside(unittest.TestCase):
    def check_sums(self, stats):
        totals = stats["totals"]
        blocks = sum(row["live_blocks"] * row["block_size"] for row in stats["classes"])
        self.assertEqual(totals["live"], blocks + totals["large_bytes"])
        self.assertEqual(totals["cached"], sum(row["cached"] for row in stats["threads"]))
        self.assertEqual(totals["threads"], len(stats["threads"]))
        self.assertEqual(totals["purged_pages"], sum(row["purged"] for row in stats["classes"]))
        for figure, column in (("drawn_bytes", "bytes"), ("drawn_blocks", "blocks")):
            self.assertEqual(totals[figure], sum(row[column] for row in stats["tags"]))
        for row in stats["classes"]:
            self.assertLessEqual(row["purged"] + row["untouched"], row["bytes"])

    def test_the_figures_are_those_of_what_lives(self):
        with Target("hold", 10000, 1000) as target:
            stats = target.stats()
        self.check_sums(stats)
        self.assertLess(stats["age_ms"], 60000)
        row = next(row for row in stats["classes"] if row["block_size"] == 1024)
        self.assertGreaterEqual(row["live_blocks"], 10000)
        self.assertLessEqual(row["live_blocks"], 10000 + 1100)  # what the thread has at hand
        self.assertLessEqual(stats["totals"]["live"], stats["totals"]["committed"])
        self.assertEqual(stats["totals"]["threads"], 1)
        self.assertEqual(stats["threads"][0]["id"], int(target.pid))
        self.assertEqual(stats["options"]["decay_ms"], "1000")

    def test_json_is_as_its_schema_says(self):
        import jsonschema
        schema = json.loads(pathlib.Path(SOURCE, "docs/figures.schema.json").read_text())
        with Target("threads", 3) as target:
            jsonschema.validate(target.stats(), schema)
            for line in hummock("ps", "--json").stdout.splitlines():
                jsonschema.validate(json.loads(line), schema)
        with tempfile.TemporaryDirectory() as folder:
            with Target("idle", stats=folder + "/stats-%p") as target:
                pass
            stats = json.loads(pathlib.Path(folder, "stats-" + target.pid).read_text())
            jsonschema.validate(stats, schema)
            self.assertEqual((stats["pid"], stats["program"]), (int(target.pid), "observe_target"))

    def test_names_tags_and_times(self):
        with Target("names") as target:
            stats = target.stats()
            text = hummock("stats", target.pid, *PATIENCE).stdout
            metrics = hummock("stats", target.pid, "--prometheus", *PATIENCE).stdout
        (heap,) = stats["heaps"]
        self.assertEqual(heap["name"], "requests")
        self.assertGreaterEqual(heap["live"], 1000 * 1000)
        (space,) = stats["spaces"]
        self.assertEqual((space["name"], space["bytes"], space["live_blocks"]), ("orders", 1 << 20, 0))
        drawn = {row["tag"]: row["bytes"] for row in stats["tags"]}
        self.assertLessEqual({0, 17, 18}, set(drawn))
        for tag in (17, 18):
            self.assertLess(abs(drawn[tag] - 112 * 10000 * (tag + 1)), 20000)
        timed = sum(row["calls"] for row in stats["slow_calls"]["below_ns"])
        self.assertGreater(timed, 10)  # of some 10,000, one in 256
        self.assertGreater(stats["slow_calls"]["total_ns"], 0)
        for words in ("requests", "orders", r"(?m)^ +18 +\d", "slow calls: half below"):
            self.assertRegex(text, words)
        self.assertRegex(metrics, r'(?m)^hummock_tag_drawn_bytes_total{.*tag="17"} \d+$')
        buckets = [int(count) for count in re.findall(r"(?m)^hummock_slow_call_seconds_bucket{.*} (\d+)$", metrics)]
        self.assertEqual(buckets, sorted(buckets))
        self.assertRegex(metrics, rf"(?m)^hummock_slow_call_seconds_count{{.*}} {buckets[-1]}$")

    def test_tables_and_metrics(self):
        with Target("threads", 2) as target:
            text = hummock("stats", target.pid, *PATIENCE).stdout
            self.assertRegex(text, rf"^observe_target \({target.pid}\), Hummock \d")
            self.assertRegex(hummock("ps").stdout, rf"(?m)^ +{target.pid} observe_target ")
            metrics = hummock("stats", target.pid, "--prometheus", *PATIENCE).stdout
        self.assertRegex(metrics, rf'(?m)^hummock_live_bytes{{pid="{target.pid}",program="observe_target",cgroup="[^"]*"}} \d+$')
        families = re.findall(r"(?m)^# TYPE (\w+) ", metrics)
        self.assertEqual([name for name, times in collections.Counter(families).items() if times > 1], [])

    def test_by_name(self):
        with Target("threads", 1) as target:
            lines = hummock("stats", "observe_target", "--json", *PATIENCE, status=None).stdout.splitlines()
            self.assertIn(int(target.pid), [json.loads(line)["pid"] for line in lines])

    def test_who_makes_no_call_is_told_of(self):
        with Target("idle") as target:
            done = hummock("stats", target.pid, "--wait", "1", status=1)
            self.assertRegex(done.stderr, rf"^hummock stats: process {target.pid}: .*no call")
        with Target("hold", 10, 1000) as target:
            target.stats()
            done = hummock("stats", target.pid, "--wait", "1")
            self.assertRegex(done.stdout, r"(now|as of [\d.]+ s ago)")

    def test_what_cannot_be_seen(self):
        self.assertRegex(hummock("stats", "999999999", status=1).stderr, "there is no such process|no process")
        self.assertRegex(hummock("stats", str(os.getpid()), status=1).stderr, "does not run on Hummock")
        self.assertRegex(hummock("stats", "no-such-program", status=1).stderr, "there is no process")
        with Target("threads", 1, observe="off") as target:
            self.assertIsNone(page_of(target.pid))
            self.assertRegex(hummock("stats", target.pid, status=1).stderr, "observe is off")

    def test_who_only_looks(self):
        with Target("threads", 1) as target:
            with open(page_of(target.pid), "rb"):
                self.assertIn("does not run on Hummock", hummock("stats", str(os.getpid()), status=1).stderr)
                done = hummock("ps")
            self.assertNotRegex(done.stdout + done.stderr, rf"\b{os.getpid()}\b")
            self.assertNotIn("(hummock)", done.stderr)

    def test_the_child_of_a_fork_has_its_own(self):
        with Target("fork") as target:
            child = target.said[0]
            parents = json.loads(hummock("stats", target.pid, "--json", *PATIENCE).stdout)
            childs = json.loads(hummock("stats", child, "--json", *PATIENCE).stdout)
            self.assertEqual((parents["pid"], childs["pid"]), (int(target.pid), int(child)))
            self.assertEqual([row["id"] for row in parents["threads"] if row["id"] in
                              [row["id"] for row in childs["threads"]]], [])

    def test_a_server_that_forks_a_thousand_workers(self):
        """They rest, and are told of in one line."""
        with Target("crew", 1000) as target:
            done = hummock("ps")
            self.assertLess(len(done.stderr.splitlines()), 100)
            self.assertRegex(done.stderr, r"(?m)^hummock ps: 1\d\d\d processes, the first of them \d+ \(.*\): it is a child of")
            target.stats()
            idle = children_of(target.pid)[500]
            self.assertIn("it is a child of fork", hummock("trim", idle, status=1).stderr)

    def test_descriptors_closed_blindly(self):
        with Target("close") as target:
            done = hummock("stats", target.pid, *PATIENCE, status=None)
            if os.geteuid() == 0:
                self.assertEqual(done.returncode, 0, done.stderr)
            else:
                self.assertRegex(done.stderr, "closed the descriptor")

    def test_again_and_again_until_the_processes_have_ended(self):
        """Also when one of them does not answer: a worker that rests since its fork."""
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy(TARGET, folder + f"/t{os.getpid()}")
            with Target("crew", 1, program=program) as target:
                command = [TOOL, "stats", os.path.basename(program), "--json", "--every", "100ms", "--wait", "100ms"]
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=CALM) as watching:
                    for _ in range(3):
                        self.assertEqual(str(json.loads(watching.stdout.readline())["pid"]), target.pid)
                        self.assertIn("it is a child of", watching.stderr.readline())
                    for pid in (*children_of(target.pid), target.pid):
                        os.kill(int(pid), signal.SIGKILL)
                    target.process.wait()
                    watching.communicate(timeout=600)
                    self.assertEqual(watching.returncode, 1)

    def test_times_that_are_none(self):
        for every in ("0", "-1", "1e99", "nan", "soon"):
            for command, option in (("stats", "--every"), ("spaces", "--every"), ("stats", "--wait")):
                if (every, option) != ("0", "--wait"):  # an answer now, or none
                    self.assertIn(f"{option}: {every} is not a time", hummock(command, str(os.getpid()), option, every, status=2).stderr)

    def test_nobody_runs_on_hummock(self):
        alone = ["unshare", "--pid", "--fork", "--mount-proc"]  # no process of other tests is seen there
        if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no PID namespace of its own")
        done = subprocess.run([*alone, TOOL, "ps"], capture_output=True, text=True, check=True)
        self.assertEqual(len(done.stdout.splitlines()), 1)
        self.assertEqual(done.stderr, "hummock ps: no process runs on Hummock; start one with: hummock run -- PROGRAM\n")
        done = subprocess.run([*alone, TOOL, "ps", "--json"], capture_output=True, text=True, check=True)
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        with Target("threads", 1) as target:
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", TOOL, "stats",
                                   target.pid], capture_output=True, text=True, cwd="/")
            if "Permission denied" in done.stderr and "setpriv" in done.stderr:
                self.skipTest("the tool stands where others may not go")
            self.assertEqual(done.returncode, 1)
            self.assertIn("belongs to somebody else", done.stderr)

    def test_other_namespaces(self):
        kinds = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--mount", "--net", "--ipc", "--uts"]
        unshare = ["env", "-u", "LD_PRELOAD", "unshare"]
        for chosen in (["--pid", "--fork", "--mount-proc", "--mount"], kinds):
            if os.geteuid() != 0 or subprocess.run([*unshare, *chosen, "true"], capture_output=True).returncode != 0:
                self.skipTest("new namespaces need root and a kernel that has them")
            under = [*unshare, *chosen, "env", "LD_PRELOAD=" + LIBRARY]
            with Target("threads", 3, under=under) as target:
                parent = target.pid
                (target.pid,) = children_of(parent)
                self.check_sums(target.stats())
                self.assertIn("\n " + target.pid.rjust(7) + " ", hummock("ps").stdout)
                hummock("set", target.pid, "decay_ms=77ms")
                hummock("trim", target.pid)
                self.assertEqual(target.stats()["options"]["decay_ms"], "77")
                self.assertIn("hummock_live_bytes", hummock("stats", target.pid, "--prometheus", *PATIENCE).stdout)
