#!/usr/bin/env python3
"""Runs a program under Wine as a game is run: in a directory of its own with dll/hummock_bi.dll in it, and
holds what it leaves, the log first of all, to what it should be.

Usage: run_wine.py --build BUILD --prefix WINEPREFIX game|faked|c_interface|run SCENARIO | boot | stop
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SKIP = 77
HEADER = [
    r"hummock \d+\.\d+\.\d+ region log$",
    r"started: \d{8}-\d{6} UTC$",
    r"process: \d+$",
    r"program: .*\.exe$",
    r"library: .*\.(exe|dll)$",
    r"system: Windows \d+\.\d+\.\d+, service pack \d+\.\d+, (desktop|server)$",
    r"cpu: .+, \d+ logical in \d+ group\(s\), process of (32|64) bits$",
    r"memory: total \d+ MiB, available \d+ MiB$",
    r"address space: available \d+ MiB$",
    r"commit: limit \d+ MiB, peak \d+ MiB, current \d+ MiB$",
    r"system cache: \d+ MiB$",
    r"processes: \d+, threads \d+, handles \d+$",
    r"uptime: \d+ minutes$",
    r"SeLockMemoryPrivilege: (granted|denied|not asked for), huge pages ",
    r"option: verbose:",
]
EVENT = re.compile(r" *\d+\.\d{3}s: +\d+\.\d\dms +\d+k at:0x[0-9a-f]+ "
                   r"(Alloc LP|Alloc SP|Alloc SP failed|Free|Flush|Flush request|Purge|Grow|Alloc LP failed -> (SP|less))"
                   r" \( *\d+M\)( .*)?$")
BEGIN = ("game", "faked")  # these say first thing in main that they begin
DENIED = 'SeLockMemoryPrivilege: denied, huge pages disabled (error 1300: ' \
         'the user lacks the privilege "Lock pages in memory")'


def environment(prefix):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HUMMOCK_", "DISPLAY"))}
    env.update(WINEPREFIX=str(prefix), WINEDEBUG="-all",
               WINEDLLOVERRIDES="mscoree,mshtml=;winemenubuilder.exe,winedbg.exe=d")
    return env


def wine(prefix, arguments, directory, extra=None):
    env = environment(prefix) | (extra or {})
    return subprocess.run(["wine"] + [str(a) for a in arguments], cwd=directory, env=env, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, capture_output=True, timeout=1500)


class Game:
    """A game's directory, and what a run in it left."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        (directory / "dll").mkdir()
        shutil.copy(options.build / "hummock_bi.dll", directory / "dll")
        shutil.copy(options.build / "hummock.dll", directory)
        self.problems, self.raw = [], ""

    def run(self, program, scenario, **variables):
        for old in self.directory.glob("malloc_*.log"):
            old.unlink()
        arguments = [self.options.build / "tests/windows" / f"{program}.exe"] + ([scenario] if scenario else [])
        self.ended = wine(self.options.prefix, arguments, self.directory, variables)
        for _ in range(2):  # once in thousands of starts Wine ends before main, without a word
            if program not in BEGIN or "begins" in self.ended.stdout:
                break
            print(f"Wine did not start {program}.exe, it ended with {self.ended.returncode}: {self.ended.stderr}")
            self.ended = wine(self.options.prefix, arguments, self.directory, variables | {"WINEDEBUG": "fixme-all"})
        logs = list(self.directory.glob("malloc_*.log"))
        self.raw = logs[0].read_bytes().decode() if len(logs) == 1 else ""
        self.log = self.raw.split("\r\n")
        self.logs = len(logs)
        return self

    def check(self, good, what):
        if not good:
            self.problems.append(what)
        return self

    def passed(self):
        good = self.ended.returncode == 0 and "passed" in self.ended.stdout
        return self.check(good, f"{' '.join(map(str, self.ended.args))} ended with {self.ended.returncode}; it wrote:\n"
                                f"{self.ended.stdout}{self.ended.stderr}")

    def has(self, text):
        return self.check(any(text in line for line in self.log), f"the log lacks: {text}")

    def lacks(self, text):
        return self.check(text not in self.raw, f"the log has: {text}")

    def has_header(self):
        self.check(self.logs == 1, f"{self.logs} logs were written")
        lines = [line for line in self.log if not line.startswith("hummock: ")]
        for pattern, line in zip(HEADER, lines):
            self.check(re.match(pattern, line), f"{line!r} is not as {pattern}")
        for told in ("option: log:region", "events:", "active: yes"):
            self.check(any(line.startswith(told) for line in self.log), f"not told: {told}")
        self.check(self.raw.endswith("\r\n"), "the last line has no end")
        events = [line for line in self.log if re.match(r" *\d+\.\d+s:", line)]
        self.check(events, "no region is told")
        for line in events:
            self.check(EVENT.match(line), f"not an event: {line!r}")
        return self

    def write_conf(self, text, name="hummock_bi"):
        (self.directory / "dll" / f"{name}.conf").write_text(text, encoding="utf-8")


def run_game(game, scenario):
    if scenario == "crash":  # nothing runs at its end: what was written before must be there
        game.run("game", scenario).check(game.ended.returncode != 0, "it did not crash")
        return game.has_header().has("Alloc SP").lacks("summary")
    if scenario == "double_free":
        game.run("game", scenario).check(game.ended.returncode != 0, "it was not stopped")
        game.check("passed" not in game.ended.stdout, "it went on")
        return game.has_header().has("double free").has("misused its memory")
    game.run("game", scenario)
    if scenario == "exit":  # its threads were stopped, perhaps inside the allocator
        game.check(game.ended.returncode == 0, f"it ended with {game.ended.returncode}")
        return game.has_header().check("summary" in game.raw, "no summary")
    if scenario == "reload":
        return game.passed().check(game.logs == 1 and game.raw.count("unloaded: ") == 10, "no summary")
    game.passed().has_header().has(DENIED).lacks("Alloc LP (")
    game.has("unloaded: " if scenario == "unload" else "summary: the program ends").has("summary live: ")
    if scenario == "huge_pages":
        game.has("EnableHugePages: called").has("Flush (")
    if scenario == "figures":
        game.has("gave back ")
    return game


def run_options(game, _):
    """The file beside the DLL, the environment over it, the DLL by another name."""
    game.write_conf("nolog\n")
    game.run("game", "interface").passed().check(game.logs == 0, "nolog, and yet a log")
    game.run("game", "interface", HUMMOCK_LOG="region").passed().has_header().has("option: log:region (HUMMOCK_LOG)")
    game.write_conf("# a remark, with huge_max:1G\r\nhuge_pages:off\r\ndecay_ms : 50, dirty_maxx:1M\r\n")
    game.run("game", "interface").passed().has_header().has("option: decay_ms:50").has("option: huge_max:none")
    game.has("disabled by the option huge_pages").has('unknown option "dirty_maxx"')
    game.run("game", "interface", HUMMOCK_LOG="none").passed().check(game.logs == 0, "HUMMOCK_LOG=none, and yet a log")
    # As an editor may write it, with a mark at its beginning; and a path with a blank.
    (game.directory / "my logs").mkdir()
    game.write_conf("\ufeffhuge_max:2G\r\nlog_file: my logs\\the %p.log \t# there\r\n")
    game.run("game", "interface").passed().check(game.logs == 0, "log_file, and yet the usual log")
    found = [log.read_text() for log in (game.directory / "my logs").glob("the *.log")]
    game.check(len(found) == 1 and "option: huge_max:2G" in found[0], f"{len(found)} logs where log_file says, or no 2G")
    # A folder that is not there: the log is among the temporary files, and says why.
    for old in game.options.prefix.rglob("astray *.log"):
        old.unlink()
    game.write_conf("log_file:no such folder\\astray %p.log\n")
    game.run("game", "interface").passed().check(game.logs == 0, "log_file, and yet the usual log")
    found = [log.read_text() for log in game.options.prefix.rglob("astray *.log")]
    game.check(len(found) == 1 and re.search(r"here because: .*astray \d+\.log cannot be opened \(error 3", found[0]),
               f"{len(found)} logs in the folder for temporary files, or no reason")
    game.write_conf("background:on\n")
    game.run("game", "background").passed().has_header().has("option: background:on")
    game.write_conf("checked:on\n")
    game.run("game", "interface").passed().has_header().has("option: checked:on")
    game.run("game", "double_free").check("passed" not in game.ended.stdout, "a double free went on")
    return game.has("double free")


def run_faked(game, scenario):
    game.run("faked", scenario).passed().has_header().has("summary: the program ends")
    told = {
        "granted": ["granted, huge pages enabled (of 2048k)", "32768k at:0x", "Alloc LP (    32M)", "summary pinned: 128 MiB"],
        "unsupported": ["huge pages disabled: this system has none"],
        "option_off": ["disabled by the option huge_pages", "EnableHugePages: called; SeLockMemoryPrivilege: not asked for"],
        "denied_1300": [DENIED, "EnableHugePages: called; SeLockMemoryPrivilege: granted, huge pages enabled", "Alloc LP ("],
        "denied_call": ["denied, huge pages disabled (error 5"],
        "denied_1314": ["Alloc LP failed -> SP (     0M) error 1314: the user lacks the privilege"],
        "fragmented_1450": ["Alloc LP failed -> SP", "error 1450: no free memory in pieces of 2 MiB is left, it is fragmented",
                            "next try in 100 ms", "next try in 200 ms", "Alloc LP ("],
        "capped": ["option: huge_max:64M", "summary pinned: 64 MiB"],
        "reserved": ["Alloc LP (    96M)"],
        "reserved_less": ["Alloc LP failed -> less", "Alloc LP (    64M)", "huge_reserve: 64 of 256 MiB could be had"],
        "reserved_late": [DENIED, "EnableHugePages: called; SeLockMemoryPrivilege: granted", "Alloc LP ("],
        "no_commit": ["gave back"],
    }
    for text in told[scenario]:
        game.has(text)
    if scenario in ("unsupported", "option_off", "denied_call", "denied_1314", "no_commit"):
        game.lacks("Alloc LP (")
    return game


def run_c_interface(game, _):
    return game.run("c_interface", None, HUMMOCK_DECAY_MS="250").passed().check(game.logs == 0, "a log, unasked")


def run_started(game, scenario):
    """hummock.exe: programs that know nothing of Hummock."""
    build, directory = game.options.build, game.directory
    shutil.copy(build / "hummock.exe", directory)

    def start(*arguments):
        game.ended = wine(game.options.prefix, ["hummock.exe", *arguments], directory)
        return game.ended

    def check(good, what):
        game.check(good, f"{what}\n{game.ended.args} {game.ended.returncode}\n{game.ended.stdout}\n{game.ended.stderr}")

    if scenario in ("msvcrt", "ucrt"):
        program = build / "tests/windows" / ("crt_program.exe" if scenario == "msvcrt" else "crt_program_ucrt.exe")
        alone = wine(game.options.prefix, [program], directory)
        game.check("passed: malloc of the system" in alone.stdout, f"alone: {alone.stdout} {alone.stderr}")
        ended = start("run", "--verbose", "--stats", "--", program, "a b", 'c"d\\', "")
        check(ended.returncode == 4 and "passed: malloc of hummock" in ended.stdout, "not on Hummock")
        check(ended.stdout.split("\n")[1:4] == ["[a b]", '[c"d\\]', "[]"], "arguments are not what they were")
        check("1 module(s) of it on Hummock" in ended.stderr and " statistics of process " in ended.stderr, "not told")
    if scenario == "options":
        program = build / "tests/windows/crt_program.exe"
        check(start("run", "--conf", "checked:on", "--", program).stdout == "passed: malloc of hummock\n", "checked mode")
        check(start("--version").stdout.startswith("hummock "), "version")
        check("usage: hummock run" in start("run", "--help").stdout, "help")
        for arguments, status, text in ((["run"], 2, "name a program"), (["run", "--nope", program], 2, "--nope"),
                                        (["rum"], 2, "nearest is run"), (["run", "--", "nope.exe"], 127, "not found"),
                                        (["run", "--", "hummock.dll"], 126, "cannot be started")):
            check(start(*arguments).returncode == status and text in game.ended.stderr, f"{arguments}")
    if scenario == "refused":
        ended = start("run", "--", build / "tests/windows/no_crt.exe")
        check(ended.returncode == 125 and "not run: none of its modules takes malloc" in ended.stderr, "not refused")
        (directory / "hummock.dll").unlink()
        ended = start("run", "--", build / "tests/windows/crt_program.exe")
        check(ended.returncode == 125 and "hummock.dll" in ended.stderr, "without the DLL")
    if scenario == "package":
        run_package(game, start, check)
    return game


def run_package(game, start, check):
    """A program from elsewhere: SWIG for Windows as PyPI has it reads and writes a few thousand lines."""
    kept = game.options.build / "swig"
    if not list(kept.glob("*.whl")):
        fetched = subprocess.run([sys.executable, "-m", "pip", "-q", "download", "--no-deps", "--only-binary", ":all:",
                                  "--platform", "win_amd64", "-d", kept, "swig==4.5.1"],
                                 capture_output=True, check=False)  # fmt: skip
        if fetched.returncode != 0:
            print(f"skipped: swig cannot be had: {fetched.stderr.decode()[-300:]}")
            sys.exit(SKIP)
    with zipfile.ZipFile(next(kept.glob("*.whl"))) as wheel:
        wheel.extractall(game.directory)
    data = game.directory / "swig/data"
    (game.directory / "many.i").write_text(
        "%module many\n%include <std_string.i>\n%inline %{\n#include <string>\n"
        + "".join(f"struct S{i} {{ int a; std::string f{i}(int x, const std::string &y); }};\n" for i in range(300)) + "%}\n")
    arguments = [data / "bin/swig.exe", f"-I{next(data.rglob('python'))}", f"-I{next(data.rglob('swig.swg')).parent}",
                 "-c++", "-python", "-o"]  # fmt: skip
    alone = wine(game.options.prefix, [*arguments, "many.cxx", "many.i"], game.directory)
    game.check(alone.returncode == 0, f"alone: {alone.stdout} {alone.stderr}")
    expected = (game.directory / "many.cxx").read_text()
    (game.directory / "many.cxx").unlink()
    ended = start("run", "--verbose", "--stats", "--", *arguments, "many.cxx", "many.i")
    check(ended.returncode == 0, "swig failed")
    check("on Hummock; served: " in ended.stderr, "not told")
    live = re.search(r"^  live +\S+ \S+ +(\d+)", ended.stderr, re.M)
    check(live and int(live.group(1)) > 1_000_000, "its heap was not Hummock's")
    check((game.directory / "many.cxx").read_text() == expected and len(expected) > 500_000,
          f"another result than the {len(expected)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--may-lack", action="store_true", help="skip what this machine's Wine cannot run")
    parser.add_argument("program", choices=["boot", "stop", "game", "options", "faked", "c_interface", "run"])
    parser.add_argument("scenario", nargs="?")
    options = parser.parse_args()
    options.build, options.prefix = options.build.resolve(), options.prefix.resolve()
    runs = options.prefix / "runs"
    if shutil.which("wine") is None:
        print(f"{'skipped' if options.may_lack else 'FAILED'}: Wine is not installed")
        return SKIP if options.may_lack else 1
    if options.program == "stop":
        subprocess.run(["wineserver", "-k"], env=environment(options.prefix), check=False, timeout=1500)
        return 0
    if options.program == "boot":
        options.prefix.mkdir(parents=True, exist_ok=True)
        runs.unlink(missing_ok=True)
        ended = wine(options.prefix, [options.build / "tests/windows/game.exe"], options.prefix)
        if "usage: game SCENARIO" not in ended.stdout:
            print(f"{'skipped' if options.may_lack else 'FAILED'}: this Wine does not run such programs")
            print(ended.stdout + ended.stderr)
            return SKIP if options.may_lack else 1
        runs.touch()
        return 0
    if not runs.exists():
        print("skipped: this Wine does not run such programs")
        return SKIP
    with tempfile.TemporaryDirectory(prefix="hummock_game_") as directory:
        game = Game(options, pathlib.Path(directory))
        run = {"game": run_game, "options": run_options, "faked": run_faked, "c_interface": run_c_interface, "run": run_started}
        run[options.program](game, options.scenario)
        if game.problems:
            print("\n".join(game.problems))
            print(f"--- ended with {game.ended.returncode}\n{game.ended.stdout}\n{game.ended.stderr}\n--- log\n{game.raw}")
        else:
            print(game.ended.stdout.strip())
        return 1 if game.problems else 0


if __name__ == "__main__":
    sys.exit(main())
