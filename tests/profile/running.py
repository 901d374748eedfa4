"""Profiles of programs that run."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from support import CALM, LIBRARY, PATIENCE, SAMPLES, TARGET, TOOL, hummock


class Served:
    def __init__(self, *command, **options):
        env = dict(CALM, LD_PRELOAD=LIBRARY, **options)
        self.process = subprocess.Popen(command or [TARGET, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = str(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Process(unittest.TestCase):
    def test_a_running_process(self):
        with Served() as served:
            done = hummock("profile", served.pid, "--seconds", "1", "--bytes", "16K", "--churn", *PATIENCE)
            self.assertRegex(done.stdout, rf"^profile_target \({served.pid}\): \S+ asked for in some \d+ blocks within ")
            self.assertIn("drop_soon (target.cc:", done.stdout)
            again = hummock("profile", served.pid, "--seconds", "0.5", *PATIENCE).stdout
            self.assertIn("keep (target.cc:", again)
            self.assertNotIn("drop_soon (target.cc:", hummock("profile", "profile_target", "--seconds", "0.2", *PATIENCE).stdout
                             .split("\n", 3)[2])

    def test_files_are_those_that_the_process_sees(self):
        if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no namespace of mounts can be made here")
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/program"
            shutil.copy(TOOL, path)  # what stands there for all others
            with Served("unshare", "-m", "sh", "-c", f"mount --bind {TARGET} {path} && exec {path} serve") as served:
                done = hummock("profile", served.pid, "--seconds", "0.5", "--bytes", "16K", *PATIENCE)
            self.assertRegex(done.stdout, r"keep \(target.cc:\d+\)")

    def test_it_stops_when_nobody_looks(self):
        with Served() as served:
            for _ in range(3):
                hummock("profile", served.pid, "--seconds", "0", *PATIENCE)
            samples = [self.samples(served.pid)]
            time.sleep(0.3)
            samples.append(self.samples(served.pid))
            self.assertEqual(*samples)

    def samples(self, pid):
        """The head's `samples` (include/hummock/profile.h), once `on` is 0."""
        for _ in range(500):
            for head in self.heads(pid):
                if int.from_bytes(head[20:24], "little") == 0:
                    return int.from_bytes(head[SAMPLES], "little")
            time.sleep(0.02)
        raise AssertionError("the profiler is still on")

    def heads(self, pid):
        """The beginning of each profile that the process has open."""
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            try:
                if os.readlink(path) == "/memfd:hummock-profile (deleted)":
                    with open(path, "rb") as file:
                        yield file.read(4096)
            except FileNotFoundError:
                pass

    def test_on_from_the_start_and_not_stopped(self):
        with Served(HUMMOCK_PROFILE="16K") as served:
            for _ in range(2):
                done = hummock("profile", served.pid, "--seconds", "0.2", *PATIENCE)
                self.assertIn("a sample in 16", done.stdout)
                self.assertIn("keep (target.cc:", done.stdout)

    def test_interrupted(self):
        with Served() as served:
            tool = subprocess.Popen([TOOL, "profile", served.pid, "--seconds", "1000", "--bytes", "16K", *PATIENCE],
                                    stdout=subprocess.PIPE, env=CALM)
            self.samples_at_least(tool.pid, 5)
            tool.send_signal(signal.SIGINT)
            output = tool.communicate()[0].decode()
            self.assertEqual(tool.returncode, 0)
            self.assertIn("keep (target.cc:", output)

    def samples_at_least(self, pid, count):
        """Where that process has the profile open: the target, or the tool."""
        for _ in range(5000):
            if any(int.from_bytes(head[SAMPLES], "little") >= count for head in self.heads(pid)):
                return
            time.sleep(0.02)
        raise AssertionError("there are no samples")

    def test_the_process_is_killed_meanwhile(self):
        with Served() as served:
            tool = subprocess.Popen([TOOL, "profile", served.pid, "--seconds", "1000", "--bytes", "16K", *PATIENCE],
                                    stdout=subprocess.PIPE, env=CALM)
            self.samples_at_least(tool.pid, 50)
            served.process.kill()
            served.process.wait()
            output = tool.communicate()[0].decode()
            self.assertEqual(tool.returncode, 0)
            self.assertIn("keep (target.cc:", output)

    def test_refusals(self):
        for options, why in [({"HUMMOCK_CHECKED": "on"}, "checked mode"), ({"HUMMOCK_OBSERVE": "off"}, "no page")]:
            with Served(**options) as served:
                done = hummock("profile", served.pid, *PATIENCE, status=1)
                self.assertIn(why, done.stderr)
