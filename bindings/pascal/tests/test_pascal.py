"""The Pascal unit, compiled by Free Pascal and run, against the shared library and the static one.

TEST_BUILD names the directory with libhummock.so and libhummock.a (default: build of this tree).
"""

import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import unittest

from linked import linked

TESTS = pathlib.Path(__file__).resolve().parent
UNIT = TESTS.parent
ROOT = UNIT.parents[1]
BUILD = pathlib.Path(os.environ.get("TEST_BUILD", ROOT / "build")).resolve()
LIBRARIES = linked(BUILD)
MIMALLOC = "libmimalloc.so.2"
HANG = 1500


def setUpModule():
    global work
    work = tempfile.TemporaryDirectory(prefix="hummock-pascal-")


def tearDownModule():
    work.cleanup()


def compiled(source, *defines, static=False, optimised="-O2"):
    """Compiles once a set of defines; any warning is an error."""
    if static:
        defines += ("HUMMOCK_STATIC",)
    out = pathlib.Path(work.name) / "-".join((pathlib.Path(source).stem,) + defines)
    program = out / pathlib.Path(source).stem
    if not program.exists():
        out.mkdir(exist_ok=True)
        command = ["fpc", "-v0we", "-Sew", optimised, f"-Fu{UNIT}", f"-Fu{TESTS}", f"-Fi{UNIT}", f"-FU{out}",
                   f"-FE{out}", f"-Fl{LIBRARIES}", "-k-rpath", f"-k{LIBRARIES}", *(f"-d{name}" for name in defines),
                   str(TESTS / source)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0 or not program.exists():
            raise AssertionError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return program


def run(program, *arguments, limit=None, **environment):
    def set_limit():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=HANG,
                          preexec_fn=set_limit, env={**os.environ, **environment})


class Pascal(unittest.TestCase):
    def passes(self, program, *arguments, **options):
        done = run(program, *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_semantics(self):
        for static in (False, True):
            with self.subTest(static=static):
                self.assertEqual(self.passes(compiled("semantics.pas", static=static)).stdout, "all hold\n")

    def test_semantics_while_leaks_are_counted(self):
        done = self.passes(compiled("semantics.pas"), HUMMOCKPAS_LEAKS="1")
        self.assertEqual(done.stdout, "all hold\n")
        self.assertIn("hummock: no leaks", done.stderr)

    def test_a_stale_unit_is_not_taken(self):
        out = pathlib.Path(work.name) / "stale"
        out.mkdir()
        for unit, needed in (("Hummock", 1), ("HummockStatic", 0), ("Hummock", 1)):
            source = out / "stale.pas"
            source.write_text(f"program stale; uses {unit}; begin WriteLn(HummockInstalled); end.")
            subprocess.run(["fpc", "-v0we", "-Sew", f"-Fu{UNIT}", f"-Fi{UNIT}", f"-FU{out}", f"-Fl{LIBRARIES}", "-k-rpath",
                            f"-k{LIBRARIES}", str(source)], check=True, capture_output=True)  # fmt: skip
            dynamic = subprocess.run(["readelf", "-d", out / "stale"], check=True, capture_output=True, text=True).stdout
            self.assertEqual(dynamic.count("libhummock.so"), needed, unit)
            self.assertEqual(self.passes(out / "stale").stdout, "TRUE\n")

    def test_static_program_needs_no_library(self):
        program = compiled("semantics.pas", static=True)
        dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        needed = [line for line in dynamic.splitlines() if "(NEEDED)" in line]
        self.assertTrue(any("libc.so" in line for line in needed), dynamic)
        self.assertFalse(any("hummock" in line for line in needed), needed)

    def test_runtime_errors(self):
        for static in (False, True):
            program = compiled("runerrors.pas", static=static)
            for what, number in (("memory", 203), ("pointer", 204), ("realloc", 204)):
                with self.subTest(what=what, static=static):
                    done = run(program, what)
                    self.assertEqual(done.returncode, number)
                    self.assertIn(f"Runtime error {number}", done.stdout + done.stderr)

    def test_a_block_freed_twice_ends_the_program(self):
        done = run(compiled("runerrors.pas"), "twice")
        self.assertEqual(done.returncode, 204)  # the call that frees it again is told, and raises
        self.assertIn("Runtime error 204", done.stdout + done.stderr)

    def test_checked_mode(self):
        done = self.passes(compiled("churn.pas", optimised="-O3"), "4", "1000", "20000", HUMMOCK_CHECKED="on",
                           HUMMOCKPAS_LEAKS="1")
        self.assertIn("hummock: no leaks", done.stderr)

    def test_exhausted_memory_raises_and_the_program_goes_on(self):
        done = self.passes(compiled("exhaust.pas"), limit=400 << 20)
        self.assertEqual(done.stdout, "all hold\n")

    def test_late_install_is_refused(self):
        early = "memory was allocated before"
        for define, words in (("AFTER_CMEM", "another unit"), ("AFTER_BLOCKS", early), ("AFTER_THREADS", early)):
            with self.subTest(define):
                done = self.passes(compiled("late.pas", define))
                self.assertEqual(done.stdout, "FALSE\n")
                self.assertRegex(done.stderr, rf"^hummock: not installed: {words}.* first in the program's uses\n$")
        done = self.passes(compiled("late.pas"))
        self.assertEqual((done.stdout, done.stderr), ("TRUE\n", ""))

    def test_leaks(self):
        program = compiled("leaks.pas")
        self.assertEqual(self.passes(program).stderr, "")
        said = self.passes(program, HUMMOCKPAS_LEAKS="1").stderr
        self.assertIn("hummock: leaked: 4 blocks, 200300 bytes\n", said)
        self.assertRegex(said, r"leaked:   1 of 200000 bytes\n(hummock: leaked:     \$.*\n)+hummock: leaked:   3 of 100 bytes\n")
        self.assertIn("leaked: 4 blocks", self.passes(compiled("leaks.pas", "HUMMOCK_LEAKS")).stderr)

    def test_leaks_have_lines(self):
        done = self.passes(compiled("leak_lines.pas", optimised="-gl"), HUMMOCKPAS_LEAKS="1")
        lines = (UNIT / "tests/leak_lines.pas").read_text(encoding="ascii").split("\n")

        def line_of(mark):
            return 1 + next(index for index, line in enumerate(lines) if mark in line)

        said = done.stderr.split("hummock: leaked:   ")
        self.assertEqual(said[0], "hummock: leaked: 8 blocks, 4433 bytes\n")
        kinds = [[]]
        for text in said[1:]:
            if not text.startswith("  "):
                kinds.append([text.rstrip()])
            else:
                kinds[-1].append(re.search(r" line (\d+) of .*leak_lines.pas$", text.rstrip()).group(1))
        main = str(line_of("{ grow here }"))
        self.assertEqual(kinds[1], ["1 of 3000 bytes", str(line_of("{ grown }")), main])
        self.assertEqual(kinds[2], ["1 of 1000 bytes", str(line_of("{ kept }")), str(line_of("{ keep here }"))])
        self.assertEqual(kinds[3][1:], [str(line_of("{ a string }"))])
        self.assertEqual(kinds[4], ["4 of 25 bytes", str(line_of("{ lost }")), str(line_of("{ lose here }"))])
        self.assertEqual(kinds[5][1:], [str(line_of("{ an object }"))])

    def test_mmtest_gives_memory_back(self):
        peak = int(self.passes(compiled("mmtest.pas")).stdout)
        print(f"\n  MMTest: peak {peak} MiB", flush=True)
        self.assertGreater(peak, 20)
        self.assertLessEqual(peak, 110)

    def test_threads_hand_blocks_over(self):
        heaps, peak = map(int, self.passes(compiled("handoff.pas")).stdout.split())
        self.assertLessEqual(heaps, 2)
        self.assertLessEqual(peak, 64)

    def test_the_branch_for_delphi(self):
        program = compiled("churn.pas", "HUMMOCK_AS_DELPHI")
        done = self.passes(program, "4", "1000", "50000", HUMMOCKPAS_LEAKS="1")
        self.assertIn("hummock: no leaks", done.stderr)

    def churn(self):
        """The program on Hummock, on the C library's malloc, and the environments of the latter."""
        ours = compiled("churn.pas", optimised="-O3")
        theirs = compiled("churn.pas", "CMEM", optimised="-O3")
        rivals = {"cmem": {}, "cmem + mimalloc": {"LD_PRELOAD": MIMALLOC}}
        if "cannot be preloaded" in run(theirs, "1", "8", "1", LD_PRELOAD=MIMALLOC).stderr:
            print(f"\n  {MIMALLOC} is not installed: compared with the C library alone", flush=True)
            del rivals["cmem + mimalloc"]
        return ours, theirs, rivals

    def instructions(self, program, longest, **environment):
        """Executed instructions of a churn operation, start and end of the program left out."""
        counts = []
        for operations in (50_000, 250_000):
            done = self.passes("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, "1",
                               str(longest), str(operations), **environment)
            counts.append(int(re.search(r"refs:\s+([\d,]+)", done.stderr).group(1).replace(",", "")))
        return (counts[1] - counts[0]) / 200_000

    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
    def test_string_churn_takes_no_more_instructions(self):
        ours, theirs, rivals = self.churn()
        for longest in (64, 1000):
            spent = self.instructions(ours, longest)
            for name, environment in rivals.items():
                others = self.instructions(theirs, longest, **environment)
                print(f"\n  churn, strings up to {longest}: {spent:.0f} instructions an operation, {others:.0f} with {name}",
                      end="", flush=True)
                self.assertLessEqual(spent, others * 1.02)
        print(flush=True)

    def test_string_churn(self):
        """Reports CPU time beside the C library's malloc and mimalloc; what must hold is the strings."""
        ours, theirs, rivals = self.churn()
        for arguments in (("1", "64", "2000000"), ("1", "20000", "1600000"), ("8", "1000", "250000"),
                          ("8", "20000", "240000")):
            spent = {}
            for _ in range(3):  # interleaved, so that a busy machine is unfair to nobody
                spent.setdefault("hummock", []).append(float(self.passes(ours, *arguments).stdout))
                for name, environment in rivals.items():
                    spent.setdefault(name, []).append(float(self.passes(theirs, *arguments, **environment).stdout))
            middle = {name: statistics.median(times) for name, times in spent.items()}
            ratios = ", ".join(f"{middle['hummock'] / middle[name]:.2f} of {name}" for name in rivals)
            print(f"\n  churn, {arguments[0]} threads, strings up to {arguments[1]}: "
                  f"{middle['hummock']:.0f} ns CPU an operation, {ratios}", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
