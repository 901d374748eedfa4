#!/usr/bin/env python3
"""Installs the build into a folder of its own and builds a small program against it in each way."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, BUILD, SOURCE = sys.argv[1:4]
PROGRAM = """#include <hummock/hummock.h>
#include <stdlib.h>
int main(void) { free(malloc(10)); return hummock_is_active() ? 0 : 1; }
"""
CXX_PROGRAM = """#include <hummock/hummock.hpp>
#include <hummock/proxy_inline.h>
#include <smmalloc.h>
#include <hummock/smmalloc.h>
#include <vector>
int main() {
  hummock::heap heap;
  std::vector<int, hummock::heap_allocator<int>> numbers(100, 1, heap);
  sm_allocator space = _sm_allocator_create(4, 1 << 20);
  void* p = _sm_malloc(space, 10, 16);
  const bool pooled = _sm_mbucket(space, p) == 0;
  _sm_free(space, p);
  _sm_allocator_destroy(space);
  return pooled && numbers[99] == 1 && hummock_is_active() ? 0 : 1;
}
"""
LISTS = """cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(hummock REQUIRED)
add_executable(by_shared main.c)
target_link_libraries(by_shared PRIVATE hummock::shared)
add_executable(by_static main.c)
target_link_libraries(by_static PRIVATE hummock::static)
"""


def output(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True, timeout=1500,
                          **more).stdout


class Packaging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.prefix = os.path.join(cls.folder, "prefix")
        output(CMAKE, "--install", BUILD, "--prefix", cls.prefix)
        cls.library = next(os.path.join(where, "libhummock.so.1") for where, _, files in os.walk(cls.prefix)
                           if "libhummock.so.1" in files)
        cls.libraries = os.path.dirname(cls.library)
        cls.main = os.path.join(cls.folder, "main.c")
        with open(cls.main, "w", encoding="ascii") as file:
            file.write(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def runs(self, program):
        env = dict(os.environ, LD_LIBRARY_PATH=self.libraries)
        subprocess.run([program], check=True, env=env, timeout=1500)

    def test_pkg_config(self):
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.libraries, "pkgconfig"))
        flags = output("pkg-config", "--cflags", "--libs", "hummock", env=env).split()
        program = os.path.join(self.folder, "by_pkg_config")
        output("cc", self.main, "-o", program, "-fno-builtin", *flags)
        self.runs(program)

    def test_the_headers_in_strict_c_and_cxx(self):
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.libraries, "pkgconfig"))
        flags = output("pkg-config", "--cflags", "--libs", "hummock-smmalloc", env=env).split()
        warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
        source = os.path.join(self.folder, "main.cc")
        with open(source, "w", encoding="ascii") as file:
            file.write(CXX_PROGRAM)
        for compiler in filter(shutil.which, ("g++", "clang++")):
            for standard in ("c++17", "c++20"):
                program = os.path.join(self.folder, compiler + standard)
                output(compiler, source, "-o", program, "-std=" + standard, *warnings, *flags)
                self.runs(program)
        strict = os.path.join(self.folder, "strict.c")
        with open(strict, "w", encoding="ascii") as file:
            file.write("#include <hummock/proxy_inline.h>\nint main(void) { return HUMMOCK_VERSION_MAJOR - 1; }\n")
        for compiler in filter(shutil.which, ("gcc", "clang")):
            output(compiler, strict, "-o", os.path.join(self.folder, "strict"), "-std=c99", *warnings, *flags)

    def test_smmalloc_in_cxx11(self):
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(self.libraries, "pkgconfig"))
        flags = output("pkg-config", "--cflags", "--libs", "hummock-smmalloc", env=env).split()
        source = os.path.join(self.folder, "cxx11.cc")
        with open(source, "w", encoding="ascii") as file:
            file.write("#include <smmalloc.h>\nint main() {\n  sm_allocator space = _sm_allocator_create(2, 1 << 20);\n"
                       "  _sm_free(space, _sm_malloc(space, 10, 16));\n  _sm_allocator_destroy(space);\n}\n")
        program = os.path.join(self.folder, "cxx11")
        output("g++", source, "-o", program, "-std=c++11", "-pedantic", "-Wall", "-Werror", *flags)
        self.runs(program)
        self.assertFalse(os.path.exists(os.path.join(self.prefix, "include", "smmalloc.h")))

    def test_what_is_installed_is_stripped(self):
        self.assertNotIn(".debug_info", output("readelf", "-SW", self.library))
        name = os.path.basename(os.path.realpath(self.library)) + ".debug"
        self.assertIn(name, output("readelf", "--string-dump=.gnu_debuglink", self.library))
        self.assertIn(".debug_info", output("readelf", "-SW", os.path.join(self.libraries, ".debug", name)))
        self.assertLess(os.path.getsize(self.library), 1 << 20)

    def test_uninstall_leaves_nothing(self):
        build, prefix = os.path.join(self.folder, "own"), os.path.join(self.folder, "pre fix")
        os.mkdir(build)
        os.mkdir(prefix)
        with open(os.path.join(prefix, "mine"), "w", encoding="ascii"):
            pass
        output(CMAKE, "--install", BUILD, "--prefix", prefix)
        shutil.copy(os.path.join(BUILD, "install_manifest.txt"), build)
        script = os.path.join(SOURCE, "cmake", "uninstall.cmake")
        other = subprocess.run([CMAKE, f"-DBUILD={build}", "-DPREFIX=/elsewhere", "-P", script], capture_output=True, text=True,
                               check=False)
        self.assertNotEqual(other.returncode, 0)
        self.assertIn("was not below /elsewhere", " ".join(other.stderr.split()))
        output(CMAKE, f"-DBUILD={build}", f"-DPREFIX={prefix}", "-P", script)
        left = [os.path.join(where, name) for where, _, files in os.walk(prefix) for name in files]
        self.assertEqual(left, [os.path.join(prefix, "mine")])
        self.assertEqual([where for where, _, _ in os.walk(prefix) if "hummock" in os.path.basename(where)], [])

    def test_as_a_part_of_a_project_only_the_libraries_are_built(self):
        source, build = os.path.join(self.folder, "whole"), os.path.join(self.folder, "whole-build")
        os.mkdir(source)
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(f"cmake_minimum_required(VERSION 3.22)\nproject(whole C CXX)\nadd_subdirectory(\"{SOURCE}\" hummock)\n"
                       f"get_directory_property(targets DIRECTORY \"{SOURCE}\" BUILDSYSTEM_TARGETS)\n"
                       "file(WRITE targets.txt \"${targets}\")\n")
        output(CMAKE, "-S", source, "-B", build)
        with open(os.path.join(source, "targets.txt"), encoding="utf-8") as file:
            targets = set(file.read().split(";"))
        self.assertLessEqual({"hummock_shared", "hummock_static"}, targets)
        self.assertEqual(targets & {"hummock", "hummock_bench_work", "doctest_main", "hummock_ranked"}, set())
        flags = "".join(path.read_text(encoding="utf-8") for path in pathlib.Path(build).rglob("flags.make"))
        self.assertNotIn("-Werror", flags)

    def test_no_name_of_the_last_release_is_gone(self):
        names = {line.split()[-1] for line in output("nm", "-D", "--defined-only", self.library).splitlines()}
        with open(os.path.join(SOURCE, "src", "faces", "symbols.txt"), encoding="ascii") as file:
            self.assertEqual(set(file.read().split()) - names, set())

    def test_cmake_package(self):
        source, build = os.path.join(self.folder, "source"), os.path.join(self.folder, "build")
        os.mkdir(source)
        shutil.copy(self.main, source)
        with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="ascii") as file:
            file.write(LISTS)
        output(CMAKE, "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_C_FLAGS=-fno-builtin")
        output(CMAKE, "--build", build)
        self.runs(os.path.join(build, "by_shared"))
        self.runs(os.path.join(build, "by_static"))

    def test_the_library_needs_libc_alone(self):
        dynamic = output("readelf", "-d", self.library)
        needed = [line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line]
        self.assertIn("libc.so.6", needed)
        self.assertEqual([name for name in needed if not name.startswith(("libc.so", "ld-linux"))], [])
        self.assertIn("[libhummock.so.1]", dynamic)

    def test_static_thread_storage_is_small(self):
        segments = output("readelf", "-lW", self.library).splitlines()
        sizes = [int(line.split()[5], 16) for line in segments if line.split()[:1] == ["TLS"]]
        self.assertEqual(len(sizes), 1)
        self.assertLess(sizes[0], 64)  # else a program could not dlopen it

    def test_the_pieces_are_there(self):
        for piece in ("bin/hummock", "bin/hummock-bench-work", "include/hummock/hummock.h",
                      "include/hummock/hummock.hpp", "include/hummock-smmalloc/smmalloc.h", "share/bash-completion/completions/hummock",
                      "share/zsh/site-functions/_hummock", "share/fish/vendor_completions.d/hummock.fish", "share/man/man1/hummock.1",
                      "share/man/man3/hummock.3", "share/man/man7/hummock.7"):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, piece)), piece)
        self.assertIn("bin", output(os.path.join(self.prefix, "bin", "hummock"), "check", "cat"))
        output(os.path.join(self.prefix, "bin", "hummock"), "run", "--", "true")

    def test_only_public_names_are_exported(self):
        names = [line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", self.library).splitlines()]
        family = {"malloc", "free", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign", "memalign",
                  "valloc", "pvalloc", "cfree", "malloc_usable_size", "malloc_trim", "mallopt", "mallinfo", "mallinfo2",
                  "malloc_info", "malloc_stats", "free_sized", "free_aligned_sized", "dlopen", "HUMMOCK_1.0"}
        others = [name for name in names if name not in family
                  and not name.startswith(("hummock_", "_Zn", "_Zd", "__libc_", "__posix_memalign"))]
        self.assertEqual(others, [])
        self.assertEqual(family - set(names), set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
