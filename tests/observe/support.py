"""The command line tool, and programs for it to look at."""

import json
import os
import pathlib
import subprocess
import sys
import time

TOOL, LIBRARY, TARGET, SOURCE = sys.argv[1:5]
PATIENCE = ["--wait", "20000"]  # against hangs alone: an answer comes in milliseconds
CALM = {k: v for k, v in os.environ.items() if not k.startswith("HUMMOCK_") and k != "LD_PRELOAD"}


def hummock(*arguments, status=0):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, env=CALM)
    if status is not None and done.returncode != status:
        raise AssertionError(f"hummock {arguments}: {done.returncode}, {done.stdout} {done.stderr}")
    return done


class Target:
    """A program on Hummock that ends with the `with`."""

    def __init__(self, *arguments, under=(), program=TARGET, **options):
        env = dict(CALM, LD_PRELOAD=LIBRARY)
        env.update({f"HUMMOCK_{name.upper()}": str(value) for name, value in options.items()})
        self.process = subprocess.Popen([*under, program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=env, bufsize=0)
        self.said = []
        while not self.said or self.said[-1] != "ready":
            line = self.process.stdout.readline()
            assert line, "the target ended early"
            self.said.append(line.decode().strip())
        self.pid = str(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.status = self.process.wait()
        self.process.stdout.close()

    def asked(self, *command):
        """What the tool prints; meanwhile the target, if it is one of those, makes calls by which it answers."""
        tool = subprocess.Popen([TOOL, *command, *PATIENCE], stdout=subprocess.PIPE, env=CALM)
        while tool.poll() is None:
            self.process.stdin.write(b"x")
            time.sleep(0.002)
        output = tool.communicate()[0]
        assert tool.returncode == 0, command
        return output

    def stats(self):
        return json.loads(self.asked("stats", self.pid, "--json"))


def page_of(pid):
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        try:
            if os.readlink(path) == "/memfd:hummock (deleted)":
                return path
        except FileNotFoundError:
            pass
    return None


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
