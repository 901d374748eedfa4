"""Free Pascal's own tests of its heap, on Hummock: what passes with the run-time library's manager must pass.

They come from the source package of Debian's fpc, fetched once into TEST_BUILD (default: build of this tree);
where apt or its mirror is out of reach they are skipped, and the tests say so.
"""

import glob
import os
import pathlib
import re
import subprocess
import tarfile
import unittest

from linked import linked

UNIT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", UNIT.parents[1] / "build")).resolve()
LIBRARIES = linked(BUILD)
FETCHED = BUILD / "fpc-source"
HANG = 600
FOLDERS = ("test", "tbs", "webtbs", "tstunits")
ABOUT_THE_HEAP = re.compile(r"\b(reallocmem|memsize|[sg]etmemorymanager|get(fpc)?heapstatus|heaperror|allocmem|freememory|"
                            r"getmemory|returnnilifgrowheapfails|heaptrc|cmem|theap\w*|tmem)\b", re.IGNORECASE)


def write_sources():
    """The machine's package sources, asked for source packages."""
    (FETCHED / "parts").mkdir(parents=True, exist_ok=True)
    for name in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")]:
        if os.path.exists(name) and name.endswith((".list", ".sources")):
            text = pathlib.Path(name).read_text(encoding="utf-8")
            text = re.sub(r"^Types:.*$", "Types: deb-src", text, flags=re.MULTILINE)
            text = re.sub(r"^deb\s", "deb-src ", text, flags=re.MULTILINE)
            (FETCHED / "parts" / os.path.basename(name)).write_text(text, encoding="utf-8")


def fetch():
    """The folder with the tests, or raises unittest.SkipTest."""
    if not glob.glob(f"{FETCHED}/*.orig.tar.*"):
        write_sources()
        for place in ("lists/partial", "cache/archives/partial"):
            (FETCHED / place).mkdir(parents=True, exist_ok=True)
        apt = ["apt-get", "-qq", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={FETCHED}/parts",
               "-o", f"Dir::State::lists={FETCHED}/lists", "-o", f"Dir::Cache={FETCHED}/cache",
               "-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"]
        for call in (["update"], ["source", "--download-only", "fpc"]):
            try:
                done = subprocess.run(apt + call, cwd=FETCHED, capture_output=True, text=True, timeout=300, check=False)
            except (OSError, subprocess.TimeoutExpired) as error:
                raise unittest.SkipTest(f"Free Pascal's tests could not be fetched: {error}") from error
            if done.returncode != 0:
                raise unittest.SkipTest(f"Free Pascal's tests could not be fetched: {done.stderr.strip()[-300:]}")
    found = list(FETCHED.glob("*/fpcsrc/tests"))
    if not found:
        wanted = tuple(f"/fpcsrc/tests/{folder}/" for folder in FOLDERS)
        with tarfile.open(glob.glob(f"{FETCHED}/*.orig.tar.*")[0]) as archive:
            archive.extractall(FETCHED, [m for m in archive if any(part in m.name for part in wanted)])
        found = list(FETCHED.glob("*/fpcsrc/tests"))
    return found[0]


class Test:
    """One of them: a comment in its first lines says how it is compiled and how it should end."""

    def __init__(self, tests, source):
        self.tests, self.source = tests, source
        self.text = source.read_text(encoding="latin-1")

    def said(self, what):
        match = re.search(rf"%{what}\s*=\s*([^\n}}]*)", self.text[:2000], re.IGNORECASE)
        return match.group(1).split() if match else []

    def about_the_heap(self):
        return ABOUT_THE_HEAP.search(f"{self.source.stem} {self.text}") and not self.said("interactive")

    def compiled(self, manager, options):
        out = FETCHED / "out" / manager / self.source.stem
        out.mkdir(parents=True, exist_ok=True)
        program = out / self.source.stem
        program.unlink(missing_ok=True)
        subprocess.run(["fpc", "-v0", "-O2", *self.said("opt"), f"-Fu{self.tests}/tstunits", f"-Fu{self.source.parent}",
                        f"-FU{out}", f"-FE{out}", *options, str(self.source)], capture_output=True, check=False)
        return program if program.exists() else None

    def ended(self, program):
        """None when it ended as it should."""
        try:
            done = subprocess.run([program], cwd=program.parent, capture_output=True, stdin=subprocess.DEVNULL,
                                  timeout=HANG, check=False)
        except subprocess.TimeoutExpired:
            return f"still running after {HANG} s"
        good = done.returncode == int((self.said("result") or ["0"])[0])
        return None if good else f"ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]!r}"


class RunTimeLibrary(unittest.TestCase):
    def test_own_heap_tests(self):
        tests = fetch()
        ours = ("-Fahummock", f"-Fu{UNIT}", f"-Fi{UNIT}", f"-Fl{LIBRARIES}", "-k-rpath", f"-k{LIBRARIES}")
        ran = []
        for source in sorted(p for folder in FOLDERS[:3] for p in (tests / folder).rglob("*.pp")):
            test = Test(tests, source)
            if not test.about_the_heap():
                continue
            program = test.compiled("hummock", ours)
            wrong = "it is not compiled with the unit" if program is None else test.ended(program)
            if wrong is None:
                ran.append(source.stem)
                continue
            # For another system or processor, or a part of another test, if the stock manager has no more luck.
            stock = test.compiled("stock", ())
            with self.subTest(source.name):
                self.assertFalse(stock is not None and test.ended(stock) is None, wrong)
        print(f"\n  {len(ran)} of Free Pascal's own tests: {' '.join(ran)}", flush=True)
        for known in ("theap", "theapthread", "tmem"):
            self.assertIn(known, ran)


if __name__ == "__main__":
    unittest.main(verbosity=1)
