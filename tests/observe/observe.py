#!/usr/bin/env python3
"""Running processes, looked at and changed from outside by the command line tool.

Usage: observe.py TOOL LIBRARY TARGET SOURCE outside|requests|start|top|group|exporter|many
"""

import collections
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import random
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.parse
import urllib.request

TOOL, LIBRARY, TARGET, SOURCE = sys.argv[1:5]
PATIENCE = ["--wait", "20000"]  # against hangs alone: an answer comes in milliseconds
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}


def hummock(*arguments, status=0):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, env=CALM)
    if status is not None and done.returncode != status:
        raise AssertionError(f"hummock {arguments}: {done.returncode}, {done.stdout} {done.stderr}")
    return done


class Target:
    """A program on Hummock that ends with the `with`."""

    def __init__(self, *arguments, **options):
        env = dict(CALM, LD_PRELOAD=LIBRARY)
        env.update({f"HUMMOCK_{name.upper()}": str(value) for name, value in options.items()})
        self.process = subprocess.Popen([TARGET, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=env, bufsize=0)
        self.said = []
        while not self.said or self.said[-1] != "ready":
            line = self.process.stdout.readline()
            assert line, "the target ended early"
            self.said.append(line.decode().strip())
        self.pid = str(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.status = self.process.wait()
        self.process.stdout.close()

    def asked(self, *command):
        """What the tool prints; meanwhile the target, if it is one of those, makes calls by which it answers."""
        tool = subprocess.Popen([TOOL, *command, *PATIENCE], stdout=subprocess.PIPE, env=CALM)
        while tool.poll() is None:
            self.process.stdin.write(b"x")
            time.sleep(0.002)
        output = tool.communicate()[0]
        assert tool.returncode == 0, command
        return output

    def stats(self):
        return json.loads(self.asked("stats", self.pid, "--json"))


def page_of(pid):
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if os.readlink(path) == "/memfd:hummock (deleted)":
                return path
        except FileNotFoundError:
            pass
    return None


class Outside(unittest.TestCase):
    def check_sums(self, stats):
        totals = stats["totals"]
        blocks = sum(row["live_blocks"] * row["block_size"] for row in stats["classes"])
        self.assertEqual(totals["live"], blocks + totals["large_bytes"])
        self.assertEqual(totals["cached"], sum(row["cached"] for row in stats["threads"]))
        self.assertEqual(totals["threads"], len(stats["threads"]))
        self.assertEqual(totals["purged_pages"], sum(row["purged"] for row in stats["classes"]))
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
            with Target("idle", stats="exit", stats_file=folder + "/stats-%p") as target:
                pass
            stats = json.loads(pathlib.Path(folder, "stats-" + target.pid).read_text())
            jsonschema.validate(stats, schema)
            self.assertEqual((stats["pid"], stats["program"]), (int(target.pid), "observe_target"))

    def test_tables_and_metrics(self):
        with Target("threads", 2) as target:
            text = hummock("stats", target.pid, *PATIENCE).stdout
            self.assertRegex(text, rf"^observe_target \({target.pid}\), Hummock \d")
            self.assertRegex(hummock("ps").stdout, rf"(?m)^ +{target.pid} observe_target ")
            metrics = hummock("stats", target.pid, "--prometheus", *PATIENCE).stdout
        self.assertTrue(metrics.endswith("# EOF\n"))
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

    def test_the_child_of_a_fork_has_its_own(self):
        with Target("fork") as target:
            child = target.said[0]
            parents = json.loads(hummock("stats", target.pid, "--json", *PATIENCE).stdout)
            childs = json.loads(hummock("stats", child, "--json", *PATIENCE).stdout)
            self.assertEqual((parents["pid"], childs["pid"]), (int(target.pid), int(child)))
            self.assertEqual([row["id"] for row in parents["threads"] if row["id"] in
                              [row["id"] for row in childs["threads"]]], [])

    def test_descriptors_closed_blindly(self):
        with Target("close") as target:
            done = hummock("stats", target.pid, *PATIENCE, status=None)
            if os.geteuid() == 0:
                self.assertEqual(done.returncode, 0, done.stderr)
            else:
                self.assertRegex(done.stderr, "closed the descriptor")

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


class Top(unittest.TestCase):
    def on_terminal(self, columns, rows, *arguments):
        pid, fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(TOOL, [TOOL, "top", "--every", "100ms", *arguments], dict(CALM, TERM="xterm"))
        return pid, fd

    def press(self, fd, keys, words):
        """The screen is drawn anew each time, as else it is only told what has changed."""
        seen = b""
        os.write(fd, keys)
        for _ in range(1000):
            time.sleep(0.1)
            os.write(fd, b"\x0c")
            while select.select([fd], [], [], 0.1)[0] and words not in seen:
                seen += os.read(fd, 65536)
            if words in seen:
                return
        self.fail(f"{words} is not shown: {seen[-2000:]}")

    def test_keys(self):
        for columns, rows in ((80, 24), (160, 50), (20, 3)):
            with Target("threads", 2) as target:
                target.stats()
                pid, fd = self.on_terminal(columns, rows, target.pid)
                self.press(fd, b"", b"observe_target")
                if rows > 3:
                    self.press(fd, b"t", b"THREAD")
                    self.press(fd, b"c", b"BLOCK")
                    self.press(fd, b"\x7f", b"PROGRAM")
                    self.press(fd, b"s\n", b"BLOCK")
                os.write(fd, b"q")
                while select.select([fd], [], [], 60)[0]:
                    try:
                        os.read(fd, 65536)
                    except OSError:
                        break  # so ends a terminal whose program has ended
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
                os.close(fd)

    def test_where_there_is_nothing(self):
        self.assertIn("this is no terminal", hummock("top", status=1).stderr)


class Requests(unittest.TestCase):
    def test_an_option(self):
        with Target("threads", 2) as target:
            hummock("set", target.pid, "decay_ms=50ms", *PATIENCE)
            self.assertEqual(target.stats()["options"]["decay_ms"], "50")
            hummock("set", target.pid, "dirty_max=4M", *PATIENCE)
            self.assertEqual(target.stats()["options"]["dirty_max"], "4M")

    def test_options_that_are_not_understood(self):
        with Target("threads", 1) as target:
            for assignment, answer in (("decay=5", "the nearest is decay_ms"), ("decay_ms=soon", "it may be"),
                                       ("checked=on", "only be given at start"), ("decay_ms", "option=value"),
                                       ("stats_file=/x", "only be given at start")):
                self.assertIn(answer, hummock("set", target.pid, assignment, status=1).stderr)

    def test_trim(self):
        with Target("hold", 10, 1000, decay_ms=3600000, dirty_max="1G") as target:
            for _ in range(1000):
                if target.stats()["totals"]["dirty"] >= 2 << 20:
                    break
            target.asked("trim", target.pid)
            for _ in range(1000):
                if target.stats()["totals"]["purged"] >= 1 << 20:
                    break
            self.assertGreaterEqual(target.stats()["totals"]["purged"], 1 << 20)

    def test_requests_of_all_kinds(self):
        """What no tool of ours would ask: the process refuses it and goes on."""
        with Target("threads", 2) as target:
            target.stats()
            with open(page_of(target.pid), "r+b", buffering=0) as page:
                head = os.pread(page.fileno(), 96, 0)
                self.assertEqual(head[:8], b"hummpage")
                for number, (kind, option, value) in enumerate([(9, 0, 0), (2, 2**32 - 1, 5), (2, 7, -2**63), (2**32 - 1, 0, 0),
                                                                (2, 0, 2**63 - 1)]):
                    os.pwrite(page.fileno(), struct.pack("<IIq", kind, option, value), 56)
                    os.pwrite(page.fileno(), struct.pack("<I", 1000 + number), 52)
                    target.stats()
                    answered, result = struct.unpack("<Ii", os.pread(page.fileno(), 8, 84))
                    self.assertEqual(answered, 1000 + number)
                    self.assertNotEqual(result, 0)
                with self.assertRaises(OSError):
                    os.ftruncate(page.fileno(), 0)
                os.pwrite(page.fileno(), b"\xff" * 24000, 48)
                os.pwrite(page.fileno(), b"\x00" * 24000, 48)
        self.assertEqual(target.status, 0)

    def test_many_while_it_forks_and_throws(self):
        rounds = int(os.environ.get("OBSERVE_ROUNDS", "25"))
        with Target("threads", 64) as target:
            for number in range(rounds):
                hummock("set", target.pid, f"decay_ms={number % 100}", *PATIENCE)
                hummock("trim", target.pid, *PATIENCE)
                stats = target.stats()
                blocks = sum(row["live_blocks"] * row["block_size"] for row in stats["classes"])
                self.assertEqual(stats["totals"]["live"], blocks + stats["totals"]["large_bytes"])
        self.assertEqual(target.status, 0)


class Many(unittest.TestCase):
    """Ten thousand requests, right and wrong ones, each answered with figures, while threads churn, fork and throw."""

    def test_requests(self):
        rng = random.Random(int(os.environ.get("TEST_SEED", "1")))
        with Target("threads", 64) as target:
            names = list(target.stats()["options"])
            options = [i for i in range(len(names) + 5) if i != names.index("limit_hard")]  # by which new would throw
            fd = os.open(page_of(target.pid), os.O_RDWR)
            self.addCleanup(os.close, fd)
            for number in range(1, int(os.environ.get("OBSERVE_REQUESTS", "10000")) + 1):
                os.pwrite(fd, struct.pack("<IIq", rng.choice([1, 2, 2, 9]), rng.choice(options),
                                          rng.choice([0, 1, 50, 1000, -1, 2**40])), 56)
                asked = struct.unpack("<I", os.pread(fd, 4, 48))[0] + 1
                os.pwrite(fd, struct.pack("<I", number), 52)
                os.pwrite(fd, struct.pack("<I", asked), 48)
                while struct.unpack("<I", os.pread(fd, 4, 80))[0] != asked:
                    self.assertIsNone(target.process.poll())
                    time.sleep(0.0005)
                self.assertEqual(struct.unpack("<I", os.pread(fd, 4, 84))[0], number)
        self.assertEqual(target.status, 0)


class Start(unittest.TestCase):
    def mappings(self, observe):
        with Target("idle", observe=observe) as target:
            return len(pathlib.Path(f"/proc/{target.pid}/maps").read_text().splitlines())

    def test_mappings(self):
        self.assertLessEqual(self.mappings("on") - self.mappings("off"), 2)

    def test_system_calls(self):
        """Its time is that of a few calls: by number, as time is not asserted. They take 25 microseconds."""
        def calls(observe):
            with tempfile.NamedTemporaryFile("r") as out:
                done = subprocess.run(["strace", "-f", "-o", out.name, "-E", "LD_PRELOAD=" + LIBRARY, "-E",
                                       "HUMMOCK_OBSERVE=" + observe, "/bin/true"], env=CALM, capture_output=True)
                if done.returncode != 0:
                    self.skipTest("strace does not work here")
                return len(out.read().splitlines())
        try:
            extra = calls("on") - calls("off")
        except FileNotFoundError:
            self.skipTest("strace is not there")
        self.assertGreater(extra, 0)
        self.assertLessEqual(extra, 10)

    def test_descriptors(self):
        with Target("idle") as target:
            own = page_of(target.pid)
            self.assertIsNotNone(own)
            self.assertGreaterEqual(int(own.rsplit("/", 1)[1]), 40)  # out of the program's way
        done = subprocess.run(["sh", "-c", "exec ls -l /proc/self/fd"], capture_output=True, text=True,
                              env=dict(CALM, LD_PRELOAD=LIBRARY))
        self.assertEqual(done.stdout.count("memfd:hummock"), 1)  # ls's own: that of sh ended with its program


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


class Exporter(unittest.TestCase):
    COUNT = int(os.environ.get("OBSERVE_PROCESSES", "8"))

    def setUp(self):
        self.exporter = subprocess.Popen([TOOL, "export", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, env=CALM)
        self.addCleanup(self.end, self.exporter)
        said = self.exporter.stdout.readline().decode()
        self.url = said.split()[-1]
        self.assertRegex(said, r"^hummock export: http://127\.0\.0\.1:\d+/metrics$")

    def end(self, process):
        process.kill()
        process.wait()
        process.stdout.close()

    def get(self, url, **headers):
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=300) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def test_all_processes_and_those_that_end(self):
        with contextlib.ExitStack() as stack:
            targets = [stack.enter_context(Target("threads", 1)) for _ in range(self.COUNT)]
            for target in targets:
                target.stats()  # so that it has figures, however busy the machine
            kind, text = self.get(self.url)
            self.assertIn("text/plain", kind)
            for target in targets:
                self.assertIn(f'hummock_live_bytes{{pid="{target.pid}",program="observe_target"', text)
            kind, text = self.get(self.url, Accept="application/openmetrics-text; version=1.0.0")
            self.assertIn("openmetrics", kind)
            self.assertTrue(text.endswith("# EOF\n"))
        for _ in range(20):  # they begin and end while they are looked at
            with Target("idle"):
                self.get(self.url)
        self.assertNotIn(f'pid="{targets[0].pid}"', self.get(self.url)[1])
        self.assertIsNone(self.exporter.poll())

    def test_promtool(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not there")
        with Target("threads", 1, limit_hard="1G") as target:
            target.stats()
            checked = subprocess.run(["promtool", "check", "metrics"], input=self.get(self.url)[1], text=True,
                                     capture_output=True)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))
        rules = subprocess.run(["promtool", "check", "rules", SOURCE + "/tools/hummock/export/alerts.yml"],
                               capture_output=True, text=True)
        self.assertEqual(rules.returncode, 0, rules.stdout + rules.stderr)

    def queries(self):
        dashboard = json.loads(pathlib.Path(SOURCE, "tools/hummock/export/dashboard.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield target["expr"].replace("$program", ".*").replace("$pid", ".*")

    def test_what_the_dashboard_asks_for_is_there(self):
        with Target("threads", 1) as target:
            target.stats()
            served = set(re.findall(r"(?m)^(hummock_\w+)", self.get(self.url)[1]))
        for query in self.queries():
            for name in re.findall(r"hummock_\w+", query):
                self.assertIn(name, served)

    def test_prometheus(self):
        if shutil.which("prometheus") is None:
            self.skipTest("prometheus is not there")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            for _ in range(self.COUNT):
                stack.enter_context(Target("threads", 1, limit_hard="1G"))
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            place = self.url.split("/")[2]
            pathlib.Path(folder, "prometheus.yml").write_text(
                "global: {scrape_interval: 1s}\nscrape_configs:\n"
                f"- {{job_name: hummock, static_configs: [{{targets: ['{place}']}}]}}\n")
            server = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml",
                                       f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=CALM)
            stack.callback(self.end, server)
            missing = list(self.queries())
            for _ in range(600):
                time.sleep(0.5)
                try:
                    missing = [each for each in missing if not json.loads(self.get(
                        f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": each}))[1])
                               ["data"]["result"]]
                except OSError:
                    continue  # it is still starting
                if not missing:
                    break
            self.assertEqual(missing, [])


PARTS = {"exporter": Exporter, "top": Top, "many": Many, "group": Group, "outside": Outside, "requests": Requests, "start": Start}

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(PARTS[sys.argv[5]])
    sys.exit(not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful())
