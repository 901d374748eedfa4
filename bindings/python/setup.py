"""Builds libhummock.so with CMake, from the sources this directory stands in, and puts it in the package."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include" / "hummock" / "hummock.h"


def version():
    if not HEADER.exists():
        sys.exit("hummock: the wheel is built inside Hummock's source tree (bindings/python); "
                 f"{HEADER} is not there")
    numbers = re.findall(r"^#define HUMMOCK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", HEADER.read_text(), re.M)
    return ".".join(numbers)


def build_library(work):
    """The path of a freshly built libhummock.so."""
    if shutil.which("cmake") is None:
        sys.exit("hummock: cmake is missing; on Debian: apt-get install cmake g++")
    work.mkdir(parents=True, exist_ok=True)
    parts = [f"-DHUMMOCK_{part}=OFF" for part in ("TESTS", "BENCH", "TOOLS")]
    # -s: without symbols that nobody needs at run time.
    flags = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_SHARED_LINKER_FLAGS=-s"]
    subprocess.run(["cmake", "-S", ROOT, "-B", work, *flags, *parts], check=True)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", work, "--target", "hummock_shared", "-j", jobs], check=True)
    return (work / "libhummock.so").resolve()


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            sys.exit("hummock: an editable install has no place for libhummock.so; use pip install without -e")
        work = pathlib.Path(self.get_finalized_command("build").build_temp) / "cmake"
        shutil.copy(build_library(work), pathlib.Path(self.build_lib) / "hummock" / "libhummock.so")


class WheelOfMachine(bdist_wheel):
    def get_tag(self):
        # No part of Python's own interface is used: any Python 3 of this machine's kind will do.
        return "py3", "none", super().get_tag()[2]


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


setup(version=version(), distclass=WithLibrary,
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": WheelOfMachine})
