#!/usr/bin/env python3
"""hummock run and check: what they run, what they refuse, and what they say."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from outputs import Outputs  # noqa: F401 (unittest finds it here)
from support import LIBRARY, TOOL, compiled, hummock


class Run(unittest.TestCase):
    def test_output_and_status_are_the_programs(self):
        done = hummock("run", "--", "sh", "-c", "echo out; exit 7")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("out\n", "", 7))

    def test_a_talkative_loader(self):
        done = hummock("run", "--", "echo", "ran", env=dict(os.environ, LD_DEBUG="all"))
        self.assertEqual((done.stdout, done.returncode), ("ran\n", 0))

    def test_the_library_is_mapped(self):
        done = hummock("run", "--", "cat", "/proc/self/maps")
        self.assertIn(os.path.realpath(LIBRARY), done.stdout)

    def test_closed_streams_stay_closed(self):
        script = """exec 9>&1 0<&- 1>&- 2>&-
            "$0" run -- sh -c 'for i in 0 1 2; do [ -e /proc/$$/fd/$i ] && echo $i >&9; done; grep -c hummock /proc/$$/maps >&9'"""
        done = subprocess.run(["bash", "-c", script, TOOL], capture_output=True, text=True, timeout=1500, check=False)
        self.assertRegex(done.stdout, r"\A[1-9]\d*\n\Z")
        self.assertEqual(done.returncode, 0)

    def test_it_becomes_the_program(self):
        self.assertEqual(hummock("run", "--", "sh", "-c", "kill -9 $$").returncode, -9)
        with subprocess.Popen([TOOL, "run", "--", "sh", "-c", "trap 'echo got it; exit 5' WINCH; echo $$; while :; do sleep 0.05; done"],
                              stdout=subprocess.PIPE, text=True) as child:
            self.assertEqual(int(child.stdout.readline()), child.pid)
            child.send_signal(signal.SIGWINCH)
            self.assertEqual((child.stdout.readline(), child.wait(timeout=600)), ("got it\n", 5))

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
            alone = subprocess.run([TOOL, "symbolize"], input=report, capture_output=True, text=True, timeout=60,
                                   env={"PATH": folder})
            self.assertIn("addr2line is missing", alone.stderr)
            self.assertEqual((alone.stdout, alone.returncode), (report, 1))
            text = subprocess.run([TOOL, "symbolize"], input="before\n" + report, capture_output=True,
                                  text=True, timeout=60)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertEqual(text.stdout.splitlines()[0], "before")
        for number in (3, 4, 5):
            self.assertRegex(text.stdout, rf"(?m)^hummock: \d+:     #0 main at .*:{number}")

    def test_not_found_and_not_executable(self):
        self.assertEqual(hummock("run", "--", "no-such-program-here").returncode, 127)
        self.assertEqual(hummock("run", "--", "/etc/passwd").returncode, 126)
        self.assertEqual(hummock("run", "--", "/dev/null").returncode, 126)
        done = hummock("run", "--", "/tmp")
        self.assertEqual((done.stderr, done.returncode), ("hummock run: /tmp: is a folder\n", 126))

    def test_a_missing_library(self):
        done = hummock("run", "--lib", "/nowhere.so", "--", "true")
        self.assertEqual((done.stderr, done.returncode), ("hummock run: --lib /nowhere.so: no such file\n", 125))

    def test_what_is_no_hummock_is_not_preloaded(self):
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "libother.so")
            subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", other], check=True)
            for library, why in (("/etc/passwd", "invalid ELF header"), (other, "it is not Hummock")):
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
        refused("hummock run: --initial cannot be \"999G\"; the nearest is 512G; it may be a size from 0 to 512G", "--initial", "999G")
        refused("hummock run: --expand cannot be \"x\"", "--initial", "1M", "--expand", "x")
        refused("hummock run: --decay cannot be \"soon\"; the nearest is never; it may be", "--decay", "soon")
        refused("hummock run: --reserve is start or firstalloc", "--initial", "1M", "--reserve", "frist")
        refused("hummock run: --initial needs a size", "--initial")  # not "--"
        refused("hummock run: --lib needs a file", "--lib")
        done = hummock("run", "--conf", "verbos:on,decay_ms:soon", "--", "echo", "ran")  # they promise nothing
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
            self.checks(0, f"{script} is a script of /bin/sh: Hummock can be preloaded", script)
            with open(script, "w", encoding="ascii") as file:
                file.write("#!/nowhere/sh\nexit 3\n")
            done = hummock("run", "--", script)
            self.assertEqual(done.returncode, 127)
            self.assertIn(f"hummock run: {script} is a script of /nowhere/sh: not found", done.stderr)
            self.checks(1, f"{script} is a script of /nowhere/sh: not found", script)

    def test_a_program_with_its_own_malloc_is_told(self):
        source = """#include <stdlib.h>
            static char pool[1 << 20]; static size_t at; static int ready;
            void* malloc(size_t n) { void* p = pool + at; at += (n + 15) / 16 * 16; return p; }
            void free(void* p) { if (p != NULL && !ready) abort(); }
            int main(void) { ready = 1; void* p = malloc(1); free(p); return p == NULL; }"""
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(folder, source, "-rdynamic", "-fno-builtin")
            for asked in ([], ["--log=" + folder + "/log"]):
                done = hummock("run", *asked, "--", program)
                self.assertEqual(done.returncode, 0)
                self.assertIn("its own malloc", done.stderr)
            for asked in (["run", "--checked"], ["run", "--initial", "16M"], ["run", "--conf", "limit_hard:64M"],
                          ["run", "--conf", "stats:none, limit_soft : 64M"]):
                done = hummock(*asked, "--", program)
                self.assertEqual(done.returncode, 125, asked)
                self.assertIn("its own malloc", done.stderr)
                self.assertIn("there can be no", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_what_excludes_each_other(self):
        for conf, why in (("checked:on", "in checked mode"), ("stats:none, Checked : on", "in checked mode"),
                          ("space_initial:64M", "where a space serves malloc")):
            for command in ("profile", "leaks", "record"):
                with tempfile.TemporaryDirectory() as folder:
                    done = hummock(command, *(["-o", folder + "/trace"] if command == "record" else []), "--", "true",
                                   env=dict(os.environ, HUMMOCK_CONF=conf))
                    self.assertEqual(done.returncode, 125, (command, done.stderr))
                    self.assertIn(why, done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(hummock("profile", "--", TOOL, "run", "--checked", "--", "true").returncode, 0)

    def checks(self, status, words, subject):
        done = hummock("check", subject)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        self.assertIn(words, done.stdout)

    def test_check_of_programs(self):
        self.checks(0, "can be preloaded", "cat")
        self.checks(1, "not found", "no-such-program-here")
        self.checks(1, "not executable", "/etc/passwd")
        self.checks(1, "is a folder", "/tmp")
        hello = "int main(void) { return 0; }"
        static = os.path.join(os.path.dirname(os.path.realpath(LIBRARY)), "libhummock.a")
        with tempfile.TemporaryDirectory() as folder:
            self.checks(0, "linked into it", compiled(folder, hello, "-static", "-x", "none", static, "-Wl,-u,hummock_malloc", "-pthread", "-s"))
            self.checks(1, "pkg-config --static", compiled(folder, hello, "-static"))
            if subprocess.run(["cc", "-fsanitize=address", "-x", "c", "-", "-o", folder + "/try"], input=hello, text=True,
                              check=False, capture_output=True).returncode == 0:
                self.checks(1, "AddressSanitizer", compiled(folder, hello, "-fsanitize=address"))
            self.checks(1, "defines its own malloc",
                        compiled(folder, "void* malloc(unsigned long n) { return 0; } " + hello, "-rdynamic", "-w"))

    def test_check_of_processes(self):
        self.checks(1, "no such process", "999999999")
        for start, status, words in (((), 1, "does not run on Hummock"), ((TOOL, "run", "--"), 0, "runs on Hummock")):
            with subprocess.Popen([*start, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
                child.stdin.write(b"x")
                child.stdin.flush()
                child.stdout.read(1)  # it runs by now
                self.checks(status, words, str(child.pid))
                child.stdin.close()

    def test_what_is_not_understood_is_named(self):
        for bad, words in ((("run", "--stat", "--", "true"), "hummock run: there is no option --stat; the nearest is --stats"),
                           (("run", "--nonsense", "--", "true"), "hummock run: there is no option --nonsense\n"),
                           (("run", "-x", "--", "true"), "hummock run: there is no option -x\n"),
                           (("runn",), "hummock: there is no command runn; the nearest is run"),
                           (("runn", "--help"), "hummock: there is no command runn; the nearest is run"),
                           (("help", "runn"), "hummock: there is no command runn; the nearest is run"),
                           (("-x",), "hummock: there is no option -x\n"),
                           (("--",), "hummock: name a command"),
                           (("record", "-o", "--", "true"), "hummock record: -o needs a file"),
                           (("bench", "--qick"), "hummock bench: there is no option --qick; the nearest is --quick")):
            done = hummock(*bad)
            self.assertEqual((done.returncode, done.stdout), (125 if bad[0] == "run" else 2, ""))
            self.assertIn(words, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_what_is_wrong_is_said_in_plain_words(self):
        for bad, words in ((("ps", "extra"), "hummock ps: unexpected argument extra\n"),
                           (("run", "--conf"), "hummock run: --conf needs a value\n"),
                           (("completion", "tcsh"), "hummock completion: shell: tcsh is not known; it may be bash, zsh or fish\n"),
                           (("stats", "1", "--every", "0"), "hummock stats: --every: 0 is not a time from 1ms to 24h\n"),
                           (("stats", "1", "--wait", "soon"), "hummock stats: --wait: soon is not a time, as 500ms or 2s\n"),
                           (("log", "a", "--rows", "many"), "hummock log: --rows: many is not a whole number from 1 to 10000\n"),
                           (("log", "a", "--html", "b", "--html", "c"), "hummock log: --html is given more than once\n"),
                           (("profile", "1", "--bytes", "2 furlongs"), "hummock profile: --bytes: 2 furlongs is not a size, as 4096, 64K or 2M\n"),
                           (("profile", "1", "--bytes", "2T"), "hummock profile: --bytes: 2T is more than 1T\n"),
                           (("profile", "--diff", "a"), "hummock profile: --diff needs a value\n"),
                           (("bench", "compare", "a", "b", "--gate", "-1"), "hummock bench compare: --gate: -1 is not a number from 0.001 to 1000000\n"),
                           (("set", "1", "nosuchthing=1"), "hummock set: there is no option nosuchthing\n"),
                           (("set", "1", "decay=1"), "hummock set: there is no option decay; the nearest is decay_ms\n")):
            done = hummock(*bad)
            self.assertEqual((done.stderr, done.stdout), (words, ""))
            self.assertEqual(done.returncode, 125 if bad[0] == "run" else 2)

    def test_help_has_no_words_of_its_parser(self):
        for command in ("run", "check", "spaces", "ps", "top", "stats", "set", "trim", "profile", "leaks", "record", "replay", "log",
                        "doctor", "bench", "bench spaces", "bench compare", "bench table", "export", "completion"):
            text = hummock(*command.split(), "--help").stdout
            self.assertNotRegex(text, r"FLOAT|UINT|\bINT\b|POSITIVE|\bx 2\b|1024b|:\w+ in |\{", command)

    def test_times(self):
        for times in (("stats", "1000000000", "--every", "1s", "--wait", "2s"), ("stats", "1000000000", "--wait", "20"),
                      ("spaces", "1000000000", "--every", "500ms"), ("profile", "1000000000", "--seconds", "1s", "--wait", "1m"),
                      ("leaks", "1000000000", "--after", "30", "--wait", "2s"), ("top", "no-such-program-here", "--every", "0.5s")):
            self.assertEqual(hummock(*times, stdin=subprocess.DEVNULL).returncode, 1, times)

    def test_help(self):
        for arguments in ((), ("--help",), ("run", "--help"), ("check", "--help")):
            done = hummock(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("Examples:", done.stdout)
        for arguments, usage in (((), "hummock [OPTIONS] COMMAND"), (("--help",), "hummock [OPTIONS] COMMAND"),
                                 (("help",), "hummock [OPTIONS] COMMAND"), (("help", "run"), "hummock run [OPTIONS] program..."),
                                 (("help", "bench", "compare"), "hummock bench compare [OPTIONS] old new")):
            self.assertIn(f"\nUsage: {usage}\n", hummock(*arguments).stdout)
        self.assertIn("  --log[=FILE] ", hummock("run", "--help").stdout)

    def test_version(self):
        for arguments in (("version",), ("--version",), ("-v",)):
            self.assertRegex(hummock(*arguments).stdout, r"^hummock \d+\.\d+\.\d+\n$")

    def test_completion(self):
        bash = hummock("completion", "bash").stdout
        script = bash + "\ncomplete_it() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _hummock; echo \"${COMPREPLY[@]}\"; }\n"
        for words, reply in (("hummock ru", "run"), ("hummock run --chec", "--checked"), ("hummock bench --qui", "--quick"),
                             ("hummock run -- /etc/passw", "/etc/passwd"), ("hummock completion ba", "bash"),
                             ("hummock spaces --sort na", "name"), ("hummock run --reserve = fi", "firstalloc"),
                             ("hummock help ru", "run")):
            done = subprocess.run(["bash", "-c", script + "complete_it " + words], capture_output=True, text=True, check=True)
            self.assertIn(reply, done.stdout.split())
        for shell in ("zsh", "fish"):
            done = hummock("completion", shell)
            self.assertIn("checked", done.stdout)
            if shutil.which(shell):
                subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)
        if shutil.which("fish"):
            offered = subprocess.run(["fish", "-c", hummock("completion", "fish").stdout + "complete -C 'hummock spaces --sort na'"],
                                     capture_output=True, text=True, check=True).stdout
            self.assertEqual(offered.split()[0], "name")
        self.assertEqual(hummock("completion", "tcsh").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
