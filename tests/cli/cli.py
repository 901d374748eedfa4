#!/usr/bin/env python3
"""hummock run and check: what they run, what they refuse, and what they say."""

import os
import subprocess
import sys
import tempfile
import unittest

TOOL, LIBRARY = sys.argv[1:3]


def hummock(*arguments, **more):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=60, check=False, **more)


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

    def test_not_found_and_not_executable(self):
        self.assertEqual(hummock("run", "--", "no-such-program-here").returncode, 127)
        self.assertEqual(hummock("run", "--", "/etc/passwd").returncode, 126)

    def test_a_missing_library(self):
        done = hummock("run", "--lib", "/nowhere.so", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("--lib", done.stderr)

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
