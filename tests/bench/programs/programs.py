#!/usr/bin/env python3
"""hummock bench --programs: small lists whose figures are known by count, mistakes, and the list it brings.

Usage: programs.py SOURCE HUMMOCK LIBRARY WORKER [unittest's arguments]
"""

import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE, TOOL, LIBRARY, WORKER = (os.path.realpath(path) for path in sys.argv[1:5])
MIB = 1 << 20

try:
    import jsonschema
except ImportError:
    jsonschema = None

# A parent with 30 MiB and a child with 40 MiB, at the same time.
FAMILY = """
import os, time
held = b"x" * (30 << 20)
child = os.fork()
if child == 0:
    more = bytearray(b"y") * (40 << 20)
    time.sleep(0.3)
    os._exit(0)
os.waitpid(child, 0)
"""
SERVER = """
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
held = b"x" * (20 << 20)
listener = socket.socket(socket.AF_UNIX)
listener.bind("place")
listener.listen()
while True:
    connection, _ = listener.accept()
    asked = connection.recv(100)
    if asked:  # not the look whether it listens
        connection.sendall(asked)
    connection.close()
"""
CLIENT = """
import os, socket
assert "LD_PRELOAD" not in os.environ
for _ in range(50):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect("place")
    connection.sendall(b"hello")
    assert connection.recv(100) == b"hello"
    connection.close()
"""


def python(text):
    return [sys.executable, "-S", "-c", text]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.temporary = self.path("temporary")
        os.mkdir(self.temporary)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *arguments, against="system"):
        command = [TOOL, "bench", "--worker", WORKER, "--lib", LIBRARY, "--against", against, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                env={**os.environ, "TMPDIR": self.temporary})  # fmt: skip

    def run_tool(self, *arguments, status=0, **more):
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=1500)
        self.assertEqual(process.returncode, status, err)
        self.assertEqual(os.listdir(self.temporary), [], "inputs are removed")
        return out, err

    def write_list(self, *programs):
        with open(self.path("list.json"), "w", encoding="ascii") as file:
            json.dump({"group": "small", "programs": programs}, file)

    def bench(self, *arguments, programs=(), repeat="1"):
        self.write_list(*programs)
        self.out, self.err = self.run_tool("--programs", "--program-list", "list.json", "--repeat", repeat, "--json", "r.json", *arguments)
        with open(self.path("r.json"), encoding="utf-8") as file:
            return json.load(file)

    def errors(self, *programs, more=()):
        document = self.bench(*more, programs=programs)
        return {(r["workload"], r["allocator"]): r["error"] for r in document["results"]}


class Figures(Case):
    def test_a_tree_of_processes(self):
        """What children take is counted, and together with the parent's where they live at the same time."""
        document = self.bench(programs=[{"name": "family", "command": python(FAMILY)}])
        self.assertEqual([(r["group"], r["unit"], r["error"]) for r in document["results"]], 2 * [("small", "run", None)])
        for result in document["results"]:
            self.assertGreater(result["peak_bytes"]["median"], (30 + 30 + 40) * MIB)  # the child shares 30 with it
            self.assertLess(result["peak_bytes"]["median"], 300 * MIB)
            self.assertGreater(result["minor_faults"]["median"], 1000)
            self.assertGreater(len(result["series"]), 10)
            self.assertGreaterEqual(result["cpu_seconds"]["median"], result["system_seconds"]["median"])

    def test_a_server_and_its_client(self):
        server = {"name": "server", "command": python(SERVER), "socket": "place", "client": python(CLIENT)}
        for result in self.bench(programs=[server], repeat="2")["results"]:
            self.assertIsNone(result["error"])
            self.assertGreaterEqual(len(result["runs"]), 2)
            self.assertGreater(result["peak_bytes"]["median"], 20 * MIB)

    def test_inputs_are_made_once_in_the_programs_folder(self):
        count = "open('made', 'a').write('x' * 100)"
        check = "import os, sys; data = sys.stdin.read(); assert len(data) == 100 == os.path.getsize('made')"
        program = {"name": "reader", "make": [python(count)], "input": "made", "command": python(check)}
        results = self.bench(programs=[program], repeat="3")["results"]
        self.assertEqual([r["error"] for r in results], [None, None])

    def test_the_environment_and_here(self):
        check = "import os, sys; assert os.environ['ONE'] == '1' and os.path.samefile(sys.argv[1], os.environ['TWO'])"
        program = {"name": "env", "environment": {"ONE": "1", "TWO": self.folder}, "command": [*python(check), "{here}"]}
        self.assertEqual(set(self.errors(program).values()), {None})

    def test_every_output(self):
        programs = [
            {"name": "first", "title": "First", "command": python("x = [str(i) for i in range(50000)]")},
            {"name": "absent", "needs": {"no-such-program": "its-package"}, "command": ["no-such-program"]},
        ]
        document = self.bench("--csv", "r.csv", "--html", "r.html", programs=programs)
        named = "absent is left out, no-such-program is not installed: apt-get install its-package"
        self.assertIn(named, document["missing"])
        self.assertIn(named, self.out)
        self.assertRegex(self.out, r"hummock to the best other.*\n +time +CPU +peak +faults +system\nfirst +[0-9]")
        self.assertRegex(self.out, r"geometric mean \(1\)")
        with open(self.path("r.csv"), encoding="utf-8", newline="") as file:
            self.assertEqual({line["workload"] for line in csv.DictReader(file)}, {"first"})
        page = pathlib.Path(self.path("r.html")).read_text(encoding="utf-8")
        self.assertIn('"workload":"first"', page)
        table = subprocess.run([TOOL, "bench", "table", self.path("r.json")], capture_output=True, text=True, check=True).stdout
        self.assertIn("\n| cell | time | CPU | peak | faults | system |\n", table)
        for result in document["results"]:
            ratios = [result[name]["vs_best"] for name in ("time_ratio", "cpu_ratio", "memory_ratio", "fault_ratio")]
            self.assertTrue(all(ratio > 0 for ratio in ratios), ratios)
        if jsonschema:
            schema = json.loads(pathlib.Path(SOURCE, "bench/schema.json").read_text(encoding="utf-8"))
            errors = jsonschema.Draft202012Validator(schema).iter_errors(document)
            self.assertEqual([error.message[:200] for error in errors], [])

    def test_the_list_that_hummock_brings(self):
        document = json.loads(pathlib.Path(SOURCE, "bench/programs/programs.json").read_text(encoding="utf-8"))
        names = [program["name"] for program in document["programs"]]
        self.assertGreaterEqual(len(set(names)), 14)
        packages = subprocess.run(["sh", "-c", "grep '^    programs)' scripts/packages.sh"], cwd=SOURCE, capture_output=True, text=True).stdout
        for program in document["programs"]:
            self.assertTrue(program["needs"] and program["description"], program["name"])
            for package in program["needs"].values():
                self.assertRegex(packages, rf"[ \"]{package.replace('+', '[+]')}[ \"]")
        out, _ = self.run_tool("--programs", "--list")
        self.assertIn("judge programs\n", out)
        self.run_tool("--programs", "perl", "--repeat", "1", "--json", "r.json")
        with open(self.path("r.json"), encoding="utf-8") as file:
            results = json.load(file)["results"]
        self.assertEqual({r["error"] for r in results}, {None})
        self.assertEqual([r["workload"] for r in results], ["perl", "perl"])


class Failures(Case):
    def test_programs_that_fail(self):
        programs = [
            {"name": "exits", "command": python("import sys; sys.exit('no good')")},
            {"name": "dies", "command": python("import os; os.kill(os.getpid(), 11)")},
            {"name": "without", "command": python("import time; time.sleep(0.3)"), "environment": {"LD_PRELOAD": ""}},
            {"name": "ends", "command": python("print(1)"), "socket": "place", "client": python("")},
            {"name": "client", "command": python(SERVER), "socket": "place", "client": python("import sys; sys.exit('refused')")},
        ]
        errors = self.errors(*programs)
        self.assertIn("exit status 1: no good", errors["exits", "hummock"])
        self.assertIn("killed by signal 11", errors["dies", "system"])
        self.assertIn("does not load", errors["without", "hummock"])
        self.assertIsNone(errors["without", "system"])
        self.assertIn("the server ended", errors["ends", "system"])
        self.assertIn("the client failed: exit status 1: refused", errors["client", "hummock"])
        self.assertIn("error: exits, 1 thread on hummock", self.out)

    def test_limits(self):
        sleeper = {"name": "sleeper", "command": python("import time; time.sleep(600)")}
        self.assertIn("no end within 1 s", self.errors(sleeper, more=["--timeout", "1"])["sleeper", "system"])
        grower = {"name": "grower", "command": python("import time; x = b'x' * (200 << 20); time.sleep(600)")}
        self.assertIn("too much memory", self.errors(grower, more=["--memory", "100M"])["grower", "system"])

    def test_an_interrupt_ends_the_program_and_cleans_up(self):
        self.write_list({"name": "sleeper", "command": python("open('begun', 'w'); import time; time.sleep(600)")})
        process = self.start("--programs", "--program-list", "list.json", "--json", "r.json")
        while not list(pathlib.Path(self.temporary).glob("*/sleeper/begun")):
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=1500)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(os.listdir(self.temporary), [])

    def test_mistakes(self):
        def fails(says, *arguments, status=2):
            _, err = self.run_tool(*arguments, status=status)
            self.assertIn(says, err)

        listed = ("--programs", "--program-list", "list.json")
        good = {"name": "good", "command": ["true"]}
        for says, programs in {
            "the nearest is good": [good],
            'no "command"': [{"name": "bare"}],
            "is listed twice": [good, good],
            "is not a name": [{"name": "../up", "command": ["true"]}],
            'both "socket" and "client"': [{**good, "socket": "place"}],
            '"command" is empty': [{"name": "empty", "command": []}],
            "not a list of programs": [{"command": ["true"]}],
        }.items():
            self.write_list(*programs)
            fails(says, *listed, "godo")
        self.write_list({**good, "make": [python("import sys; sys.exit('no paper')")]})
        fails("the inputs of good were not made: exit status 1: no paper", *listed)
        pathlib.Path(self.path("list.json")).write_text("[", encoding="ascii")
        fails("list.json is not a list of programs", *listed)
        fails("none.json cannot be read", "--programs", "--program-list", "none.json")
        fails("--programs", "--program-list", "list.json", status=2)
        fails("--threads", "--programs", "--threads", "2", status=2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
