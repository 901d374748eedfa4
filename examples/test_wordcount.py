"""Builds and runs the word count of each language and compares what it says with a count made here.

TEST_BUILD names the directory with libhummock.so (default: build); TEST_PYTHON an interpreter that has
the wheel, without which the Python one is left out.
"""

import collections
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parent
ROOT = EXAMPLES.parent
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).resolve()
TEXTS = sorted((ROOT / "docs").glob("*.md"))
HANG = 1500


def commonest():
    words = collections.Counter()
    for path in TEXTS:
        words.update(re.findall(r"[a-z]+", path.read_text(encoding="utf-8").lower(), re.ASCII))
    ranked = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{count} {word}\n" for word, count in ranked[:10]), len(words)


class WordCount(unittest.TestCase):
    def says(self, *command, folder=EXAMPLES, **environment):
        done = subprocess.run([*command, *TEXTS], capture_output=True, text=True, timeout=HANG, cwd=folder,
                              env={**os.environ, **environment})
        ranked, number = commonest()
        self.assertEqual((done.returncode, done.stdout), (0, ranked), done.stderr)
        self.assertRegex(done.stderr, rf"{number} words.* KiB in use, \d+ KiB at most\n$")

    def test_pascal(self):
        with tempfile.TemporaryDirectory() as out:
            unit = ROOT / "bindings" / "pascal"
            build = subprocess.run(["fpc", "-v0we", "-Sew", f"-Fu{unit}", f"-Fi{unit}", f"-Fl{BUILD}", f"-FU{out}",
                                    f"-FE{out}", EXAMPLES / "pascal" / "wordcount.pas"], capture_output=True, text=True)
            self.assertEqual(build.returncode, 0, build.stdout + build.stderr)
            self.says(pathlib.Path(out) / "wordcount", LD_LIBRARY_PATH=str(BUILD))

    def test_rust(self):
        self.says("cargo", "run", "--quiet", "--", folder=EXAMPLES / "rust")

    @unittest.skipUnless("TEST_PYTHON" in os.environ, "no interpreter with the wheel")
    def test_python(self):
        self.says(os.environ["TEST_PYTHON"], "-m", "hummock", "run", EXAMPLES / "python" / "wordcount.py")


if __name__ == "__main__":
    unittest.main(verbosity=2)
