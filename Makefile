# The front door. CMake does the work (CMakePresets.json); it builds in build/.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.PHONY: all libraries tests counts configure demo test test-all test-bindings windows test-windows bench bench-programs budget soak install \
        uninstall dist deb rpm zip wheel crates formula conan vcpkg packages release-list reproducible abi test-platforms test-systemd \
        site format lint clean

CONFIGURE = mkdir -p build && { cmake --preset $(1) > build/configure.log 2>&1 || { cat build/configure.log; exit 1; }; }

# The libraries and the tool: build/libhummock.so, build/libhummock.a, build/hummock.
all:
	@scripts/packages.sh libraries
	@scripts/packages.sh tool
	@$(call CONFIGURE,release)
	@cmake --build build -j$(JOBS) --target hummock_product

# The libraries alone: compiler, cmake and ninja are enough.
libraries:
	@scripts/packages.sh libraries
	@$(call CONFIGURE,release -DHUMMOCK_TOOLS=OFF -DHUMMOCK_TESTS=OFF -DHUMMOCK_BENCH=OFF)
	@cmake --build build -j$(JOBS) --target hummock_shared hummock_static

configure:
	@scripts/packages.sh build test cross
	@$(call CONFIGURE,test)

# All of it, the tests and the benchmark programs too; warnings are errors.
tests: configure
	@cmake --build build -j$(JOBS)

# Programs where malloc matters, in turn on the system's malloc and on Hummock: at most 60 s; writes a page to look at.
demo: all
	@scripts/packages.sh demo
	@$(call CONFIGURE,release -DHUMMOCK_BENCH=ON)
	@cmake --build build -j$(JOBS) --target demo_server demo_memory
	@python3 scripts/demo.py --build build

CTEST = ctest --test-dir build --output-on-failure --no-label-summary --no-tests=error -j$(JOBS)

# Some tests of each area: at most ten minutes on two idle cores, with the build. Names the tests it leaves out.
test: tests
	@$(CTEST) -LE '^long$$'; status=$$?; scripts/left_out.sh build; exit $$status

# All tests; with the two targets below, as .ci/run runs them, at most forty minutes.
test-all: tests
	@scripts/packages.sh fuzz
	@$(CTEST)

# hummock.dll and hummock_bi.dll for 64 and 32 bits: out/windows-x64, out/windows-x86.
WINDOWS = windows-x64 windows-x86

windows:
	@scripts/packages.sh build windows
	@mkdir -p out
	@for width in $(WINDOWS); do \
	  cmake --preset $$width > out/$$width.log 2>&1 || { cat out/$$width.log; exit 1; }; \
	  cmake --build out/$$width -j$(JOBS) || exit 1; done

# Under Wine; 32-bit programs run only where Wine can run them, else their DLL's tables are checked.
test-windows: windows
	@scripts/packages.sh wine
	@for width in $(WINDOWS); do ctest --test-dir out/$$width --output-on-failure --no-tests=error -j$(JOBS) || exit 1; done

# Pascal, Rust and Python, with their examples; fetches a few crates, setuptools and Free Pascal's own tests.
test-bindings: tests
	@scripts/packages.sh bindings
	@command -v cargo > /dev/null || scripts/packages.sh rust
	@scripts/test_bindings.sh build

# All workloads on Hummock and on every other allocator found here (2 min); docs/benchmarks.md says more.
bench:
	@scripts/packages.sh libraries tool bench
	@$(call CONFIGURE,release -DHUMMOCK_BENCH=ON)
	@cmake --build build -j$(JOBS)
	@build/hummock bench --quick --html build/report.html --json build/report.json
	@echo "build/report.html has all of it to look at, build/report.json the figures"

# Compilers, interpreters, servers and tools, none of which Hummock was tuned on, with each allocator (15 min).
bench-programs: tests
	@scripts/packages.sh bench programs
	@build/hummock bench --programs --html build/programs.html --json build/programs.json
	@echo "build/programs.html has all of it to look at, build/programs.json the figures"

# Instructions and peak memory, which do not depend on what else the machine does.
budget: tests
	@for part in small large; do python3 tests/budget/instructions.py --peers --loop build/tests/budget/budget_loop --library build/libhummock.so $$part; done
	@python3 tests/budget/memory.py --peers --program build/tests/budget/budget_memory --library build/libhummock.so mmtest shrink

# Fuzz targets (with clang, else with random bytes) and the chaos program, for MINUTES minutes.
MINUTES ?= 60

soak: tests
	@scripts/packages.sh fuzz
	@scripts/soak.sh build $(MINUTES)

# Installs below PREFIX, which may be a folder of your own.
install: all
	@cmake --install build --prefix $(abspath $(PREFIX))

# Removes what the last install from this build put there.
uninstall:
	@cmake -DBUILD=build -DPREFIX=$(abspath $(PREFIX)) -P cmake/uninstall.cmake

# Packages of what is committed, in out/packages.
dist deb rpm zip wheel crates formula:
	@scripts/packages.sh package-$@
	@scripts/make_packages.sh $@

# Conan's and vcpkg's, made and used by a program of its own; Conan from PyPI, vcpkg where it is.
conan:
	@scripts/packages.sh libraries package-wheel
	@scripts/try_conan.sh

vcpkg:
	@scripts/packages.sh libraries
	@scripts/try_vcpkg.sh

# All of them, with sizes and checksums: each is tried, what is installed in a clean Debian (as root), and the tarball
# passes tests. The formula only where the address is known at which the tarball will stand.
PACKAGES = dist deb rpm zip wheel crates conan vcpkg $(if $(HUMMOCK_HOMEPAGE)$(GITHUB_REPOSITORY),formula)

packages: abi
	@rm -rf out/packages
	@for part in $(PACKAGES); do $(MAKE) --no-print-directory $$part || exit 1; done
	@scripts/packages.sh package-try
	@scripts/try_packages.sh
	@scripts/try_wheel_aarch64.sh
	@scripts/try_zip.sh
	@scripts/try_crates.sh
	@scripts/try_tarball.sh
	@scripts/make_packages.sh sums

# The artefacts of this version, with sizes and checksums.
release-list:
	@scripts/make_packages.sh list

# Each package twice, from the same commit: the same bytes.
reproducible:
	@scripts/reproducible.sh dist deb rpm zip wheel crates

# The library's interface against that of the last release: nothing may be gone or changed.
abi: libraries
	@scripts/packages.sh abi
	@scripts/check_abi.sh build/libhummock.so

# How much there is to read: lines of the core, mechanisms, functions of a cold malloc and a cold free.
counts: configure
	@cmake --build build -j$(JOBS) --target hummock_shared budget_cold
	@python3 -B scripts/counts.py --build build

# Tests on other machines than this one, under qemu-user, and with musl; the README has the table.
test-platforms:
	@scripts/packages.sh libraries tool platforms
	@scripts/test_platforms.sh

# Services on Hummock in a clean Debian that systemd boots in a container (as root).
test-systemd: deb
	@scripts/packages.sh systemd
	@scripts/try_systemd.sh

# The documents as a site, with the public headers as reference: build/site. mkdocs comes from PyPI, into build/.
site:
	@scripts/packages.sh site
	@test -x build/site-venv/bin/mkdocs || { python3 -m venv build/site-venv && \
	  build/site-venv/bin/pip install -q --disable-pip-version-check -r docs/site/requirements.txt; }
	@python3 -B docs/site/make_site.py pages . build/site-pages
	@NO_MKDOCS_2_WARNING=1 build/site-venv/bin/mkdocs build -q -f docs/site/mkdocs.yml
	@python3 -B docs/site/make_site.py check build/site
	@echo "build/site/index.html has it; its search needs a server: python3 -m http.server -d build/site"

SOURCES = $(shell git ls-files '*.cc' '*.h' '*.c')

format:
	@scripts/packages.sh lint
	@clang-format -i $(SOURCES)

lint:
	@scripts/packages.sh build test lint
	@cmake --preset test -B out/lint -DHUMMOCK_GROUPS=OFF > /dev/null
	@clang-format --dry-run --Werror $(SOURCES)
	@scripts/check_layers.sh
	@clang-tidy -p out/lint --quiet $(shell git ls-files 'src/*.cc' 'tools/*.cc' | grep -v -e /windows -e /bohemia -e served_absent)

clean:
	@rm -rf build out
