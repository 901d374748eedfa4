#!/usr/bin/env python3
"""hummock bench spaces: tables, files, errors. Nothing here depends on how long anything takes.

Usage: spaces.py SOURCE HUMMOCK LIBRARY WORKER
"""

import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, TOOL, LIBRARY, WORKER = (os.path.realpath(path) for path in sys.argv[1:5])
SIZES = [4 << 20 >> i for i in range(19)]
SPACES = ["space", "space-bare", "space-threads", "space-small-pages"]
FIGURES = ["p50", "p99", "p999", "max"]
ROWS = {"sequential": 19, "churn": 19, "near-full": 13, "alternating": 1, "holes": 6}

try:
    import jsonschema
except ImportError:
    jsonschema = None


def schema_errors(document):
    schema = json.loads(pathlib.Path(SOURCE, "bench/schema-spaces.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in jsonschema.Draft202012Validator(schema).iter_errors(document)]


def run(*arguments, program=TOOL, timeout=1500, **more):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=timeout, check=False, **more)


class Spaces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.done = run("bench", "spaces", "--quick", "--worker", WORKER, "--lib", LIBRARY, "--json", cls.path("r.json"),
                       "--csv", cls.path("r.csv"), "--html", cls.path("r.html"))  # fmt: skip
        if cls.done.returncode != 0:
            raise AssertionError(cls.done.stderr + cls.done.stdout[-2000:])
        cls.document = json.loads(pathlib.Path(cls.path("r.json")).read_text(encoding="utf-8"))
        cls.names = [one["name"] for one in cls.document["contestants"]]

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    def results(self, scenario, contestant):
        return [r for r in self.document["results"] if (r["scenario"], r["contestant"]) == (scenario, contestant)]

    def test_who_took_part(self):
        self.assertEqual(self.names[:4], SPACES)
        self.assertTrue({"hummock", "system", "glibc-tuned"} <= set(self.names))
        for name in ("jemalloc", "mimalloc", "tcmalloc"):
            self.assertTrue(name in self.names or f"{name} is not installed" in self.document["missing"])

    @unittest.skipUnless(jsonschema, "jsonschema is not installed")
    def test_the_schema_holds(self):
        self.assertEqual(schema_errors(self.document), [])
        broken = json.loads(json.dumps(self.document))
        del broken["rounds"]
        broken["surprise"] = 1
        broken["results"][0]["malloc"] = {"calls": 1}
        self.assertEqual(len(schema_errors(broken)), 3)

    @unittest.skipUnless(jsonschema, "jsonschema is not installed")
    def test_stored_results_hold_to_the_schema(self):
        stored = sorted(pathlib.Path(SOURCE, "bench/results/spaces").glob("*.json"))
        self.assertTrue(stored)
        for file in stored:
            self.assertEqual(schema_errors(json.loads(file.read_text(encoding="utf-8"))), [], file.name)

    def test_every_contestant_has_figures_of_its_own(self):
        seen = set()
        for name in self.names:
            for scenario, rows in ROWS.items():
                results = self.results(scenario, name)
                self.assertEqual(len(results), rows, (scenario, name))
                for result in results:
                    for call in ("malloc", "free"):
                        self.hold_call(result[call], (scenario, name, result["size"], call))
            seen.add(json.dumps([r["malloc"] for r in self.results("sequential", name)]))
        self.assertEqual(len(seen), len(self.names))

    def hold_call(self, call, where):
        self.assertGreaterEqual(call["calls"], 1, where)
        for times in ("seen", "typical", "least"):
            ordered = [call[times][figure] for figure in FIGURES]
            self.assertEqual(ordered, sorted(ordered), where)
            self.assertLessEqual(call[times]["mean"], call[times]["max"] + 0.11, where)
        self.assertGreater(call["seen"]["max"], 0, where)
        self.assertLessEqual(call["least"]["max"], call["typical"]["max"] + 0.11, where)
        self.assertLessEqual(call["typical"]["max"], call["seen"]["max"] + 0.11, where)

    def test_calls_are_those_of_the_scenario(self):
        for name in self.names:
            sequential = self.results("sequential", name)
            self.assertEqual([r["size"] for r in sequential], SIZES)
            for result in sequential:
                wanted = min(1000, (256 << 20) // result["size"])
                self.assertEqual((result["malloc"]["calls"], result["free"]["calls"]), (wanted, wanted))
            for scenario in ("churn", "near-full"):
                everything, *by_size = self.results(scenario, name)
                self.assertEqual(everything["size"], 0)
                for call in ("malloc", "free"):
                    self.assertEqual(everything[call]["calls"], sum(r[call]["calls"] for r in by_size if r[call]))
                self.assertGreaterEqual(everything["free"]["calls"], 20000)
            self.assertEqual([r["blocks"] for r in self.results("holes", name)], [1000, 3000, 10000, 30000, 100000, 300000])
        counts = {json.dumps([r["malloc"]["calls"] for r in self.results("churn", name)]) for name in self.names}
        self.assertEqual(len(counts), 1)  # the same script for all

    def test_spaces_are_quiet_and_have_what_they_should(self):
        for process in self.document["processes"]:
            self.assertIsNone(process["error"])
            self.assertGreater(process["replays"], 0)
            if process["contestant"] not in SPACES:
                self.assertEqual(process["failures"], 0, process)
                continue
            self.assertIn("populated", process["achieved"])
            # The bench's own pages are few; a space that faulted would have one for each of its pages.
            self.assertLess(process["minor_faults"], 100, process)
            if process["scenario"] != "near-full":
                self.assertEqual(process["failures"], 0, process)

    def test_printed_figures(self):
        printed = self.document["printed"]
        self.assertEqual(printed["columns"], ["Windows", "RTX64 3.x", "RTX64 4.x"])
        for call, first, last in (("malloc", [9738.229, 375435.3, 1151.443], [35.19143, 696.0556, 23.38768]),
                                  ("free", [41126.05, 1889.739, 993.7319], [23.79408, 704.8333, 26.80978])):  # fmt: skip
            self.assertEqual([row["size"] for row in printed[call]], SIZES)
            self.assertEqual((printed[call][0]["nanoseconds"], printed[call][-1]["nanoseconds"]), (first, last))

    def test_the_tables(self):
        lines = self.done.stdout.splitlines()
        for title in ("Time to allocate, nanoseconds, median", "Time to free, nanoseconds, median", "Time to allocate, nanoseconds, p99",
                      "Time to free, nanoseconds, p99.9", "Time to allocate, nanoseconds, maximum"):  # fmt: skip
            at = lines.index(title)
            columns = lines[at + 1].split()
            self.assertEqual(columns[: len(self.names) + 1], ["bytes", *self.names], title)
            beside = 3 if title.endswith("median") else 0
            for i, size in enumerate(SIZES):
                cells = lines[at + 2 + i].split()
                self.assertEqual(cells[0], str(size), title)
                self.assertEqual(len(cells), 1 + len(self.names) + beside, title)
                self.assertNotIn("-", cells)
        self.assertEqual(sum(line.strip().startswith("least max") for line in lines), 4)

    def test_the_verdict_is_that_of_the_figures(self):
        self.assertEqual(len(self.document["verdict"]), len(SPACES) * 4)
        peers = [one["name"] for one in self.document["contestants"] if not one["ours"]]
        for line in self.document["verdict"]:
            value = lambda name, i: self.results("sequential", name)[i][line["call"]]["typical"][line["figure"]]  # noqa: E731
            lost = [SIZES[i] for i in range(19) if value(line["contestant"], i) > 1.02 * min(value(p, i) for p in peers)]
            self.assertEqual([loss["size"] for loss in line["above"]], lost, line)
            self.assertEqual((line["best"], line["sizes"]), (19 - len(lost), 19))

    def test_files(self):
        with open(self.path("r.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        wanted = sum(3 for r in self.document["results"] for call in ("malloc", "free") if r[call])
        self.assertEqual(len(rows), wanted)
        self.assertEqual({row["contestant"] for row in rows}, set(self.names))
        page = pathlib.Path(self.path("r.html")).read_text(encoding="utf-8")
        self.assertIn('"program":"hummock bench spaces"', page)
        self.assertNotIn("{{DATA}}", page)

    def test_the_page_is_drawn(self):
        chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
        if chromium is None:
            self.skipTest("Chromium is not installed")
        done = run("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", f"--user-data-dir={self.path('profile')}",
                   "--virtual-time-budget=30000", "--dump-dom", "file://" + self.path("r.html") + "#check", program=chromium)  # fmt: skip
        status = json.loads(done.stdout.split('id="report-status"')[1].split(">")[1].split("<")[0].replace("&quot;", '"').replace("&amp;", "&"))
        self.assertEqual(status["errors"], [])
        tables = {table["id"]: table["rows"] for table in status["tables"]}
        for scenario, rows in ROWS.items():
            self.assertEqual(tables[f"{scenario}:malloc:typical:p50"], rows)
        self.assertEqual({c["id"] for c in status["charts"]},
                         {f"{s}:{c}:{f}" for s in ("sequential", "churn", "near-full") for c in ("malloc", "free") for f in ("p50", "p99")})  # fmt: skip
        for chart in status["charts"]:
            self.assertGreater(chart["marks"], 20, chart["id"])

    def test_another_reader_says_what_it_is(self):
        done = run("bench", "compare", self.path("r.json"), self.path("r.json"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("is a result of hummock bench spaces", done.stderr)

    def test_bad_input(self):
        base = ["bench", "spaces", "--worker", WORKER, "--lib", LIBRARY]
        for arguments, says in (
            ([*base, "sideways"], "no scenario is called sideways"),
            ([*base, "--against", "jemallok"], "; the nearest is jemalloc"),
            (["bench", "spaces", "--worker", "/nowhere/worker", "--lib", LIBRARY], "`make bench`"),
            (["bench", "spaces", "--worker", "/nowhere/worker", "sideways"],
             "there are " + ", ".join(json.loads(run("--list", program=WORKER).stdout))),
            ([*base, "holes", "--json", "/nowhere/r.json"], "cannot be written"),
        ):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(says, done.stderr)
        for arguments, says in ((["sideways"], "no scenario"), (["holes", "--space", "moon"], "no kind"), (["holes", "--seed"], "needs a value"),
                                (["holes", "--replays", "x"], "is not right"), (["holes", "--threads", "0"], "is not right"), (["holes", "--loud"], "unknown option"),
                                (["holes", "--space", "space"], "libhummock.so preloaded")):  # fmt: skip
            done = run(*arguments, program=WORKER)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(says, done.stderr)

    def test_chosen_scenarios_and_peers(self):
        done = run("bench", "spaces", "alternating", "--quick", "--against", "system", "--times", "least", "--worker", WORKER, "--lib", LIBRARY,
                   "--json", self.path("few.json"))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        few = json.loads(pathlib.Path(self.path("few.json")).read_text(encoding="utf-8"))
        self.assertEqual([one["name"] for one in few["contestants"]], [*SPACES, "system"])
        self.assertEqual({r["scenario"] for r in few["results"]}, {"alternating"})
        self.assertEqual(few["verdict"], [])

    def test_threads_beside_the_measured_one(self):
        done = run("bench", "spaces", "alternating", "--quick", "--threads", "3", "--against", "system", "--worker", WORKER, "--lib", LIBRARY,
                   "--json", self.path("three.json"))  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 threads play each script at a time", done.stdout)
        three = json.loads(pathlib.Path(self.path("three.json")).read_text(encoding="utf-8"))
        self.assertEqual(three["threads"], 3)
        one = {p["contestant"]: p for p in self.document["processes"] if p["scenario"] == "alternating"}
        for process in three["processes"]:
            self.assertIsNone(process["error"])
            self.assertEqual(process["failures"], 0)
            self.assertEqual(process["calls"], one[process["contestant"]]["calls"])
        peaks = {p["contestant"]: p["peak_bytes"] for p in three["processes"]}
        for name in ("space", "space-threads"):  # three of one owner, or one as large as three
            self.assertGreater(peaks[name], 3 * 64 << 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
