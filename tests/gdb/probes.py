#!/usr/bin/env python3
"""The library's USDT probes: their notes are sound, stripped too, and a tracer that arms one is told.

Usage: probes.py GDB READELF STRIP LIBRARY TARGET STATIC_PROGRAM
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest

GDB, READELF, STRIP, LIBRARY, TARGET, STATIC = sys.argv[1:7]
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}
PROBES = {"hummock:map": 2, "hummock:unmap": 2, "hummock:purge": 2, "hummock:refill": 2, "otel_memory:alloc": 3,
          "otel_memory:free": 1}
NOTE = re.compile(r"Provider: (\S+)\s+Name: (\S+)\s+"
                  r"Location: (0x\w+), Base: (0x\w+), Semaphore: (0x\w+)\s+Arguments: (.*)")
MIB = 1 << 20


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, env=CALM, timeout=300, check=True,
                          stdin=subprocess.DEVNULL).stdout


class Notes(unittest.TestCase):
    def look(self, path):
        sections = output_of(READELF, "-SW", path)
        [(start, size)] = re.findall(r" \.probes +PROGBITS +(\w+) \w+ (\w+) .* WA ", sections)
        [(code, code_size)] = re.findall(r" \.text +PROGBITS +(\w+) \w+ (\w+) ", sections)
        seen = {}
        for provider, name, place, base, semaphore, arguments in NOTE.findall(output_of(READELF, "-nW", path)):
            probe = f"{provider}:{name}"
            self.assertIn(int(semaphore, 16) - int(start, 16), range(0, int(size, 16), 2), probe)
            self.assertIn(int(place, 16) - int(code, 16), range(int(code_size, 16)), probe)
            self.assertNotEqual(int(base, 16), 0)
            self.assertEqual(len(re.findall(r"(?:^| )[48]@\S+", arguments)), PROBES[probe], arguments)
            self.assertEqual(seen.setdefault(probe, semaphore), semaphore, "one semaphore a probe")
        self.assertEqual(set(seen), set(PROBES))
        self.assertEqual(len(set(seen.values())), len(PROBES))

    def test_library(self):
        self.look(LIBRARY)

    def test_stripped(self):
        with tempfile.TemporaryDirectory() as folder:
            stripped = folder + "/stripped.so"
            subprocess.run([STRIP, "--strip-unneeded", "-o", stripped, LIBRARY], check=True)
            self.look(stripped)

    def test_static(self):
        self.look(STATIC)


class Armed(unittest.TestCase):
    """gdb arms a probe by its semaphore, as other tracers do, and takes it back."""

    def trace(self, probe, *options):
        """The first time that it is hit after begin(), and the semaphore before, then and after."""
        provider, name = probe.split(":")
        word = f"(unsigned short) {provider}_{name}_semaphore"
        show = [f'printf "argument %lu\\n", $_probe_arg{i}' for i in range(PROBES[probe])]
        steps = ["set startup-with-shell off", "set breakpoint always-inserted on",
                 "set environment LD_PRELOAD " + LIBRARY,
                 *("set environment " + option for option in options), "break probe_target.cc:begin", "run",
                 f"print {word}", f"break -probe-stap {probe}", "continue", f"print {word}",
                 'printf "arguments %d\\n", $_probe_argc', *show, "delete", f"print {word}", "continue"]
        said = output_of(GDB, "-nx", "-batch", *(w for step in steps for w in ("-ex", step)), TARGET)
        self.assertEqual(re.findall(r"\$\d+ = (\d+)", said), ["0", "1", "0"], said)
        self.assertIn(f"arguments {PROBES[probe]}\n", said)
        self.assertIn("exited normally", said)
        return [int(n) for n in re.findall(r"argument (\d+)\n", said)]

    def test_refill(self):
        size, count = self.trace("hummock:refill")
        self.assertEqual(size, 704)
        self.assertGreater(count, 0)

    def test_map(self):
        _, size = self.trace("hummock:map")
        self.assertGreaterEqual(size, 100 * MIB)

    def test_purge_or_unmap(self):
        for probe in ("hummock:purge", "hummock:unmap"):
            with self.subTest(probe):
                address, size = self.trace(probe)
                self.assertEqual(address % 4096, 0)
                self.assertGreater(size, 0)

    def test_samples(self):
        block, size, weight = self.trace("otel_memory:alloc", "HUMMOCK_PROFILE 64K")
        self.assertNotEqual(block, 0)
        self.assertIn(size, (700, 3000, 100 * MIB))
        self.assertGreaterEqual(weight, size)
        [freed] = self.trace("otel_memory:free", "HUMMOCK_PROFILE 64K")
        self.assertNotEqual(freed, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
