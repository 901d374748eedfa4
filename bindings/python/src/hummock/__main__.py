"""python -m hummock run script.py: a program on Hummock."""

import argparse
import os
import sys

import hummock
from hummock import _preload


def arguments():
    parser = argparse.ArgumentParser(prog="python -m hummock", description="The Hummock memory allocator.")
    parser.add_argument("--version", action="version", version=f"hummock {hummock.version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="run|path")
    run = commands.add_parser("run", help="run a program on Hummock")
    run.add_argument("--pymalloc", action="store_true",
                     help="leave small objects to Python's own allocator (else PYTHONMALLOC is malloc unless you set it)")
    run.add_argument("-m", dest="module", action="store_true", help="the program is a module's name")
    run.add_argument("program", help="a script, or with -m a module")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="what the program is given")
    commands.add_parser("path", help="print the path of the library, for LD_PRELOAD")
    return parser.parse_args()


def preloadable():
    try:
        return _preload.name_of(hummock.library_path())
    except OSError as error:
        sys.exit(f"hummock: {error}")


def run(options):
    if not options.module and not os.path.exists(options.program):
        sys.exit(f"hummock: there is no {options.program}")
    library = preloadable()
    environment = dict(os.environ)
    others = environment.get("LD_PRELOAD", "")
    environment["LD_PRELOAD"] = f"{library}:{others}" if others else library
    if not options.pymalloc and not environment.get("PYTHONMALLOC"):
        environment["PYTHONMALLOC"] = "malloc"
    program = ["-m", options.program] if options.module else [options.program]
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *program, *options.arguments], environment)


def main():
    options = arguments()
    if options.command == "path":
        print(preloadable())
    else:
        run(options)


if __name__ == "__main__":
    main()
