"""The command line tool, and programs for it to run."""

import os
import subprocess
import sys

TOOL, LIBRARY = sys.argv[1:3]


def hummock(*arguments, **more):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=1500, check=False, **more)


def compiled(folder, source, *flags):
    program = os.path.join(folder, "program")
    subprocess.run(["cc", "-x", "c", "-", "-o", program, *flags], input=source, text=True, check=True)
    return program
