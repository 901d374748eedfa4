"""python -m hummock run script.py: a program on Hummock."""

import argparse
import os
import sys

import hummock


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


def run(options):
    if not options.module and not os.path.exists(options.program):
        sys.exit(f"hummock: there is no {options.program}")
    if any(separator in hummock.library_path() for separator in " :"):
        sys.exit(f"hummock: {hummock.library_path()} cannot be preloaded: blanks and colons separate paths there")
    environment = dict(os.environ)
    others = environment.get("LD_PRELOAD", "")
    environment["LD_PRELOAD"] = f"{hummock.library_path()}:{others}" if others else hummock.library_path()
    if not options.pymalloc and not environment.get("PYTHONMALLOC"):
        environment["PYTHONMALLOC"] = "malloc"
    program = ["-m", options.program] if options.module else [options.program]
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, *program, *options.arguments], environment)


def main():
    options = arguments()
    if options.command == "path":
        print(hummock.library_path())
    else:
        run(options)


if __name__ == "__main__":
    main()
