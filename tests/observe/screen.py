"""hummock top, on a terminal."""

import fcntl
import os
import pty
import select
import struct
import termios
import time
import unittest

from support import TOOL, CALM, hummock, Target


class Top(unittest.TestCase):
    def on_terminal(self, columns, rows, *arguments):
        pid, fd = pty.fork()
        if pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(TOOL, [TOOL, "top", "--every", "100ms", *arguments], dict(CALM, TERM="xterm"))
        return pid, fd

    def press(self, fd, keys, words):
        """The screen is drawn anew each time, as else it is only told what has changed."""
        seen = b""
        os.write(fd, keys)
        for _ in range(1000):
            time.sleep(0.1)
            os.write(fd, b"\x0c")
            while select.select([fd], [], [], 0.1)[0] and words not in seen:
                seen += os.read(fd, 65536)
            if words in seen:
                return
        self.fail(f"{words} is not shown: {seen[-2000:]}")

    def test_keys(self):
        for columns, rows in ((80, 24), (160, 50), (20, 3)):
            with Target("threads", 2) as target:
                target.stats()
                pid, fd = self.on_terminal(columns, rows, target.pid)
                self.press(fd, b"", b"observe_target")
                if rows > 3:
                    self.press(fd, b"t", b"THREAD")
                    self.press(fd, b"c", b"BLOCK")
                    self.press(fd, b"\x7f", b"PROGRAM")
                    self.press(fd, b"s\n", b"BLOCK")
                os.write(fd, b"q")
                while select.select([fd], [], [], 60)[0]:
                    try:
                        os.read(fd, 65536)
                    except OSError:
                        break  # so ends a terminal whose program has ended
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
                os.close(fd)

    def test_where_there_is_nothing(self):
        self.assertIn("this is not a terminal", hummock("top", status=1).stderr)
