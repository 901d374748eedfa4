#!/usr/bin/env python3
"""hummock bench with a worker whose figures are known: method, results, errors, compare and table.

Usage: driver.py SOURCE HUMMOCK LIBRARY WORKER [unittest's arguments]
"""

import csv
import json
import math
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
FOLDER = tempfile.TemporaryDirectory()
FAKE = os.path.join(FOLDER.name, "fake_worker.py")

try:
    import jsonschema
except ImportError:
    jsonschema = None


def make_fake():
    """The fake worker for this interpreter, without the time that its start usually takes."""
    source = pathlib.Path(os.path.dirname(os.path.realpath(__file__)), "fake_worker.py").read_text(encoding="utf-8")
    pathlib.Path(FAKE).write_text(f"#!{sys.executable} -SE\n" + source, encoding="utf-8")
    os.chmod(FAKE, 0o755)


def schema_errors(document):
    schema = json.loads(pathlib.Path(SOURCE, "bench/schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in jsonschema.Draft202012Validator(schema).iter_errors(document)]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.other = self.path("libother.so")
        shutil.copy(LIBRARY, self.other)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *arguments, plan=None, **more):
        environment = {**os.environ, "FAKE_WORKER": json.dumps(plan or {})}
        return subprocess.Popen([TOOL, "bench", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=self.folder, env=environment, **more)  # fmt: skip

    def run_tool(self, *arguments, plan=None):
        process = self.start(*arguments, plan=plan)
        out, err = process.communicate(timeout=1500)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def bench(self, *arguments, plan=None, status=0, against="system,other"):
        """A run on the fake worker; its result."""
        against = against.replace("other", "other=" + self.other)
        done = self.run_tool("--worker", FAKE, "--lib", LIBRARY, "--against", against, "--json", self.path("r.json"),
                             *arguments, plan=plan)  # fmt: skip
        self.assertEqual(done.returncode, status, done.stderr)
        self.done = done
        return self.load("r.json")

    def load(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def fails(self, *arguments, says, status=2):
        done = self.run_tool(*arguments)
        self.assertEqual(done.returncode, status, f"{arguments}: {done.stderr}")
        self.assertIn(says, done.stderr, arguments)
        self.assertEqual(done.stdout, "", arguments)
        return done


SPEED = {"speed": {"": 500, "libhummock": 2000, "libother": 1000}, "peak": {"": 4000, "libhummock": 2000, "libother": 1000}}


class Results(Case):
    def test_ratios_and_summary(self):
        document = self.bench("pair", "--repeat", "2", plan=SPEED)
        self.assertEqual([a["name"] for a in document["allocators"]], ["hummock", "system", "other"])
        self.assertEqual(len(document["results"]), 4 * 3)
        for result in document["results"]:
            time_ratio, memory_ratio = result["time_ratio"], result["memory_ratio"]
            expected = {"hummock": (0.25, 0.5, 0.5, 2), "system": (1, 4, 1, 4), "other": (0.5, 2, 0.25, 0.5)}[result["allocator"]]
            self.assertEqual((time_ratio["vs_baseline"], time_ratio["vs_best"], memory_ratio["vs_baseline"], memory_ratio["vs_best"]), expected)
            self.assertGreaterEqual(len(result["runs"]), 2)
        own = document["summary"][0]
        self.assertTrue(math.isclose(own["time_ratio_geomean"]["vs_best"], 0.5))
        self.assertTrue(math.isclose(own["memory_ratio_geomean"]["vs_baseline"], 0.5))
        self.assertEqual((own["wins"], own["ties"], own["losses"], own["errors"]), (4, 0, 0, 0))
        self.assertEqual(document["summary"][2]["losses"], 4)
        self.assertIn("pair (4)", self.done.stdout)
        self.assertIn("hummock needs more memory than the best other in 4 cells", self.done.stdout)

    @unittest.skipUnless(jsonschema, "jsonschema is not installed")
    def test_the_schema_holds(self):
        plan = {**SPEED, "fail": {"pair": {"libother": "crash"}}}
        self.assertEqual(schema_errors(self.bench("--repeat", "1", plan=plan)), [])
        broken = self.load("r.json")
        del broken["machine"]["cpu"]
        broken["results"][0]["runs"] = 7
        broken["surprise"] = 1
        self.assertEqual(len(schema_errors(broken)), 3)

    @unittest.skipUnless(jsonschema, "jsonschema is not installed")
    def test_stored_results_hold_to_the_schema(self):
        stored = sorted(pathlib.Path(SOURCE, "bench/results").glob("*.json"))
        self.assertTrue(stored)
        for file in stored:
            self.assertEqual(schema_errors(json.loads(file.read_text(encoding="utf-8"))), [], file.name)

    def test_the_real_worker(self):
        done = self.run_tool("pair", "very-large", "--repeat", "1", "--threads", "1", "--sizes", "64", "--seconds", "0.02", "--lib", LIBRARY,
                             "--worker", WORKER, "--against", "system", "--json", self.path("r.json"))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        document = self.load("r.json")
        self.assertEqual({r["workload"] for r in document["results"]}, {"pair", "very-large"})
        self.assertEqual([r["error"] for r in document["results"]], [None] * 4)
        self.assertTrue(all(r["latency"] for r in document["results"] if r["workload"] == "very-large"))
        usable = {(w["allocator"], w["size"]): w["usable"] for w in document["waste"]}
        self.assertTrue(all(usable[name, size] >= size for name in ("hummock", "system") for size in (1, 96, 4096, 65536)))
        if jsonschema:
            self.assertEqual(schema_errors(document), [])

    def test_csv(self):
        self.bench("frames", "--repeat", "1", "--csv", self.path("r.csv"), plan={**SPEED, "fail": {"frames": {"libother": "complain"}}})
        with open(self.path("r.csv"), encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual([line["allocator"] for line in lines], ["hummock", "system", "other"])
        self.assertEqual(float(lines[0]["ops_per_second_median"]), 2000)
        self.assertEqual(float(lines[0]["time_vs_baseline"]), 0.25)
        self.assertIn("the heap is broken", lines[2]["error"])

    def test_the_page_holds_the_data(self):
        document = self.bench("frames", "--repeat", "1", "--html", self.path("r.html"), plan=SPEED)
        page = pathlib.Path(self.path("r.html")).read_text(encoding="utf-8")
        data = page.split('<script id="data" type="application/json">')[1].split("</script>")[0]
        self.assertEqual(json.loads(data), document)

    def test_paths_in_the_present_folder_are_short(self):
        document = self.bench("frames", "--repeat", "1", plan=SPEED)
        self.assertEqual(document["allocators"][2]["library"], "libother.so")

    def test_an_interrupt_keeps_what_there_is(self):
        process = self.start("--worker", FAKE, "--lib", LIBRARY, "--against", "system", "--json", self.path("r.json"), "--repeat", "50",
                             plan={**SPEED, "sleep": 0.1, "log": self.path("log")})  # fmt: skip
        while not os.path.exists(self.path("log")) or len(pathlib.Path(self.path("log")).read_text(encoding="ascii").split("\n")) < 8:
            self.assertIsNone(process.poll(), "it ended by itself")
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=1500)
        self.assertEqual(process.returncode, 130)
        document = self.load("r.json")
        self.assertTrue(document["interrupted"])
        self.assertTrue(any(result["runs"] for result in document["results"]))


class Method(Case):
    def log(self, *arguments, plan=None):
        log = self.path("log")
        if os.path.exists(log):
            os.remove(log)
        self.bench(*arguments, plan={**SPEED, **(plan or {}), "log": log})
        return [line.split() for line in pathlib.Path(log).read_text(encoding="ascii").splitlines()]

    def test_allocators_take_turns_in_random_order(self):
        # Runs that are repeated because something disturbed them come after the others of their turn.
        runs = self.log("frames", "--repeat", "12")
        turns, turn = [], []
        for run in runs:
            seed = run[run.index("--seed") + 1]
            if turn and turn[0][1] != seed:
                turns.append(turn)
                turn = []
            turn.append((run[0], seed))
        turns.append(turn)
        self.assertEqual(len(turns), 12)
        for turn in turns:
            self.assertEqual({library for library, _ in turn[:3]}, {"libc", "libhummock.so.1.0.0", "libother.so"})
        self.assertGreater(len({tuple(library for library, _ in turn[:3]) for turn in turns}), 1)

    def test_each_repeat_has_its_seed_and_the_first_its_series(self):
        runs = self.log("sweeps", "--repeat", "3", "--seed", "40")
        self.assertEqual({run[run.index("--seed") + 1] for run in runs}, {"40", "41", "42"})
        for run in runs:
            first = run[run.index("--seed") + 1] == "40"
            self.assertEqual("--series" in run, first)
            self.assertEqual(run[run.index("--settle") + 1], "0.5" if first else "0")
            self.assertEqual((run[run.index("--ops") + 1], run[run.index("--threads") + 1]), ("5000", "4"))

    def test_options_reach_the_worker(self):
        runs = self.log("pair", "--threads", "3,5", "--sizes", "1K,1M", "--seconds", "0.25", "--repeat", "1")
        cells = {(run[run.index("--threads") + 1], run[run.index("--size") + 1]) for run in runs}
        self.assertEqual(cells, {("3", "1024"), ("3", "1048576"), ("5", "1024"), ("5", "1048576")})
        self.assertEqual({run[run.index("--seconds") + 1] for run in runs}, {"0.25"})

    def test_modes(self):
        self.assertEqual({r["workload"] for r in self.bench("--quick", "--repeat", "1", plan=SPEED)["results"]}, {"pair"})
        document = self.bench("--repeat", "1", plan=SPEED)
        self.assertEqual((document["mode"], {r["workload"] for r in document["results"]}), ("default", {"pair", "frames", "sweeps"}))
        self.assertEqual({r["workload"] for r in self.bench("games", "--repeat", "1", plan=SPEED)["results"]}, {"frames", "sweeps"})

    def test_every_workload_comes_before_the_rest_of_the_grid(self):
        cells = []
        for run in self.log("--repeat", "1"):
            cell = run[1:2] + [run[run.index("--threads") + 1]] + [run[run.index("--size") + 1] if "--size" in run else ""]
            if cell not in cells:
                cells.append(cell)
        self.assertEqual([cell[0] for cell in cells], ["pair", "frames", "sweeps", "pair", "pair", "pair"])

    def test_what_does_not_fit_the_time_is_named(self):
        document = self.bench("pair", "--seconds", "60", "--budget", "1", plan=SPEED)
        self.assertEqual(len(document["skipped"]), 3)
        self.assertIn("3 cells were left out for want of time", self.done.stdout)

    def test_disturbed_runs_are_seen_and_repeated(self):
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.addCleanup(busy.wait)
        self.addCleanup(busy.kill)
        document = self.bench("frames", "--repeat", "2", plan={**SPEED, "sleep": 0.3})
        runs = [run for result in document["results"] for run in result["runs"]]
        self.assertGreater(len(runs), 3 * 2)
        self.assertGreater(sum(run["disturbed"] for run in runs), 3)
        self.assertIn("from runs beside other load", self.done.stdout)


class Failures(Case):
    def test_a_failing_allocator_is_named_and_the_others_go_on(self):
        for how, says in {
            "crash": "signal 11", "complain": "the heap is broken", "babble": "not understood", "hang": "no end within 10 s",
            "grow": "too much memory",
        }.items():  # fmt: skip
            with self.subTest(how):
                document = self.bench("pair", "--threads", "1", "--repeat", "2", "--timeout", "10" if how == "hang" else "600", "--memory",
                                      "100M", plan={**SPEED, "fail": {"pair": {"libother": how}}})  # fmt: skip
                for result in document["results"]:
                    if result["allocator"] != "other":
                        self.assertIsNone(result["error"])
                        continue
                    self.assertIn(says, result["error"])
                    self.assertEqual((result["runs"], result["time_ratio"]["vs_best"]), ([], None))
                self.assertEqual([one["errors"] for one in document["summary"]], [0, 0, 2])
                self.assertIn(says, self.done.stdout)
                self.assertIn("error", self.done.stdout)

    def test_mistakes(self):
        fake = ("--worker", FAKE, "--lib", LIBRARY)
        self.fails(*fake, "pairs", says="; the nearest is pair\n")
        self.fails(*fake, "--against", "jemaloc", says="; the nearest is jemalloc\n")
        self.assertNotIn("nearest", self.fails(*fake, "--against", "nosuch", says="no allocator is called nosuch").stderr)
        self.fails(*fake, "--against", "mine=/nowhere.so", says="/nowhere.so")
        self.fails("--worker", FAKE, "--lib", "/nowhere.so", "pair", says="--lib")
        self.fails("--worker", "/nowhere", says="`make bench` in Hummock's source tree builds it, --worker names it")
        self.fails("--worker", "/bin/false", says="--list failed")
        self.fails(*fake, "--against", "system", "--json", "/nowhere/r.json", says="/nowhere/r.json")
        self.fails(*fake, "--quick", "--full", says="--full", status=2)
        self.fails(*fake, "--repeat", "0", says="--repeat", status=2)

    def test_without_a_worker(self):
        whole = self.run_tool("--list", "--worker", WORKER, "--lib", LIBRARY)
        without = self.run_tool("--list", "--worker", "/nowhere", "--lib", LIBRARY)
        self.assertEqual((whole.returncode, without.returncode), (0, 0))
        # The tool knows what the worker has; the worker leaves out programs that are not installed.
        listed, known = (run.stdout.split("\n") for run in (whole, without))
        programs = known[known.index("programs"):]
        missing = [line for line in programs[:programs.index("judges")] if line not in listed]
        self.assertEqual(listed, [line for line in known if line not in missing])
        self.assertIn("make bench", without.stderr)
        self.fails("--worker", "/nowhere", "pairs", says="no workload is called pairs; the nearest is pair\n")

    def test_a_library_that_is_no_allocator(self):
        libm = "/lib/x86_64-linux-gnu/libm.so.6"
        if not os.path.exists(libm):
            self.skipTest("no libm")
        self.fails("--worker", WORKER, "--lib", LIBRARY, "--against", "m=" + libm, says="m is not active")

    def test_not_a_result(self):
        shape = '{"format": 1, "results": [{}], "allocators": [{"name": "a", "version": "1"}], "summary": [], "machine": {}}'
        cases = {"[": "not JSON, from its byte 2 on\n", '{"results": [1e999]}': "a number that is too large", "{}": "not a result",
                 '{"format": 99, "results": []}': "format 99", shape: "results[0].workload is missing"}  # fmt: skip
        for text, says in cases.items():
            pathlib.Path(self.path("x.json")).write_text(text, encoding="ascii")
            self.fails("table", self.path("x.json"), says=says)
            self.fails("compare", self.path("x.json"), self.path("x.json"), says=says)
        self.fails("table", self.path("none.json"), says="none.json")


class Compare(Case):
    def test_what_changed(self):
        self.bench("pair", "frames", "--repeat", "2", plan=SPEED)
        os.rename(self.path("r.json"), self.path("old.json"))
        slower = {"speed": {**SPEED["speed"], "libhummock": 1600}, "peak": {**SPEED["peak"], "libother": 500}}
        self.bench("pair", "--repeat", "2", plan=slower)
        done = self.run_tool("compare", "old.json", "r.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"hummock +time +1\.250 +4 +0 +4\n")
        self.assertRegex(done.stdout, r"other +memory +0\.500 +4 +4 +0\n")
        self.assertIn("worse:  time +25.0 %  hummock: pair, 1 thread, 16", done.stdout)
        self.assertIn("in one of them alone: 3 before, 0 after", done.stdout)
        self.assertEqual(self.run_tool("compare", "old.json", "r.json", "--gate", "30").returncode, 0)
        gate = self.run_tool("compare", "old.json", "r.json", "--gate", "20")
        self.assertEqual((gate.returncode, "25.0 %" in gate.stderr), (1, True))
        self.assertEqual(self.run_tool("compare", "r.json", "old.json", "--gate", "20").returncode, 0)


class Table(Case):
    def test_lines(self):
        self.bench("--repeat", "1", plan={**SPEED, "fail": {"sweeps": {"libother": "crash"}}})
        table = self.run_tool("table", "r.json").stdout
        self.assertIn("| basic (4) | **0.25** / 0.50 | 1.00 / 1.00 | 0.50 / **0.25** |\n", table)
        self.assertIn("| games (2) | **0.25** / 0.50 | 1.00 / 1.00 | 0.50! / **0.25!** |\n", table)
        self.assertIn("error: sweeps, 4 threads on other", table)
        document = self.load("r.json")
        for fact in (document["date"][:10], document["machine"]["cpu"], "glibc", "default mode"):
            self.assertIn(fact, table)
        self.assertIn("| pair (4) |", self.run_tool("table", "r.json", "--by", "workload").stdout)

    def test_in_a_document(self):
        self.bench("pair", "--repeat", "1", plan=SPEED)
        readme = pathlib.Path(self.path("README.md"))
        readme.write_text("before\n<!-- hummock bench table x.json -->\nold\n<!-- end of hummock bench table -->\nafter\n", encoding="utf-8")
        self.fails("table", "r.json", "--check", "README.md", says="README.md: the table is not what r.json makes", status=1)
        self.assertEqual(self.run_tool("table", "r.json", "--into", "README.md").returncode, 0)
        self.assertEqual(self.run_tool("table", "r.json", "--check", "README.md").returncode, 0)
        text = readme.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("before\n<!-- hummock bench table r.json -->\n"), text)
        self.assertTrue(text.endswith("<!-- end of hummock bench table -->\nafter\n"), text)
        self.assertNotIn("old\n", text)
        readme.write_text(text.replace("0.25", "0.20", 1), encoding="utf-8")
        self.fails("table", "r.json", "--check", "README.md", says="run: hummock bench table", status=1)
        readme.write_text("no place\n", encoding="utf-8")
        self.fails("table", "r.json", "--into", "README.md", says="has no place for the table")


if __name__ == "__main__":
    make_fake()
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
