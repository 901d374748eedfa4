#!/usr/bin/env python3
"""The bench's report.

report.py template                            what its one file is made of
report.py browser HUMMOCK LIBRARY WORKER      headless Chromium draws it, from made-up and from measured results
                                              (77 without Chromium)
"""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import sample  # noqa: E402

REPORT = pathlib.Path(__file__).resolve().parents[3] / "bench/report"
TEMPLATE = pathlib.Path(os.environ["TEST_TEMPLATE"])
TOOL, LIBRARY, WORKER = (os.path.realpath(path) for path in sys.argv[2:5]) if len(sys.argv) == 5 else [""] * 3
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WITH_WEBGL = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"]
WITHOUT_WEBGL = ["--disable-gpu", "--disable-3d-apis"]


def load(text):
    """What a page loads: sources and links of elements, and addresses in styles."""
    body = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    return re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[^>]*>|url\([^)]*\)|@import[^;]*", body)


class Template(unittest.TestCase):
    def test_it_loads_nothing(self):
        text = TEMPLATE.read_text(encoding="utf-8")
        self.assertEqual(load(text), [])
        self.assertEqual(len(load('<script src="x.js"></script><link href="y.css"><style>p{background:url(z.png)}</style>')), 3)
        self.assertTrue("default-src 'none'" in text)

    def test_licences_are_in_it(self):
        text = TEMPLATE.read_text(encoding="utf-8")
        for file in (REPORT / "vendor").glob("LICENSE.*"):
            self.assertTrue(html.escape(file.read_text(encoding="utf-8").strip()) in text, file.name)


class Browser(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def fill(self, document):
        text = document if isinstance(document, str) else json.dumps(document).replace("</", "<\\/")
        page = TEMPLATE.read_text(encoding="utf-8").replace("{{DATA}}", text)
        pathlib.Path(self.path("page.html")).write_text(page, encoding="utf-8")
        return self.path("page.html")

    def draw(self, page, *options):
        """The page's own record of what it drew, and all of its text."""
        done = subprocess.run(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             f"--user-data-dir={self.path('profile')}", "--window-size=1300,1000", "--virtual-time-budget=30000",
             *options, "--dump-dom", f"file://{page}#check"],
            capture_output=True, text=True, timeout=1500, check=False,
        )  # fmt: skip
        found = re.search(r'id="report-status"[^>]*>([^<]*)<', done.stdout)
        self.assertTrue(found and found[1], done.stderr[-2000:])
        return json.loads(html.unescape(found[1])), done.stdout

    def hold_whole(self, status, document):
        """No errors, and every chart that the data calls for is there with something in it."""
        self.assertEqual(status["errors"], [])
        charts = {chart["id"]: chart for chart in status["charts"]}
        for name, chart in charts.items():
            self.assertGreater(chart["points"], 0, name)
            self.assertGreater(chart["marks"], 5, name)
        wanted = {"overview:time", "overview:memory", "waste"}
        names = [allocator["name"] for allocator in document["allocators"]]
        threads, sizes = {}, {}
        for result in document["results"]:
            cell = f"{result['workload']}|{result['threads'] or 0}|{result['size'] or 0}"
            if result["latency"]:
                wanted.add(f"latency:{cell}")
            if result["series"] and len(result["series"]) > 1:
                wanted.add(f"resident:{cell}")
            threads.setdefault((result["workload"], result["size"] or 0), set()).add(result["threads"])
            sizes.setdefault(result["workload"], set()).add(result["size"] or 0)
        for workload, all_sizes in sizes.items():
            scaled = [size for size in all_sizes if len(threads[workload, size]) > 1]
            if scaled:
                wanted.add(f"scaling:{workload}:{min(scaled)}")
            if scaled and len(all_sizes - {0}) > 1:
                wanted.update(f"heatmap:{workload}:{name}" for name in ["best", *names[1:]])
                wanted.update(f"{kind}:{workload}:{first}" for kind, first in (("surface", names[0]), ("ratio", "best")))
        shown = set(charts) | {name.split("+")[0] for name in charts}
        self.assertEqual(wanted - shown, set())
        for line in document["summary"]:  # the page finds its scores itself, since allocators can be left out of them
            own = status["scores"][line["allocator"]]
            self.assertEqual([own[key] for key in ("win", "even", "loss", "failed")], [line[key] for key in ("wins", "ties", "losses", "errors")])
            means = [line[f"{kind}_ratio_geomean"][against] for against in ("vs_baseline", "vs_best") for kind in ("time", "cpu", "memory")]
            for figure, mean in zip(own["means"], means, strict=True):
                self.assertAlmostEqual(figure, mean, places=9)
        self.assertGreaterEqual(len(status["verdict"]), 4)
        self.assertEqual(status["exported"]["csv"], len(document["results"]))
        self.assertGreater(status["exported"]["png"], 5000)
        rows = {table["id"]: table["rows"] for table in status["tables"]}
        cells = {(result["workload"], result["threads"], result["size"]) for result in document["results"]}
        self.assertEqual((rows["scores"], rows["cells"], rows["allocators"]), (len(names), len(cells), len(names)))
        self.assertGreater(rows["machine"], 10)
        return charts

    def test_everything(self):
        document = sample.sample("newest")
        charts = self.hold_whole(self.draw(self.fill(document), *WITH_WEBGL)[0], document)
        surfaces = [chart for chart in charts.values() if chart["kind"] == "webgl"]
        self.assertEqual(sum(len(chart["id"].split("+")) for chart in surfaces), 12 + 12)
        for chart in surfaces:
            self.assertGreater(chart["marks"], 100, chart["id"])  # distinct colours of what was drawn

    def test_without_webgl_there_are_tables(self):
        document = sample.sample("full")
        status, text = self.draw(self.fill(document), *WITHOUT_WEBGL)
        self.assertEqual(status["errors"], [])
        self.assertEqual(status["fallbacks"], ["surface:big-brain", "ratio:big-brain"])
        self.assertEqual({chart["kind"] for chart in status["charts"]}, {"svg"})
        for name in ("table-surface-hummock", "table-ratio-best", "table-ratio-jemalloc"):
            table = text.split(f'id="{name}"')[1].split("</table>")[0]
            self.assertEqual(table.count("<td"), len(sample.THREADS) * len(sample.SIZES), name)

    def test_failures_and_holes(self):
        document = sample.sample("holes")
        status, text = self.draw(self.fill(document), *WITH_WEBGL)
        self.hold_whole(status, document)
        self.assertTrue("killed by signal 11 &lt;/script&gt;&lt;b&gt;&amp;" in text)

    def test_what_was_not_measured_is_said(self):
        status, text = self.draw(self.fill(sample.sample("quick")), *WITH_WEBGL)
        self.assertEqual(status["errors"], [])
        self.assertTrue({"heatmap", "surface", "ratio", "scaling", "latency", "resident", "waste", "rows"} <= set(status["missing"]))
        self.assertTrue("This run measured no single operations." in text)

    def test_disturbed_results_are_marked(self):
        document = sample.sample("full")
        status, text = self.draw(self.fill(document), *WITHOUT_WEBGL)
        self.assertEqual(status["errors"], [])
        disturbed = sum(result["disturbed"] for result in document["results"])
        headline = re.search(r'<p id="verdict">(.*?)</p>', text)[1]
        self.assertIn(f"{disturbed} of {len(document['results'])} results were measured beside other load", headline)
        scores = text.split('id="scores"', 2)[-1].split("</table>")[0]
        self.assertIn("†5", scores)  # jemalloc's own means: pair, and server at four thread counts
        self.assertIn("beside other load †", text)
        for name in ("server · 1 thread †", "What server does &lt;in words&gt;."):
            self.assertIn(name, text)
        document["results"] = [{**result, "disturbed": False} for result in document["results"]]
        text = self.draw(self.fill(document), *WITHOUT_WEBGL)[1]
        self.assertNotIn('class="beside"', text)

    def test_allocators_can_be_left_out_and_the_theme_switched(self):
        page = self.fill(sample.sample("full"))
        with open(page, "a", encoding="utf-8") as file:
            file.write("""<script>
                [...document.querySelectorAll("#bar .legend button")].find((each) => each.textContent === "tcmalloc").click();
                const theme = document.querySelector("#bar select"); theme.value = "dark"; theme.dispatchEvent(new Event("change"));
                page.finish();
                </script>""")
        status, text = self.draw(page, *WITHOUT_WEBGL)
        self.assertEqual(status["errors"], [])
        self.assertEqual(sorted(status["scores"]), sorted({"hummock", *sample.PEERS} - {"tcmalloc"}))
        self.assertIn("Left out: tcmalloc.", text)
        self.assertNotIn("tcmalloc", text.split('<section id="scores"')[1].split('<section id="facts"')[0])
        self.assertIn('data-theme="dark"', text)

    def test_spaces(self):
        stored = json.loads((REPORT.parent / "results/spaces/2026-11-22.json").read_text(encoding="utf-8"))
        status, text = self.draw(self.fill(stored), *WITHOUT_WEBGL)
        self.assertEqual(status["errors"], [])
        legend = text.split('id="bar"')[1].split('class="tools"')[0]
        colors = re.findall(r"border-top: 3px (\w+) (rgb\([^)]*\))", legend)
        self.assertEqual(len(set(colors)), len(stored["contestants"]) + len(stored["printed"]["columns"]))
        self.assertEqual(len({color for _, color in colors}), len(colors))

    def test_no_data(self):
        self.assertEqual(self.draw(self.fill("{"))[0]["errors"], ["no data"])
        status, text = self.draw(str(TEMPLATE))
        self.assertEqual(status["errors"], ["no data"])
        self.assertTrue("hummock bench --html fills it" in text)

    def test_measured(self):
        done = subprocess.run(
            [TOOL, "bench", "big-brain", "random-live-10k", "small-sweeps", "--threads", "1,2", "--sizes", "64,4K", "--seconds", "0.05",
             "--repeat", "1", "--against", "system", "--worker", WORKER, "--lib", LIBRARY, "--json", self.path("r.json"),
             "--html", self.path("r.html")],
            capture_output=True, text=True, timeout=1500, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads(pathlib.Path(self.path("r.json")).read_text(encoding="utf-8"))
        status, text = self.draw(self.path("r.html"), *WITH_WEBGL)
        self.hold_whole(status, document)
        self.assertEqual(status["missing"], [])
        self.assertTrue(document["date"] in text)
        self.assertFalse('class="missing sample"' in text)


if __name__ == "__main__":
    part = {"template": Template, "browser": Browser}[sys.argv[1]]
    if part is Browser and CHROMIUM is None:
        print("skipped: Chromium is not installed (on Debian: apt-get install chromium)")
        sys.exit(77)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(part)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
