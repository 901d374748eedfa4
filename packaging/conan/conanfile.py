"""Hummock for Conan 2: `conan create packaging/conan`."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Hummock(ConanFile):
    name = "hummock"
    description = "A memory allocator that is fast and gives freed memory back"
    license = "MIT"
    topics = ("malloc", "allocator", "memory")
    settings = "os", "arch", "compiler", "build_type"

    @property
    def project(self):
        return os.path.join(self.recipe_folder, os.pardir, os.pardir)

    def set_version(self):
        header = load(self, os.path.join(self.project, "include", "hummock", "hummock.h"))
        self.version = ".".join(re.findall(r"^#define HUMMOCK_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header, re.M))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "man/*", "src/*", "tools/gdb/*"):
            copy(self, pattern, self.project, self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Hummock is packaged for Linux with glibc")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["HUMMOCK_TOOLS"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # Its own CMake package names the targets: hummock::shared and hummock::static.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "hummock")]
        self.cpp_info.libs = ["hummock"]
        self.cpp_info.system_libs = ["pthread"]
