#!/usr/bin/env python3
"""The region log: what it holds, that it survives, and what hummock log makes of it.

Usage: log.py PROGRAM LIBRARY TOOL
"""
import fcntl
import glob
import html.parser
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIBRARY, TOOL = map(os.path.abspath, sys.argv[1:4])
EVENT = re.compile(r" *(\d+\.\d{3})s: +(\d+\.\d\d)ms +(\d+)k at:(0x[0-9a-f]+) (\S[^(]*?) \( *(\d+)M\)(?: (.*))?$")
FIGURES = re.compile(r"figures: +(\d+\.\d{3})s live (\d+)k resident (\d+)k")
PAIR = re.compile(r"[A-Za-z][\w ]*: .*$")


class Log:
    """A log that is wholly understood: any line of no known form is an error."""

    def __init__(self, text):
        assert text.endswith("\n"), "the last line is not whole"
        self.head, self.events, self.facts, self.options, self.summary, self.figures = "", [], {}, {}, {}, []
        for line in text.splitlines():
            event = EVENT.match(line)
            if event:
                self.events.append(event.groups())
            elif re.fullmatch(r"hummock \d+\.\d+\.\d+ region log", line):
                assert not self.head, "two heads"
                self.head = line
            elif line.startswith("figures:"):
                self.figures.append(tuple(map(float, FIGURES.fullmatch(line).groups())))
            elif line != "events:":
                assert PAIR.match(line), f"a line of no known form: {line!r}"
                name, value = line.split(": ", 1)
                if name == "option":
                    self.options[value.split(":")[0]] = value
                elif name.startswith("summary"):
                    self.summary[name[8:]] = value
                else:
                    self.facts[name] = value

    def kinds(self):
        return {event[4] for event in self.events}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def tool(self, *arguments, env=None):
        full = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_")} | (env or {})
        return subprocess.run([TOOL, *arguments], cwd=self.folder, env=full, capture_output=True, text=True,
                              timeout=1500, check=False)

    def logs(self):
        return sorted(glob.glob(self.folder + "/malloc_*.log"))

    def logged(self, *arguments, conf=""):
        done = self.tool("run", "--log", *(("--conf", conf) if conf else ()), "--", PROGRAM, *arguments)
        texts = {path: open_text(path) for path in self.logs()}
        return done, texts


def open_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Contents(Case):
    def test_head_events_and_summary(self):
        done, texts = self.logged("ends")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (path, text), = texts.items()
        log = Log(text)
        self.assertEqual(os.path.basename(path), f"malloc_{log.facts['process']}.log")
        for fact in ("started", "program", "system", "kernel", "cpu", "memory", "commit", "processes", "uptime",
                     "rights", "locked memory limit", "address space limit", "PR_SET_THP_DISABLE"):
            self.assertIn(fact, log.facts)
        self.assertEqual(log.facts["program"], os.path.realpath(PROGRAM))
        self.assertIn(os.uname().release, log.facts["kernel"])
        self.assertEqual(log.facts["active"], "yes, the process's malloc is Hummock's")
        self.assertEqual(log.options["log"], "log:malloc_%p.log (HUMMOCK_LOG)")
        self.assertEqual(log.options["decay_ms"], "decay_ms:1000 (default)")
        self.assertGreater(len(log.options), 10)
        self.assertLessEqual({"Alloc SP", "Purge"}, log.kinds())
        self.assertTrue({"Grow", "Move"} & log.kinds())
        # Where the large block could not grow in place, its old one was freed; where it stands is random.
        self.assertTrue({"Grow", "Free"} & log.kinds())
        self.assertIn("peak", log.summary)
        total = int(re.search(r"(\d+) bytes", log.summary["mapped"]).group(1))
        self.assertGreaterEqual(total, 32 << 20)
        times = [float(event[0]) for event in log.events]
        self.assertEqual(times, sorted(times))
        # The first region: 32 MiB, whole.
        first = [event for event in log.events if event[6] == "a region"][0]
        self.assertEqual(int(first[2]), 32768)
        self.assertEqual(int(first[3], 16) % (32 << 20), 0)

    def test_the_running_total_adds_up(self):
        _, texts = self.logged("ends")
        (text,) = texts.values()
        kib = 0
        for _, _, size, _, what, total, reason in Log(text).events:
            # Where a block above 16 MiB is resized the size is the new one: what follows is not held to it.
            if what in ("Grow", "Move"):
                break
            if what.startswith("Alloc"):
                kib += int(size) + (64 if reason == "a large block" else 0)  # its headers
            self.assertEqual(int(total), kib >> 10)
        self.assertGreater(kib, 32768)

    def test_flush_requests(self):
        code = "import ctypes; x = bytearray(10); ctypes.CDLL(None).malloc_trim(4096)"
        self.tool("run", "--log", "--", sys.executable, "-c", code)
        text = "".join(map(open_text, self.logs()))
        self.assertRegex(text, r" 4k at:0x0 Flush request \( *\d+M\) to keep")

    def test_off_by_default(self):
        self.tool("run", "--", PROGRAM, "ends")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_name_of_ones_own(self):
        done = self.tool("run", "--log=mine_%p.txt", "--", PROGRAM, "ends")
        self.assertEqual(done.returncode, 0)
        (name,) = os.listdir(self.folder)
        self.assertRegex(name, r"^mine_\d+\.txt$")
        self.assertEqual(Log(open_text(os.path.join(self.folder, name))).options["log"],
                         "log:mine_%p.txt (HUMMOCK_LOG)")

    def test_a_program_executed_by_another_one_goes_on_in_its_file(self):
        self.tool("run", "--log", "--", "sh", "-c", f"exec {shlex.quote(PROGRAM)} ends")
        (path,) = self.logs()
        self.assertEqual(open_text(path).count(" region log\n"), 2)
        self.assertEqual(self.tool("log", path).stdout.count("\nHummock ") + 1, 2)


class Survival(Case):
    def test_a_crash_leaves_all_of_it(self):
        for _ in range(5):
            done, texts = self.logged("killed")
            self.assertEqual(done.returncode, -9)
            (path, text), = texts.items()
            log = Log(text)
            self.assertGreater(len(log.events), 10)
            self.assertEqual(log.summary, {})
            shown = self.tool("log", path)
            self.assertIn("crashed, or was killed", shown.stdout)
            os.remove(path)

    def test_a_child_has_its_own(self):
        done, texts = self.logged("forks")
        child = re.search(r"child=(\d+)", done.stdout).group(1)
        self.assertEqual(len(texts), 2)
        parent, = [Log(t) for p, t in texts.items() if not p.endswith(f"_{child}.log")]
        own = Log(texts[f"{self.folder}/malloc_{child}.log"])
        self.assertEqual(own.facts["process"], f"{child}, forked from {parent.facts['process']}")
        self.assertTrue(own.events and own.summary and parent.summary)

    def test_closed_descriptors(self):
        done, texts = self.logged("closes")
        self.assertEqual(done.returncode, 0)
        (text,) = texts.values()
        self.assertTrue(Log(text).summary)

    def test_another_folder(self):
        _, texts = self.logged("moves")
        (text,) = texts.values()
        self.assertTrue(Log(text).summary)

    def test_a_folder_that_may_not_be_written(self):
        done = self.tool("run", "--log=/nowhere/at/all.log", "--", PROGRAM, "ends")
        self.assertEqual(done.returncode, 0)
        self.assertIn("cannot be opened (ENOENT): no region log", done.stderr)

    def test_a_pipe_without_a_reader(self):
        pipe = self.folder + "/pipe"
        os.mkfifo(pipe)
        done = self.tool("run", f"--log={pipe}", "--", PROGRAM, "ends", env={"HUMMOCK_STATS": pipe})
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"the log {pipe} cannot be opened (ENXIO): no region log", done.stderr)
        self.assertRegex(done.stderr, rf"the statistics of process \d+ cannot be written to {pipe} \(ENXIO\)")

    def test_a_pipe_with_a_slow_reader(self):
        pipe = self.folder + "/pipe"
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        with subprocess.Popen([TOOL, "run", f"--log={pipe}", "--", PROGRAM, "ends"], cwd=self.folder) as child, \
                open(end, encoding="utf-8") as reader:
            select.select([end], [], [])  # until somebody has written
            os.set_blocking(end, True)
            log = Log(reader.read())
            self.assertEqual(child.wait(timeout=1500), 0)
        self.assertTrue(log.summary)


class Page(html.parser.HTMLParser):
    VOID = {"meta", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.kinds, self.wrong = [], {}, []

    def handle_starttag(self, tag, attrs):
        self.kinds[tag] = self.kinds.get(tag, 0) + 1
        for name, value in attrs:
            if name in ("src", "href") or "http" in (value or ""):
                self.wrong.append((tag, name, value))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(("/" + tag, "", ""))


class Shown(Case):
    def test_timeline(self):
        _, texts = self.logged("ends")
        (path,) = texts
        shown = self.tool("log", path, "--rows", "7")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        rows = re.findall(r"^ +\d+\.\d{3}s +(\d+) MiB ([#.]*)", shown.stdout, re.M)
        self.assertEqual(len(rows), 7)
        # More # never stands beside a lower number.
        bars = [bar.count("#") for _, bar in sorted(rows, key=lambda row: int(row[0]))]
        self.assertEqual(bars, sorted(bars))
        self.assertIn("Large pages are not used", shown.stdout)
        self.assertIn("Slowest:", shown.stdout)
        allocations = sum(int(n) for n in re.findall(r"s +\d+ MiB [#. ]{20} +[-\d]+(?: MiB)? +[-\d]+(?: MiB)? +(\d+)", shown.stdout))
        log = Log(texts[path])
        self.assertEqual(allocations, sum(e[4].startswith("Alloc") for e in log.events))

    def test_page(self):
        _, texts = self.logged("ends")
        (path,) = texts
        shown = self.tool("log", path, "--html", "page.html")
        self.assertEqual((shown.returncode, shown.stdout.splitlines()[-1]), (0, "Wrote page.html: open it in a browser."))
        page = Page()
        text = open_text(self.folder + "/page.html")
        page.feed(text)
        self.assertEqual((page.open, page.wrong), ([], []))
        self.assertGreaterEqual(page.kinds["svg"], 2)
        self.assertGreaterEqual(page.kinds["circle"], len(Log(texts[path]).events))
        self.assertNotIn("script", page.kinds)

    def test_curves_of_live_and_resident_memory(self):
        code = ("import time\nheld = []\nfor i in range(200):\n    held.append([bytearray(1000) for _ in range(100)])\n    time.sleep(0.002)\n"
                "held = None\nfor i in range(100):\n    x = [bytearray(2000) for _ in range(50)]\n    time.sleep(0.002)\n")
        self.tool("run", "--log", "--", sys.executable, "-c", code)
        (path,) = self.logs()
        figures = Log(open_text(path)).figures
        self.assertGreater(len(figures), 3)
        self.assertEqual(figures, sorted(figures))
        most = max(live for _, live, _ in figures)
        self.assertGreater(most, 15000)  # 20 MB of blocks of 1,000 bytes; the last figure may be a while before
        self.assertLess(figures[-1][1], most)
        for _, live, resident in figures:
            self.assertLess(live, resident + 1024)
        self.assertEqual(self.tool("log", path, "--html", "page.html").returncode, 0)
        text = open_text(self.folder + "/page.html")
        for curve in ("resident", "live"):
            drawn = re.search(f'<path class="{curve}" d="([^"]*)"', text)
            self.assertEqual(len(re.findall("[ML]", drawn[1])), len(figures))
        self.assertRegex(self.tool("log", path).stdout, r"\d+ MiB [#.]+ +\d+ MiB +\d+ MiB")

    def test_what_a_log_says_is_text(self):
        with open(self.folder + "/bad.log", "w", encoding="utf-8") as file:
            file.write("hummock 1.0.0 region log\nprogram: <script>alert(1)</script>\nevents:\n"
                       "    0.001s:    0.10ms    2048k at:0x1000 Alloc LP failed -> THP (    2M) <b>&\nrubbish\n")
        shown = self.tool("log", "bad.log", "--html", "bad.html")
        self.assertEqual(shown.returncode, 0)
        self.assertIn("1 lines were not understood", shown.stdout)
        self.assertIn("Last fallback: Alloc LP failed -> THP (<b>&)", shown.stdout)
        text = open_text(self.folder + "/bad.html")
        self.assertNotIn("<script>", text)
        self.assertNotIn("<b>", text)

    def test_bad_files(self):
        with open(self.folder + "/empty", "w", encoding="utf-8"):
            pass
        for name, what in (("/nowhere", "No such file"), (self.folder, "is a folder"), ("empty", "empty is not a region log"),
                           ("/etc/passwd", "/etc/passwd is not a region log")):
            shown = self.tool("log", name)
            self.assertEqual((shown.returncode, shown.stdout), (1, ""))
            self.assertIn(what, shown.stderr)
        with open(self.folder + "/a.log", "w", encoding="utf-8") as file:
            file.write("hummock 1.0.0 region log\nevents:\n")
        self.assertIn("No events", self.tool("log", "a.log").stdout)
        self.assertEqual(self.tool("log", "a.log", "--html", "/nowhere/page.html").returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
