"""Files that commands write: which of them are there already, and stay."""

import os
import shutil
import tempfile
import unittest

from support import hummock


class Outputs(unittest.TestCase):
    def test_the_file_of_a_log_or_a_profile_stands_behind_an_equals_sign(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            shutil.copy("/bin/echo", program)
            with open(program, "rb") as file:
                content = file.read()
            for option in ("--log", "--profile"):
                for words in ((option, "./program", "--log"), (option, "--", "./program", "--log"),
                              (option, option, "./program", "--log")):
                    done = hummock("run", *words, cwd=folder)
                    self.assertEqual((done.stdout, done.returncode), ("--log\n", 0))
            with open(program, "rb") as file:
                self.assertEqual(file.read(), content)
            hummock("run", "--log=out", "--profile=out.html", "--", "./program", cwd=folder)
            self.assertLessEqual({"out", "program"}, set(os.listdir(folder)))

    def test_no_program_is_written_over(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, mode, why in (("elf", 0o644, "is a program"), ("script", 0o755, "is executable"), ("plain", 0o644, "")):
                path = os.path.join(folder, name)
                shutil.copyfile("/bin/true" if name == "elf" else "/etc/passwd", path)
                os.chmod(path, mode)
                with open(path, "rb") as file:
                    content = file.read()
                for option in ("--log", "--profile"):
                    done = hummock("run", f"{option}={path}", "--", "echo", "ran")
                    if not why:
                        self.assertEqual((done.stdout, done.returncode), ("ran\n", 0))
                        continue
                    self.assertEqual((done.stdout, done.returncode), ("", 125))
                    self.assertIn(f"{option}={path}: it {why}", done.stderr)
                    self.assertEqual(len(done.stderr.splitlines()), 1)
                if why:
                    with open(path, "rb") as file:
                        self.assertEqual(file.read(), content)

    def test_no_result_is_written_over_a_program(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            shutil.copy("/bin/true", program)
            with open(program, "rb") as file:
                before = file.read()
            for command in (["record", "-o", program, "--", "true"], ["log", "--html", program, program],
                            ["replay", "--json", program, program], ["bench", "--json", program, "--list"],
                            ["bench", "spaces", "--csv", program]):
                done = hummock(*command)
                self.assertEqual(done.returncode, 2, command)
                self.assertIn("is a program", done.stderr)
            with open(program, "rb") as file:
                self.assertEqual(file.read(), before)

    def test_a_trace_stays_where_nothing_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace")
            with open(trace, "w", encoding="ascii") as file:
                file.write("old")
            self.assertEqual(hummock("record", "-o", trace, "--", "no-such-program-here").returncode, 127)
            with open(trace, encoding="ascii") as file:
                self.assertEqual(file.read(), "old")
