"""The wheel, built, installed in an environment of its own, and used.

TEST_WHEEL names a wheel to test in place of a fresh one.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import venv
import zipfile

PROJECT = pathlib.Path(__file__).resolve().parents[1]
HANG = 1500


def setUpModule():
    global work, wheel, python
    work = tempfile.TemporaryDirectory(prefix="hummock-python-")
    folder = pathlib.Path(work.name)
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    wheel = os.environ.get("TEST_WHEEL")
    if not wheel:
        pip("wheel", "--no-deps", "-w", folder / "wheel", PROJECT)
        (wheel,) = (folder / "wheel").glob("*.whl")
    pip("install", "--no-index", wheel)


def tearDownModule():
    work.cleanup()


def pip(*arguments):
    done = subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "-q", *arguments],
                          capture_output=True, text=True, timeout=HANG)
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)


def execute(*arguments, **environment):
    return subprocess.run([python, *arguments], capture_output=True, text=True, timeout=HANG, cwd=work.name,
                          env={**os.environ, **environment})


def script(text):
    path = pathlib.Path(work.name) / "script.py"
    path.write_text("import hummock\n" + textwrap.dedent(text))
    return path


class Python(unittest.TestCase):
    def passes(self, *arguments, **environment):
        done = execute(*arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def on_hummock(self, text, *arguments, **environment):
        return self.passes("-m", "hummock", "run", script(text), *arguments, **environment)

    def test_the_wheel_fits_any_python_of_the_machine(self):
        self.assertIn("-py3-none-linux_", str(wheel))
        with zipfile.ZipFile(wheel) as archive:
            self.assertIn("hummock/libhummock.so", archive.namelist())

    def test_a_program_runs_on_hummock(self):
        said = self.on_hummock("""
            import os, sys
            print(hummock.is_active(), os.environ["PYTHONMALLOC"], sys.argv[1:], __name__)
            """, "--flag", "-m", "two words")
        self.assertEqual(said, "True malloc ['--flag', '-m', 'two words'] __main__\n")

    def test_small_objects_can_stay_with_python(self):
        text = """
            before = hummock.stats().live
            kept = [str(number) for number in range(200_000)]
            print(hummock.stats().live - before > 8_000_000)
            """
        self.assertEqual(self.on_hummock(text, PYTHONMALLOC=""), "True\n")
        own = self.passes("-m", "hummock", "run", "--pymalloc", script(text))
        self.assertEqual(own, "False\n")

    def test_modules_exit_codes_and_children(self):
        self.assertEqual(self.passes("-m", "hummock", "run", "-m", "calendar", "2026", "11").split()[0], "November")
        done = execute("-m", "hummock", "run", script("raise SystemExit(7)"))
        self.assertEqual(done.returncode, 7)
        said = self.on_hummock("""
            import subprocess, sys
            subprocess.run([sys.executable, "-c", "import hummock; print(hummock.is_active())"], check=True)
            """)
        self.assertEqual(said, "True\n")

    def test_what_cannot_run_is_said(self):
        done = execute("-m", "hummock", "run", "absent.py")
        self.assertEqual((done.returncode, done.stderr), (1, "hummock: there is no absent.py\n"))
        self.assertEqual(execute("-m", "hummock", "runn", "x.py").returncode, 2)

    def test_without_run_malloc_is_the_systems(self):
        self.assertEqual(self.passes(script("print(hummock.is_active())")), "False\n")

    def test_figures_without_it_say_so(self):
        done = execute(script("print(hummock.stats().active); hummock.figures()"))
        self.assertEqual((done.returncode, done.stdout), (0, "False\n"))
        self.assertEqual(done.stderr.count("malloc is not Hummock's"), 2, done.stderr)
        self.assertEqual(self.on_hummock("print(hummock.stats().active)"), "True\n")

    def test_from_a_folder_with_a_blank(self):
        package = pathlib.Path(self.passes(script("print(hummock.__file__)")).strip()).parent
        folder = pathlib.Path(work.name) / "a b"
        shutil.copytree(package, folder / "hummock")
        path = self.passes("-m", "hummock", "path", PYTHONPATH=str(folder)).strip()
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        self.assertEqual(os.readlink(path), str((folder / "hummock" / "libhummock.so").resolve()))
        text = "print(hummock.is_active(), 'a b' in hummock.__file__)"
        self.assertEqual(self.on_hummock(text, PYTHONPATH=str(folder)), "True True\n")

    def test_path_and_version(self):
        path = self.passes("-m", "hummock", "path").strip()
        self.assertEqual(self.passes(script("print(hummock.is_active())"), LD_PRELOAD=path), "True\n")
        self.assertEqual(self.passes("-m", "hummock", "--version"), "hummock 1.0.0\n")
        self.assertEqual(self.passes(script("print(hummock.version, hummock.__version__)")), "1.0.0 1.0.0\n")

    def test_looking_into_the_heap(self):
        self.on_hummock("""
            figures = hummock.figures()
            assert figures["totals"]["live"] > 0 and figures["options"]["observe"] == "on", figures
            with hummock.tagged(4711):
                assert hummock.tag(4711) == 4711
                block = bytearray(10_000_000)
            assert hummock.tag(0) == 0
            assert hummock.tag_total(4711).bytes >= 10_000_000, hummock.tag_total(4711)
            assert any(row["tag"] == 4711 for row in hummock.figures()["tags"])
            try:
                hummock.tag_total(4712)
                raise AssertionError("nobody had that tag")
            except KeyError:
                pass
            import array
            small = array.array("b", bytes(3000))
            assert 0 <= hummock.slab_utilisation(small.buffer_info()[0]) <= 100
            assert hummock.slab_utilisation(small.buffer_info()[0] + 8) is None
            assert hummock.slab_utilisation(0) is None
            sizes = hummock.live_blocks()
            assert sum(sizes.values()) > 1000 and max(sizes) >= 10_000_000, sizes
        """)

    def test_hooks(self):
        self.on_hummock("""
            import ctypes, errno
            class Hooks(ctypes.Structure):
                _fields_ = [("size", ctypes.c_size_t)] + [(name, ctypes.c_void_p) for name in
                            ("context", "allocated", "resized", "released", "mapped")]
            libc, semaphore, value = ctypes.CDLL(None), ctypes.create_string_buffer(64), ctypes.c_int()
            libc.sem_init(semaphore, 0, 0)
            # A function in C that looks at its first argument alone, and counts.
            count = ctypes.cast(libc.sem_post, ctypes.c_void_p).value
            table = Hooks(size=ctypes.sizeof(Hooks), context=ctypes.addressof(semaphore), allocated=count)
            hummock.set_hooks(ctypes.addressof(table))
            blocks = [bytearray(100_000) for _ in range(1000)]
            hummock.set_hooks(None)
            libc.sem_getvalue(semaphore, ctypes.byref(value))
            assert value.value >= 1000, value
            wrong = Hooks(size=1)
            try:
                hummock.set_hooks(ctypes.addressof(wrong))
                raise AssertionError("such a table is none")
            except OSError as error:
                assert error.errno == errno.EINVAL, error
        """)

    def test_statistics(self):
        said = self.on_hummock("""
            before = hummock.stats()
            block = bytearray(50_000_000)
            with_block = hummock.stats()
            del block
            after = hummock.stats()
            assert with_block.live >= before.live + 50_000_000, (before, with_block)
            assert with_block.large_blocks > before.large_blocks
            assert after.live < before.live + 1_000_000, (before, after)
            assert after.committed >= after.live and after.resident > 0 and after.threads >= 1
            sizes = [row.block_size for row in after.classes]
            assert len(sizes) == len(set(sizes)) == 81, sizes
            assert sum(row.live_blocks * row.block_size for row in after.classes) > 1_000_000
            print("all hold")
            """)
        self.assertEqual(said, "all hold\n")

    def test_trim(self):
        said = self.on_hummock("""
            blocks = [bytes(60_000) for _ in range(100)]
            del blocks
            dirty = hummock.stats().dirty
            assert dirty > 1_000_000, dirty
            assert hummock.trim()
            assert hummock.stats().dirty < dirty / 4, hummock.stats()
            try:
                hummock.trim(-1)
            except ValueError:
                print("all hold")
            """, HUMMOCK_DECAY_MS="never")
        self.assertEqual(said, "all hold\n")

    def test_profile(self):
        said = self.on_hummock("""
            import re, tempfile
            with tempfile.NamedTemporaryFile() as file:
                for call in (lambda: hummock.profile_write(file.name), lambda: hummock.profile_start(1 << 41)):
                    try:
                        call()
                    except OSError:
                        continue
                    raise SystemExit("no OSError")
                hummock.profile_start(4096)
                kept = [bytes(1000) for _ in range(20_000)]
                hummock.profile_stop()
                hummock.profile_write(file.name)
                live = int(re.match(rb"heap profile: \\d+: (\\d+) \\[", file.read()).group(1))
            assert 18_000_000 < live < 24_000_000, live
            try:
                hummock.profile_start(-1)
            except ValueError:
                print("all hold")
            """)
        self.assertEqual(said, "all hold\n")

    def test_options(self):
        said = self.on_hummock("""
            hummock.set_option("decay_ms", 123)
            assert hummock.option("decay_ms") == "123"
            for name, value, error in (("decay", 1, KeyError), ("decay_ms", "soon", ValueError),
                                       ("checked", "on", PermissionError)):
                try:
                    hummock.set_option(name, value)
                except error:
                    continue
                raise SystemExit(f"{name}: no {error}")
            try:
                hummock.option("decay")
            except KeyError:
                print("all hold")
            """)
        self.assertEqual(said, "all hold\n")

    def test_threads(self):
        said = self.on_hummock("""
            from concurrent.futures import ThreadPoolExecutor
            def work(seed):
                table = {}
                for number in range(30_000):
                    table[number * seed % 1_009] = str(number) * (number % 50)
                return sum(map(len, table.values()))
            with ThreadPoolExecutor(8) as pool:
                results = list(pool.map(work, [3] * 16))
            print(len(set(results)))
            """)
        self.assertEqual(said, "1\n")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
