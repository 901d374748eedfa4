"""Profiles that somebody has written nonsense into."""

import gzip
import os
import random
import subprocess
import sys
import tempfile
import unittest

from support import CALM, LIBRARY, TARGET, TOOL, hummock


class Hostile(unittest.TestCase):
    """What stands in another process's memory, or in a file, may be anything."""

    def test_broken_profiles_of_pprof(self):
        rng = random.Random(7)
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/p.pb.gz"
            hummock("profile", "--bytes", "64K", "--quiet", "--lib", LIBRARY, "--pprof", path, "--", TARGET, "known",
                    "strings", "kill", status=137)
            with gzip.open(path) as file:
                good = file.read()
            for _ in range(25):
                data = bytearray(good)
                for _ in range(rng.randrange(1, 20)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                if rng.randrange(3) == 0:
                    del data[rng.randrange(20, len(data)):]
                with open(folder + "/bad", "wb") as file:
                    file.write(bytes(data) if rng.randrange(2) else gzip.compress(bytes(data))[:rng.randrange(10, len(data))])
                done = hummock("profile", "--diff", path, folder + "/bad", status=None)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                self.assertNotRegex(done.stdout, r"[\x00-\x09\x0b-\x1f\x7f]")  # nothing that a terminal obeys

    def test_a_process_that_writes_nonsense(self):
        # A program that keeps overwriting its own profile, through the descriptor that it was given.
        code = r"""
import mmap, os, random, struct
fd, _ = map(int, os.environ["HUMMOCK_RUN_PROFILE"].split(":"))
size = os.fstat(fd).st_size // 256
rng = random.Random(int(os.environ["SEED"]))
memory = mmap.mmap(fd, size)
keep = [bytearray(5000) for _ in range(3000)]
head = bytes(memory[0:4096])
for _ in range(300):
    at = rng.randrange(4096, size - 16000)
    memory[at:at + 8000] = rng.randbytes(8000)
stacks = 4096 + 512 * 256
for i in range(2000):
    sums = [rng.getrandbits(64) for _ in range(8)]
    depth = rng.choice([3, 64, 65, 1 << 31])
    struct.pack_into("<QQQQQQQQIIII", memory, stacks + 144 * i, *sums, 1, rng.getrandbits(32), rng.getrandbits(20), depth)
more = [bytearray(5000) for _ in range(3000)]
del keep, more
memory[24:400] = rng.randbytes(376)
known = rng.choice([20, 72])
memory[0:known] = head[0:known]
os.kill(os.getpid(), 9)
"""
        for seed in range(5):
            with tempfile.TemporaryDirectory() as folder:
                command = [TOOL, "profile", "--bytes", "1K", "--lib", LIBRARY, "--pprof", folder + "/p", "--html",
                           folder + "/h", "--", sys.executable, "-c", code]
                done = subprocess.run(command, capture_output=True, text=True, env=dict(CALM, SEED=str(seed)), errors="replace")
                self.assertEqual(done.returncode, 137, done.stderr)
