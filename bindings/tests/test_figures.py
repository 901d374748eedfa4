"""One program in each language reads the figures of its own heap: all of them read the same.

TEST_BUILD names the directory with libhummock.so (default: build of this tree). Rust's program is built by cargo,
as CARGO_TARGET_DIR says. TEST_PYTHON is a Python with the wheel.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import jsonschema

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).resolve()
SIZE = 10_000_000
LINK = [f"-L{BUILD}", "-lhummock", f"-Wl,-rpath,{BUILD}"]


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT / "bindings/rust")
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def c(out):
    run("cc", f"-I{ROOT}/include", HERE / "figures.c", "-o", out / "c", *LINK)
    return run(out / "c")


def cxx(out):
    run("c++", f"-I{ROOT}/include", "-x", "c++", HERE / "figures.c", "-o", out / "cxx", *LINK)
    return run(out / "cxx")


def rust(_):
    return run("cargo", "run", "--quiet", "--locked", "-p", "hummock", "--example", "figures")


def python(_):
    return run(os.environ.get("TEST_PYTHON", "python3"), "-m", "hummock", "run", HERE / "figures.py")


def pascal(out):
    run("fpc", "-v0we", f"-Fu{ROOT}/bindings/pascal", f"-Fi{ROOT}/bindings/pascal", f"-FU{out}", f"-FE{out}", f"-Fl{BUILD}",
        "-k-rpath", f"-k{BUILD}", HERE / "figures.pas")
    return run(out / "figures")


def shape(value):
    """The names in it, and their order; of a table's rows those of the first, as all have the same."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    return [shape(each) for each in value[:1]] if isinstance(value, list) else type(value)


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.numbers, cls.figures = {}, {}
        with tempfile.TemporaryDirectory() as folder:
            for language in (c, cxx, rust, python, pascal):
                numbers, text = language(pathlib.Path(folder)).strip().split("\n")
                cls.numbers[language.__name__] = list(map(int, numbers.split()))
                cls.figures[language.__name__] = json.loads(text)

    def test_numbers_are_those_of_the_json(self):
        for language, figures in self.figures.items():
            totals = figures["totals"]
            self.assertEqual(self.numbers[language],
                             [totals[name] for name in ("large_blocks", "large_bytes", "mapped", "purged")], language)

    def test_the_schema(self):
        schema = json.loads((ROOT / "docs/figures.schema.json").read_text())
        for figures in self.figures.values():
            jsonschema.validate(figures, schema)

    def test_all_are_alike(self):
        first = self.figures["c"]
        for language, figures in self.figures.items():
            with self.subTest(language):
                self.assertEqual((figures["version"], figures["hummock"]), (first["version"], first["hummock"]))
                self.assertEqual(figures["options"], first["options"])
                for table in ("totals", "huge_pages", "limits", "tags"):
                    self.assertEqual(shape(figures[table]), shape(first[table]))
                (drawn,) = (row for row in figures["tags"] if row["tag"] == 4711)
                (firsts,) = (row for row in first["tags"] if row["tag"] == 4711)
                self.assertEqual(drawn, firsts)
                self.assertGreaterEqual(drawn["bytes"], SIZE)
                self.assertGreaterEqual(figures["totals"]["large_bytes"], SIZE)


if __name__ == "__main__":
    unittest.main()
