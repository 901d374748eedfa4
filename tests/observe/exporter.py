"""hummock export, promtool and Prometheus."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from support import TOOL, SOURCE, CALM, hummock, Target


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

    def test_it_keeps_nothing_open(self):
        """Not of pages that are none, nor of children of a fork that make no call."""
        with Target("pages", 20) as target, Target("crew", 100) as crew:
            crew.stats()

            def descriptors():
                self.get(self.url)
                return len(os.listdir(f"/proc/{self.exporter.pid}/fd"))

            before = descriptors()
            self.assertLess(max(descriptors() for _ in range(5)), before + 5)  # connections that are just ending
            text = self.get(self.url)[1]
            self.assertIn(f'hummock_live_bytes{{pid="{crew.pid}"', text)
            self.assertGreaterEqual(int(re.search(r"(?m)^hummock_silent_processes (\d+)$", text)[1]), 100)
            self.assertNotIn(f'hummock_live_bytes{{pid="{target.pid}"', text)

    def connect(self):
        host, port = self.url.split("/")[2].split(":")
        connection = socket.create_connection((host, int(port)))
        self.addCleanup(connection.close)
        return connection

    def test_who_connects_and_asks_for_nothing(self):
        """A line is served while others keep theirs; what is sent and was not asked for is not kept."""
        idle = [self.connect() for _ in range(60)]
        for connection in idle[:30]:
            connection.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: ")
        self.assertIn("hummock_silent_processes", self.get(self.url)[1])
        before = int(pathlib.Path(f"/proc/{self.exporter.pid}/statm").read_text().split()[1])
        sender = self.connect()
        sender.settimeout(300)
        with contextlib.suppress(ConnectionError):
            sender.send(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000000\r\n\r\n")
            for _ in range(100):
                sender.send(bytes(1 << 20))
        for nonsense in (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"\x00\xff\x16\x03" * 100 + b"\r\n\r\n", b"\r\n"):
            with contextlib.suppress(ConnectionError):
                self.connect().send(nonsense)
        self.assertIn("hummock_silent_processes", self.get(self.url)[1])
        after = int(pathlib.Path(f"/proc/{self.exporter.pid}/statm").read_text().split()[1])
        self.assertLess(after - before, (32 << 20) // 4096)
        self.assertIsNone(self.exporter.poll())

    def test_addresses(self):
        place = self.url.split("/")[2]
        for address, answer in ((place, "Address already in use"), ("9188", "9188 is not ADDRESS:PORT"), ("127.0.0.1:", "is not ADDRESS:PORT"),
                                ("127.0.0.1:70000", "is not ADDRESS:PORT"), ("127.0.0.1:-1", "is not ADDRESS:PORT"),
                                ("198.51.100.1:1", "Cannot assign"), ("no host:1", "there is no such address")):
            status = 2 if "ADDRESS:PORT" in answer else 1
            self.assertIn(answer, hummock("export", "--listen", address, status=status).stderr)
        program = os.path.join(os.path.dirname(TOOL), "hummock-export")
        self.assertIn("Usage: ", subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout)

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

    def ask_prometheus(self, port, query):
        return self.get_data(port, "query?" + urllib.parse.urlencode({"query": query}))["result"]

    def get_data(self, port, what):
        return json.loads(self.get(f"http://127.0.0.1:{port}/api/v1/{what}")[1])["data"]

    def test_prometheus(self):
        """OBSERVE_PROCESSES=50 OBSERVE_SCRAPES=60 takes five minutes. Each other process rests."""
        if shutil.which("prometheus") is None:
            self.skipTest("prometheus is not there")
        scrapes = int(os.environ.get("OBSERVE_SCRAPES", "3"))
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            for i in range(self.COUNT):
                stack.enter_context(Target("threads", 1, limit_hard="1G") if i % 8 == 0 else
                                    Target("leave_free", 5, limit_hard="1G", background="on"))
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            place = self.url.split("/")[2]
            pathlib.Path(folder, "prometheus.yml").write_text(
                "global: {scrape_interval: 5s, scrape_timeout: 5s}\nscrape_configs:\n"
                f"- {{job_name: hummock, static_configs: [{{targets: ['{place}']}}]}}\n")
            server = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml",
                                       f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{port}"],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=CALM)
            stack.callback(self.end, server)
            missing, taken, errors = list(self.queries()), 0, set()
            for _ in range(600 + 20 * scrapes):
                with Target("idle"):  # one that ends
                    time.sleep(0.5)
                try:
                    missing = [each for each in missing if not self.ask_prometheus(port, each)]
                    up = self.ask_prometheus(port, "sum_over_time(up[1d])")
                    errors.update(each["lastError"] for each in self.get_data(port, "targets")["activeTargets"])
                except OSError:
                    continue  # it is still starting
                taken = int(up[0]["value"][1]) if up else 0
                if not missing and taken >= scrapes:
                    break
            self.assertEqual(missing, [])
            self.assertGreaterEqual(taken, scrapes)
            # A machine that is too busy for an answer in five seconds is no error of the exporter's.
            self.assertEqual({each for each in errors if each and "deadline exceeded" not in each}, set())

            def number(query):
                return float(self.ask_prometheus(port, query)[0]["value"][1])
            self.assertGreaterEqual(number("count(count by (pid) (hummock_live_bytes))"), self.COUNT)
            print(f"{taken} scrapes of {self.COUNT} processes, {number('count_over_time(up[1d])') - taken:.0f} failed, "
                  f"seconds for one: {number('quantile_over_time(0.5, scrape_duration_seconds[1d])'):.2f} half, "
                  f"{number('max_over_time(scrape_duration_seconds[1d])'):.2f} all")
