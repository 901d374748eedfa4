"""Options, trims and what no tool of ours would ask."""

import fcntl
import os
import random
import struct
import time
import unittest

from support import PATIENCE, hummock, Target, page_of

ASKED, REQUEST, ANSWERED = 48, 52, 84  # where they stand in the page


def word(fd, offset):
    return struct.unpack("<I", os.pread(fd, 4, offset))[0]


class Requests(unittest.TestCase):
    def test_an_option(self):
        with Target("threads", 2) as target:
            hummock("set", target.pid, "decay_ms=50ms", *PATIENCE)
            self.assertEqual(target.stats()["options"]["decay_ms"], "50")
            hummock("set", target.pid, "DIRTY_MAX=4m", *PATIENCE)
            self.assertEqual(target.stats()["options"]["dirty_max"], "4M")

    def test_options_that_are_not_understood(self):
        with Target("threads", 1) as target:
            for assignment, answer in (("decay=5", "the nearest is decay_ms"), ("decay_ms=soon", "it may be"),
                                       ("checked=on", "only be set at start"), ("decay_ms", "option=value"),
                                       ("stats=/x.json", "only be set at start"), ("log=region", "only be set at start"),
                                       ("=5", "option=value"), ("", "option=value"), ("decay_ms=", "it may be"),
                                       ("DECAY_M=5", "there is no option DECAY_M; the nearest is decay_ms"), ("qqq=5", "there is no option qqq\n"), ("decay_ms=50ms=3", "it may be"),
                                       ("decay_ms=\x01\x1b", "it may be"), ("decay_ms=" + "9" * 500, "it may be"),
                                       ("limit_hard=16E", "it may be"), ("limit_soft=0%", "it may be"),
                                       ("limit_soft=101%", "it may be"), ("dirty_max=-1", "it may be")):
                self.assertIn(answer, hummock("set", target.pid, assignment, status=2).stderr)
        for assignment, answer, status in (("a=b", "there is no such process", 1), ("a:b", "option=value", 2)):
            self.assertIn(answer, hummock("set", "999999999", assignment, status=status).stderr)

    def test_somebody_holds_the_page(self):
        with Target("threads", 1) as target:
            with open(page_of(target.pid), "r+b") as page:
                fcntl.flock(page, fcntl.LOCK_EX)
                self.assertIn("somebody else is asking it", hummock("trim", target.pid, "--wait", "100", status=1).stderr)
            hummock("trim", target.pid, *PATIENCE)

    def test_trim(self):
        with Target("hold", 10, 1000, decay_ms=3600000, dirty_max="1G") as target:
            for _ in range(1000):
                if target.stats()["totals"]["dirty"] >= 2 << 20:
                    break
            target.asked("trim", target.pid)
            for _ in range(1000):
                if target.stats()["totals"]["purged"] >= 1 << 20:
                    break
            self.assertGreaterEqual(target.stats()["totals"]["purged"], 1 << 20)

    def test_requests_of_all_kinds(self):
        """What no tool of ours would ask: the process refuses it and goes on."""
        with Target("threads", 2) as target:
            target.stats()
            with open(page_of(target.pid), "r+b", buffering=0) as page:
                head = os.pread(page.fileno(), 96, 0)
                self.assertEqual(head[:8], b"hummpage")
                for number, (kind, option, value) in enumerate([(9, 0, 0), (2, 2**32 - 1, 5), (2, 7, -2**63), (2**32 - 1, 0, 0),
                                                                (2, 0, 2**63 - 1)]):
                    os.pwrite(page.fileno(), struct.pack("<IIq", kind, option, value), 56)
                    os.pwrite(page.fileno(), struct.pack("<I", 1000 + number), REQUEST)
                    target.stats()
                    answered, result = struct.unpack("<Ii", os.pread(page.fileno(), 8, ANSWERED))
                    self.assertEqual(answered, 1000 + number)
                    self.assertNotEqual(result, 0)
                with self.assertRaises(OSError):
                    os.ftruncate(page.fileno(), 0)
                os.pwrite(page.fileno(), b"\xff" * 24000, 48)
                os.pwrite(page.fileno(), b"\x00" * 24000, 48)
        self.assertEqual(target.status, 0)

    def test_many_while_it_forks_and_throws(self):
        rounds = int(os.environ.get("OBSERVE_ROUNDS", "25"))
        with Target("threads", 64) as target:
            for number in range(rounds):
                hummock("set", target.pid, f"decay_ms={number % 100}", *PATIENCE)
                hummock("trim", target.pid, *PATIENCE)
                stats = target.stats()
                blocks = sum(row["live_blocks"] * row["block_size"] for row in stats["classes"])
                self.assertEqual(stats["totals"]["live"], blocks + stats["totals"]["large_bytes"])
        self.assertEqual(target.status, 0)


class Many(unittest.TestCase):
    """Requests, right and wrong ones, each answered with figures, while 64 threads churn and one forks, throws and
    loads libraries. OBSERVE_REQUESTS=10000 takes two minutes. Tools that other tests run ask all processes of this
    user, this one too: so each request is made under the page's lock, and `asked` is nobody's own."""

    @staticmethod
    def ask(fd, kind, option, value):
        """The lock stays with the caller."""
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.pwrite(fd, struct.pack("<IIq", kind, option, value), 56)
        os.pwrite(fd, struct.pack("<I", word(fd, REQUEST) + 1), REQUEST)
        os.pwrite(fd, struct.pack("<I", word(fd, ASKED) + 1), ASKED)

    def test_requests(self):
        rng = random.Random(int(os.environ.get("TEST_SEED", "1")))
        with Target("threads", 64) as target:
            names = list(target.stats()["options"])
            options = [i for i in range(len(names) + 5) if i != names.index("limit_hard")]  # by which new would throw
            fd = os.open(page_of(target.pid), os.O_RDWR)
            self.addCleanup(os.close, fd)
            for _ in range(int(os.environ.get("OBSERVE_REQUESTS", "500"))):
                self.ask(fd, rng.choice([1, 2, 2, 9]), rng.choice(options), rng.choice([0, 1, 50, 1000, -1, 2**40]))
                while word(fd, ANSWERED) != word(fd, REQUEST):
                    self.assertIsNone(target.process.poll())
                    time.sleep(0.0005)
                fcntl.flock(fd, fcntl.LOCK_UN)
        self.assertEqual(target.status, 0)
