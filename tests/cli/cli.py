#!/usr/bin/env python3
"""hummock run and check: what they run, what they refuse, and what they say."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL, LIBRARY = sys.argv[1:3]


def hummock(*arguments, **more):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=1500, check=False, **more)


def compiled(folder, source, *flags):
    program = os.path.join(folder, "program")
    subprocess.run(["cc", "-x", "c", "-", "-o", program, *flags], input=source, text=True, check=True)
    return program


class Run(unittest.TestCase):
    def test_output_and_status_are_the_programs(self):
        done = hummock("run", "--", "sh", "-c", "echo out; exit 7")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("out\n", "", 7))

    def test_the_library_is_mapped(self):
        done = hummock("run", "--", "cat", "/proc/self/maps")
        self.assertIn(os.path.realpath(LIBRARY), done.stdout)

    def test_a_killed_program(self):
        self.assertEqual(hummock("run", "--", "sh", "-c", "kill -9 $$").returncode, 128 + 9)

    def test_options_reach_the_library(self):
        statistics = hummock("run", "--stats", "--", "true").stderr
        for name in ("live", "large", "large blocks", "threads"):
            self.assertRegex(statistics, rf"(?m)^  {name} +\d")
        self.assertIn("checked:on", hummock("run", "--checked", "--verbose", "--", "true").stderr)

    def test_reports_get_lines(self):
        source = "#include <stdlib.h>\nint main(void) {\n  void* p = malloc(9);\n  free(p);\n  free(p);\n}\n"
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(folder, source, "-g", "-w")
            report = hummock("run", "--checked", "--", program).stderr
            for line in report.splitlines():
                self.assertRegex(line, r"^hummock: \d+: ")
            text = subprocess.run([TOOL, "symbolize"], input="before\n" + report, capture_output=True,
                                  text=True, timeout=60)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertEqual(text.stdout.splitlines()[0], "before")
        for number in (3, 4, 5):
            self.assertRegex(text.stdout, rf"(?m)^hummock: \d+:     #0 main at .*:{number}")

    def test_not_found_and_not_executable(self):
        self.assertEqual(hummock("run", "--", "no-such-program-here").returncode, 127)
        self.assertEqual(hummock("run", "--", "/etc/passwd").returncode, 126)

    def test_a_missing_library(self):
        done = hummock("run", "--lib", "/nowhere.so", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("--lib", done.stderr)

    def test_what_is_no_hummock_is_not_preloaded(self):
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "libother.so")
            subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", other], check=True)
            for library, why in (("/etc/passwd", "invalid ELF header"), (other, "does not answer as Hummock does")):
                done = hummock("run", "--lib", library, "--", "echo", "ran")
                self.assertEqual((done.stdout, done.returncode), ("", 125))
                self.assertIn(why, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_from_any_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("a b", "a:b", "hümmock", "$LIB", " ", "it's", 'a"b', "hummock"):
                with self.subTest(name):
                    where = os.path.join(folder, name)
                    os.mkdir(where)
                    tool, library = os.path.join(where, "hummock"), os.path.join(where, "libhummock.so.1")
                    shutil.copy(TOOL, tool)
                    shutil.copy(LIBRARY, library)
                    # The second program is started by the first, and outlives the tool's own work.
                    script = "cat /proc/self/maps; sleep 0.1; cat /proc/self/maps"
                    done = subprocess.run([tool, "run", "--", "sh", "-c", script], capture_output=True, text=True,
                                          timeout=60, check=False)
                    self.assertEqual((done.stderr, done.returncode), ("", 0))
                    self.assertGreaterEqual(done.stdout.count(os.path.realpath(library)), 2)
                    again = subprocess.run([tool, "run", "--lib", "./libhummock.so.1", "--", "true"], cwd=where,
                                           capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual((again.stderr, again.returncode), ("", 0))

    def test_the_link_to_a_library(self):
        with tempfile.TemporaryDirectory(prefix="a b") as folder:
            library = os.path.join(folder, "libhummock.so.1")
            shutil.copy(LIBRARY, library)
            show = ("run", "--lib", library, "--", "sh", "-c", "echo $LD_PRELOAD")
            links = {subprocess.run([TOOL, *show], capture_output=True, text=True, check=True, umask=umask).stdout.strip()
                     for umask in (0o077, 0o022, 0o000)}
            link, = links
            self.addCleanup(shutil.rmtree, os.path.dirname(link))
            self.assertEqual(os.readlink(link), os.path.realpath(library))
            for place in (os.path.dirname(link), os.path.dirname(os.path.dirname(link))):
                self.assertEqual(os.stat(place).st_mode & 0o777, 0o755)  # nobody else may write there
            os.unlink(link)  # somebody led it elsewhere
            os.symlink("/etc/passwd", link)
            self.assertEqual(hummock(*show).stdout.strip(), link)
            self.assertEqual(os.readlink(link), os.path.realpath(library))

    @unittest.skipUnless(os.getuid() == 0, "root alone may become another user")
    def test_another_user_and_a_folder_that_is_not_his(self):
        user = 54321
        with tempfile.TemporaryDirectory(prefix="a b") as folder:
            os.chmod(folder, 0o755)
            for file in (TOOL, LIBRARY):
                shutil.copy(file, os.path.join(folder, os.path.basename(file).replace(".so.1.0.0", ".so.1")))
            os.mkdir(f"/tmp/hummock-{user}")  # of root: who owns it could lead him anywhere
            self.addCleanup(shutil.rmtree, f"/tmp/hummock-{user}")
            self.addCleanup(shutil.rmtree, f"/var/tmp/hummock-{user}", ignore_errors=True)
            done = subprocess.run([os.path.join(folder, os.path.basename(TOOL)), "run", "--", "sh", "-c", "echo $LD_PRELOAD"],
                                  capture_output=True, text=True, check=False, user=user, group=user, extra_groups=(), umask=0o077)
            self.assertEqual((done.stderr, done.returncode), ("", 0))
            self.assertTrue(done.stdout.startswith(f"/var/tmp/hummock-{user}/"), done.stdout)

    def test_usage(self):
        for bad in (("run",), ("run", "--no-such-option", "--", "true"), ("run", "--decay")):
            done = hummock(*bad)
            self.assertEqual(done.returncode, 125)
            self.assertTrue(done.stderr.startswith("hummock run: "))
            self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual(hummock("run", "--help").returncode, 0)

    def test_options_that_are_not_understood(self):
        def refused(words, *options):
            done = hummock("run", *options, "--", "echo", "ran")
            self.assertEqual((done.stdout, done.returncode), ("", 125))
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)

        refused("the nearest is require", "--conf", "huge_pages:requir")
        refused("the nearest is 512MB", "--conf", "huge_max:512XB")
        done = hummock("run", "--decay", "soon", "--conf", "verbos:on", "--", "echo", "ran")  # they promise nothing
        self.assertEqual((done.stdout, done.returncode, len(done.stderr.splitlines())), ("ran\n", 0, 2))
        done = hummock("run", "--decay", "2s", "--conf", "stats:1,log:no", "--verbose", "--", "true")
        for line in ("decay_ms:2000 (HUMMOCK_DECAY_MS)", "stats:exit (HUMMOCK_CONF)", "log:none (HUMMOCK_CONF)"):
            self.assertIn(line, done.stderr)

    def test_a_static_program_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(folder, "int main(void) { return 0; }", "-static")
            done = hummock("run", "--", program)
            self.assertEqual(done.returncode, 125)
            self.assertIn("statically linked", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_a_script_runs_by_its_interpreter(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "script")
            with open(script, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\nexit 3\n")
            os.chmod(script, 0o755)
            self.assertEqual(hummock("run", "--", script).returncode, 3)

    def test_a_program_with_its_own_malloc_is_told(self):
        source = """#include <stddef.h>
            static char pool[1 << 20]; static size_t at;
            void* malloc(size_t n) { void* p = pool + at; at += (n + 15) / 16 * 16; return p; }
            void free(void* p) { (void)p; }
            int main(void) { return malloc(1) == NULL; }"""
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(folder, source, "-rdynamic", "-fno-builtin")
            done = hummock("run", "--", program)
            self.assertEqual(done.returncode, 0)
            self.assertIn("its own malloc", done.stderr)

    def test_check(self):
        self.assertEqual(hummock("check", "cat").returncode, 0)
        self.assertEqual(hummock("check", "no-such-program-here").returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
