#!/usr/bin/env python3
"""Programs whose malloc is served from a space, and the monitor that looks at them.

Usage: served.py TOOL LIBRARY
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import preload  # noqa: E402

TOOL, LIBRARY = sys.argv[1], preload.name_of(sys.argv[2])
INCLUDE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../include")

PYTHON_INSIDE = """
    import ctypes, subprocess, threading
    c = ctypes.CDLL(None)
    c.hummock_space_of_process.restype = ctypes.c_void_p
    c.hummock_space_contains.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    c.malloc.restype = ctypes.c_void_p
    c.malloc.argtypes = [ctypes.c_size_t]
    space = c.hummock_space_of_process(1)
    assert space
    for size in (1, 100, 5000, 70000, 20 << 20):
        block = c.malloc(size)
        assert c.hummock_space_contains(space, block) == 1, size
        c.free(ctypes.c_void_p(block))
    assert c.malloc(1 << 40) is None
    try:
        bytearray(1 << 30)
        raise SystemExit("a gigabyte in half of one")
    except MemoryError:
        pass
    out = []
    threads = [threading.Thread(target=lambda: out.append([bytes(i) for i in range(2000)])) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    print(len(out), subprocess.check_output(["echo", "child"]).decode().strip())
"""

EXHAUST = """
    #include <errno.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    int main(void) {
      size_t bytes = 0;
      void *first = malloc(1 << 20), *p;
      while ((p = malloc(1 << 20)) != NULL) { memset(p, 1, 1 << 20); bytes += 1 << 20; }
      int refused = errno == ENOMEM;
      free(first);
      p = malloc(1 << 20);  /* what was freed can be had again */
      char* text = calloc(1, 100);
      printf("%zu %d %d %d\\n", bytes >> 20, refused, p != NULL, text != NULL && text[99] == 0);
      free(p);
      p = aligned_alloc(4096, 8192);
      p = realloc(p, 100);
      free(realloc(p, 0) ? p : NULL);
      return 0;
    }
"""


def hummock(*arguments, **more):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=1500, check=False, **more)


def compiled(folder, source, *libraries):
    program = os.path.join(folder, "program")
    subprocess.run(["cc", "-fno-builtin", f"-I{INCLUDE}", "-x", "c", "-", "-x", "none", *libraries, "-o", program], input=source, text=True, check=True)
    return program


class Served(unittest.TestCase):
    def run_exhaust(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            done = hummock("run", *options, "--", compiled(folder, EXHAUST))
            self.assertEqual((done.stderr, done.returncode), ("", 0))
            return [int(word) for word in done.stdout.split()]

    def test_python_runs_from_the_space_alone(self):
        done = hummock("run", "--initial", "512M", "--expand", "0", "--", sys.executable, "-c",
                       textwrap.dedent(PYTHON_INSIDE))
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("8 child\n", "", 0))

    def test_exhausted_is_enomem(self):
        for options in ([], ["--reserve", "firstalloc"], ["--zero"], ["--expand", "0"]):
            with self.subTest(options):
                mib, refused, again, zero = self.run_exhaust("--initial", "64M", *options)
                self.assertTrue(56 <= mib < 64, mib)
                self.assertEqual((refused, again, zero), (1, 1, 1))

    def test_it_expands_when_it_may(self):
        done = hummock("run", "--initial", "1M", "--expand", "1M", "--", sys.executable, "-c",
                       "print(len(bytearray(100 << 20)) >> 20)")
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("100\n", "", 0))

    def test_environment_alone(self):
        done = subprocess.run([sys.executable, "-c", "print('ran')"], capture_output=True, text=True, check=False,
                              env={"LD_PRELOAD": LIBRARY, "HUMMOCK_CONF": "space_initial:64M"})
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("ran\n", "", 0))

    def test_a_space_that_cannot_be_had(self):
        done = hummock("run", "--initial", "400G", "--", "true",
                       preexec_fn=lambda: __import__("resource").setrlimit(
                           __import__("resource").RLIMIT_AS, (1 << 32, 1 << 32)))
        self.assertEqual(done.returncode, 125)
        self.assertIn("no space of 400 GiB", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_memory_that_cannot_be_had_at_the_first_allocation(self):
        done = hummock("run", "--initial", "400G", "--reserve", "firstalloc", "--lock", "--", "sort", "/dev/null")
        self.refused("no space of 400 GiB", "first allocation", done=done)

    def refused(self, *words, done):
        """The program did not run; one line says why, with these words."""
        self.assertEqual((done.stdout, done.returncode), ("", 125), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_bad_options(self):
        for words, *bad in ((["--expand requires --initial"], "--expand", "1M"),
                            (["requires --initial"], "--lock"),
                            (["--initial", '"3X"', "nearest is 3M"], "--initial", "3X"),
                            (["--initial", '"M"'], "--initial", "M"),
                            (['"999G"', "nearest is 512G"], "--initial", "999G", "--lock"),
                            (["--reserve", "firstalloc"], "--initial", "1M", "--reserve", "later")):
            with self.subTest(bad):
                self.refused(*words, done=hummock("run", *bad, "--", "echo", "ran"))

    def test_sizes_as_people_write_them(self):
        for size in ("64MB", "64MiB", "64m", "65536K", "67108864"):
            with self.subTest(size):
                done = hummock("run", "--initial", size, "--expand", "1 MiB", "--verbose", "--", "echo", "ran")
                self.assertEqual((done.stdout, done.returncode), ("ran\n", 0))
                self.assertIn("space_initial:64M (", done.stderr)

    def test_the_environment_alone_ends_the_program_too(self):
        for words, conf in ((["space_initial", '"512XB"', "nearest is 512MB"], "space_initial:512XB"),
                            (["space_with", '"maybe"'], "space_initial:1M,space_with:maybe"),
                            (["space_intial", "nearest is space_initial"], "space_intial:1M"),
                            (["space_with:lock needs a space"], "space_with:lock"),
                            (["no space of 512 B", "64 KiB"], "space_initial:512"),
                            (["limit_hard", "space_initial"], "space_initial:64M,limit_hard:10M"),
                            (["checked:on does not go with space_initial"], "space_initial:8M,checked:on"),
                            (["no space of 400 GiB", "locked"], "space_initial:400G,space_with:lock")):
            with self.subTest(conf):
                self.refused(*words, done=subprocess.run(["echo", "ran"], env={**os.environ, "LD_PRELOAD": LIBRARY, "HUMMOCK_CONF": conf},
                                                         capture_output=True, text=True, check=False))

    @unittest.skipUnless(os.getuid() == 0, "root alone may become another user")
    def test_a_lock_that_is_not_permitted(self):
        def lose_rights():
            import resource
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
            os.setuid(65534)

        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            library = os.path.join(folder, "libhummock.so.1")
            shutil.copy(LIBRARY, library)
            self.refused("64 MiB", "locked (see ulimit -l)", done=subprocess.run(
                ["echo", "ran"], env={"LD_PRELOAD": library, "PATH": os.environ["PATH"], "HUMMOCK_CONF": "space_initial:64M,space_with:lock"},
                capture_output=True, text=True, check=False, preexec_fn=lose_rights))

    def test_misuse(self):
        source = """#include <stdlib.h>
            int main(void) { char* p = malloc(100); free(p); free(p); return 0; }"""
        with tempfile.TemporaryDirectory() as folder:
            done = hummock("run", "--initial", "8M", "--", compiled(folder, source))
            self.assertEqual(done.returncode, -6)
            self.assertIn("double free", done.stderr)

    def test_the_process_figures_count_the_space(self):
        source = """#include <dlfcn.h>
            #include <hummock/hummock.h>
            #include <stdio.h>
            #include <stdlib.h>
            int main(void) {
              int (*figures)(hummock_stats_t*) = (int (*)(hummock_stats_t*))dlsym(0, "hummock_stats");
              hummock_stats_t before = {.size = sizeof before}, with = before, after = before;
              figures(&before);
              char* p = malloc(5 << 20);
              figures(&with);
              free(p);
              figures(&after);
              printf("%zu %zu %zu %zu %zu %zu\\n", with.live - before.live, after.live - before.live,
                     with.committed, with.mapped, with.peak, with.metadata - before.metadata);
              return 0;
            }"""
        with tempfile.TemporaryDirectory() as folder:
            program = compiled(folder, source)
            done = hummock("run", "--initial", "8M", "--", program)
            live, left, committed, mapped, peak, grown = (int(word) for word in done.stdout.split())
            self.assertTrue(5 << 20 <= live < (5 << 20) + 64, live)
            self.assertEqual((left, grown), (0, 0))
            self.assertTrue(7 << 20 <= committed <= 8 << 20, committed)
            self.assertTrue(8 << 20 <= mapped < 9 << 20, mapped)
            self.assertGreaterEqual(peak, committed)
            plain = subprocess.run([program], capture_output=True, text=True, check=True, env={"LD_PRELOAD": LIBRARY})
            self.assertNotEqual(int(plain.stdout.split()[3]), mapped)

    def test_first_class_heaps_keep_their_own_memory(self):
        source = """#include <dlfcn.h>
            #include <stdlib.h>
            int main(void) {
              void* (*create)(void) = (void* (*)(void))dlsym(0, "hummock_heap_create");
              void* (*take)(void*, size_t) = (void* (*)(void*, size_t))dlsym(0, "hummock_heap_malloc");
              void* heap = create();
              char* p = take(heap, 100);
              p[99] = 1;
              p = realloc(p, 70000);
              p[69999] = 1;
              free(p);
              return 0;
            }"""
        with tempfile.TemporaryDirectory() as folder:
            done = hummock("run", "--initial", "8M", "--", compiled(folder, source))
            self.assertEqual((done.stderr, done.returncode), ("", 0))


class Monitor(unittest.TestCase):
    def test_it_lists_and_draws(self):
        source = """#include <stdio.h>
            #include <stdlib.h>
            int main(void) {
              void* p[1000];
              for (int i = 0; i < 1000; ++i) p[i] = malloc(10000);
              for (int i = 0; i < 1000; i += 2) free(p[i]);
              if (malloc(1 << 30) != NULL) return 1;
              puts("ready");
              fflush(stdout);
              getchar();
              return 0;
            }"""
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, LD_PRELOAD=LIBRARY, HUMMOCK_SPACE_INITIAL="16M")
            program = subprocess.Popen([compiled(folder, source)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True, env=environment)
            with program:
                self.assertEqual(program.stdout.readline(), "ready\n")
                done = hummock("spaces", str(program.pid), "--json", "--map", "--sort", "name")
                table = hummock("spaces", str(program.pid), "--map")
                self.assertIn('blank is free, then ".:-=+*%@#" from a ninth in use to all', table.stdout)
                program.communicate("\n")
        self.assertEqual((done.stderr, done.returncode), ("", 0))
        external, internal = json.loads(done.stdout)
        self.assertEqual((external["name"], internal["name"]), ("external", "internal"))
        self.assertEqual(external["size"], 16 << 20)
        self.assertTrue(500 <= external["live"] <= 520, external)
        self.assertTrue(500 <= external["ranges"] <= 520, external)
        self.assertTrue(5_000_000 <= external["used"] <= 5_200_000, external)
        self.assertGreaterEqual(external["peak"], 10_000_000)
        self.assertEqual(external["failures"], 1)
        self.assertGreaterEqual(external["largest_refused"], 1 << 30)
        self.assertTrue(4 << 20 <= external["largest"] <= 8 << 20, external)
        self.assertEqual((external["policy"], external["threads"]), ("dense", "inherit"))
        self.assertEqual(len(external["map"]), 256)
        self.assertGreater(external["map"].count("=") + external["map"].count("+"), 100)  # half full
        self.assertEqual(external["map"][-1], " ")
        self.assertIn("external", table.stdout)
        self.assertIn("|", table.stdout)

    def test_an_owners_cache(self):
        source = """#include <hummock/hummock.h>
            #include <stdio.h>
            int main(void) {
              hummock_space_options_t options = {.size = sizeof options, .name = "cached", .initial = 64 << 20};
              options.cache_blocks = 600;
              options.cache_largest = 16384;
              hummock_space_t* space = hummock_space_create(&options, NULL);
              options.name = "bare";
              options.initial = 32 << 20;
              options.cache_blocks = options.cache_largest = 0;
              hummock_space_malloc(hummock_space_create(&options, NULL), 5 << 20);
              static void* p[1000];
              for (int i = 0; i < 1000; ++i) p[i] = hummock_space_malloc(space, 10000);
              void* longer[20];
              for (int i = 0; i < 20; ++i) longer[i] = hummock_space_malloc(space, 1 << 20);
              void* wall = hummock_space_malloc(space, 100000);
              for (int i = 0; i < 500; ++i) hummock_space_free(space, p[i]);
              for (int i = 0; i < 10; ++i) hummock_space_free(space, longer[i]);
              hummock_space_stats_t stats = {.size = sizeof stats};
              hummock_space_stats(space, &stats);
              printf("%zu %zu %zu %zu %zu %zu %zu %zu\\n", stats.used, stats.free, stats.peak, stats.largest_free,
                     stats.free_ranges, stats.cache_free, stats.live_blocks, stats.cache_free_blocks);
              fflush(stdout);
              getchar();
              return wall == NULL;
            }"""
        columns = ("used", "free", "peak", "largest", "ranges", "cache", "live")
        with tempfile.TemporaryDirectory() as folder:
            built = compiled(folder, source, LIBRARY)
            program = subprocess.Popen([built], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       env=dict(os.environ, LD_PRELOAD=LIBRARY))
            with program:
                said = [int(word) for word in program.stdout.readline().split()]
                sorted_by = {column: json.loads(hummock("spaces", str(program.pid), "--json", "--sort", column).stdout)
                             for column in ("name", "size", "failures", *columns)}
                drawn = json.loads(hummock("spaces", str(program.pid), "--json", "--map", "--sort", "cache").stdout)
                live = subprocess.Popen([TOOL, "spaces", str(program.pid), "--every", "200ms"], text=True,
                                        stdout=subprocess.PIPE)
                first = live.stdout.readline()
                program.communicate("\n")
                with live:
                    seen = live.stdout.read()
        self.assertEqual(live.returncode, 0)
        cached = drawn[0]
        self.assertEqual([space["name"] for space in sorted_by["name"]], ["bare", "cached", "internal"])
        self.assertEqual([cached[column] for column in columns], said[:7])
        self.assertTrue(500 <= said[7] <= 511, said)
        self.assertTrue(500 * 10016 <= cached["cache"] < 500 * 10016 + (11 << 20), cached)
        for column, rows in sorted_by.items():
            figures = [row[column] for row in rows]
            self.assertEqual(figures, sorted(figures, reverse=column != "name"), column)
        # 64 MiB in 256: what rests of the short ones, those that live, what was freed of the long ones, the others.
        fill = [" .:-=+*%@#".index(cell) for cell in cached["map"]]
        self.assertTrue(all(level == 0 for level in fill[:18]), cached["map"])
        self.assertTrue(all(level == 9 for level in fill[20:37]), cached["map"])
        self.assertTrue(all(level == 0 for level in fill[40:77]), cached["map"])
        self.assertTrue(all(level == 9 for level in fill[80:117]), cached["map"])
        self.assertTrue(all(level == 0 for level in fill[120:]), cached["map"])
        self.assertTrue(first.startswith("NAME"), first)
        self.assertIn("cached", seen)
        self.assertNotIn("\033", seen)  # it is no screen

    def test_nothing_to_see(self):
        for process, words in ((str(os.getpid()), f"process {os.getpid()}: it has no spaces"),
                               ("4194304", "process 4194304: there is no such process"),
                               ("no-such-name", "there is no process no-such-name"), ("9" * 309, "there is no process 9")):
            done = hummock("spaces", process)
            self.assertEqual((done.stdout, done.returncode), ("", 1))
            self.assertTrue(done.stderr.startswith("hummock spaces: " + words), done.stderr)

    def test_a_process_by_its_name(self):
        with tempfile.TemporaryDirectory() as folder:
            named = os.path.join(folder, f"two{os.getpid()}")
            shutil.copy(shutil.which("sleep"), named)
            with subprocess.Popen([named, "600"]) as one, subprocess.Popen([named, "600"]) as two:
                try:
                    self.assertIn(f"name one by its number: {min(one.pid, two.pid)} {max(one.pid, two.pid)}\n",
                                  hummock("spaces", os.path.basename(named)).stderr)
                    one.kill()
                    one.wait()
                    self.assertIn(f"process {two.pid}: it has no spaces\n", hummock("spaces", os.path.basename(named)).stderr)
                finally:
                    one.kill()
                    two.kill()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
