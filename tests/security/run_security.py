#!/usr/bin/env python3
"""Runs the security programs on an allocator and says what came of each.

  run_security.py suite --programs build/tests/security --library build/libhummock.so
  run_security.py suite --programs build/tests/security --library /other/libhummock.so --only 'double_*' -v
  run_security.py suite --programs build/tests/security                (the C library's own allocator)
  run_security.py race  --programs build/tests/security --library build/libhummock.so --mode checked
  run_security.py links --programs build/tests/security --library build/libhummock.so
  run_security.py wrong --programs build/tests/security --library build/libhummock.so --trials 1 --first 4711

suite: each program runs alone and ends, as a short program does; that decides whether it counts as stopped.
Where nothing stopped it, it runs again and lives on, while the allocator is watched for wrong memory.
  told     one line and abort; with where: at the call, at the free, later, at the end
  fault    ended by the hardware at the program's own access, to an inaccessible page: counts as stopped
  crash    ended by the hardware inside a call of the allocator
  silent   went on; of reads: what was seen.  blunted: the read saw nothing of use
  corrupt  the allocator then handed out wrong memory
"""

import argparse
import concurrent.futures
import fnmatch
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
import pages  # noqa: E402

CORRUPT, SKIPPED = 42, 77
MODES = {"default": {}, "checked": {"HUMMOCK_CHECKED": "1"}}
PEER_MESSAGES = ("mimalloc: error", "mimalloc: assertion", "ERROR: Scudo", "attempt to free invalid")
ACCESSES = ("write", "read")
WHERE = {"call": "at the call", "free": "at the block's free", "later": "at a later call", "end": "at the end",
         "write": "at the write", "read": "at the read", "": "before it"}
WRONG = ("corrupt", "hang", "failed")


@dataclass
class Result:
    name: str
    family: str
    what: str
    why: str
    verdict: str
    where: str = ""  # the stage
    message: str = ""
    later: str = ""  # what came of it when the program lived on

    def stopped(self):
        return self.verdict in ("told", "fault")

    def text(self):
        words = self.verdict + (" " + WHERE.get(self.where, self.where) if self.where else "")
        return words + (f" ({self.later})" if self.later else "")


# ---- What is expected --------------------------------------------------------------------------------


def read_expected():
    patterns, counts = [], {}
    with open(os.path.join(HERE, "expected.txt"), encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] == "=":
                counts[words[1]] = {"default": int(words[2]), "checked": int(words[3])}
            else:
                patterns.append((words[0], {"default": words[1], "checked": words[2]}))
    return patterns, counts


def good(result, expected):
    if result.verdict in WRONG or result.later == "corrupt":
        return False
    return {"call": result.verdict == "told" and result.where == "call", "told": result.verdict == "told",
            "stopped": result.stopped(), "blind": "an address" not in result.message, "any": True}[expected]


# ---- Running -----------------------------------------------------------------------------------------


def environment(options):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HUMMOCK_", "LD_", "MALLOC_", "GLIBC_"))}
    env.update(MODES[options.mode])
    if options.library:
        env["LD_PRELOAD"] = os.path.abspath(options.library)
        if " " in env["LD_PRELOAD"] or ":" in env["LD_PRELOAD"]:  # where LD_PRELOAD is cut
            options.descriptor = os.open(env["LD_PRELOAD"], os.O_RDONLY)
            env["LD_PRELOAD"] = f"/proc/{os.getpid()}/fd/{options.descriptor}"
    return env


def prepare():
    """In the child: its own process group, no core files."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, env, timeout):
    """The exit status (negative: a signal; None: it hung) and what stands on standard error."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                                 preexec_fn=prepare, env=env)
        try:
            status = child.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        errors.seek(0)
        return status, errors.read(1 << 17).decode("utf-8", "replace")


def stage_at(lines, message):
    """The last stage before the message; of all lines without one."""
    stage = ""
    for line in lines:
        if message and line == message:
            break
        if line.startswith("@ ") and not line.startswith("@ saw"):
            stage = line[2:]
    return stage


def first(lines, prefix):
    return next((line for line in lines if line.startswith(prefix)), "")


def classify(status, text, hummock):
    """Verdict, stage, message."""
    lines = [line.strip() for line in text.splitlines()]
    last = stage_at(lines, "")
    plain = next((line for line in lines if line and not line.startswith("@ ")), "")
    if status is None:
        return "hang", last, plain
    if status == CORRUPT:
        return "corrupt", "", first(lines, "corrupt:")
    if status == SKIPPED:
        return "skipped", "", first(lines, "skipped:")
    message = first(lines, "hummock:")
    if status < 0:
        name = signal.Signals(-status).name
        if hummock:
            told = status == -signal.SIGABRT and message
        else:
            told = -status in (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
            message = plain
        if told:
            return "told", stage_at(lines, message), message
        if -status in (signal.SIGSEGV, signal.SIGBUS) and last in ACCESSES:
            return "fault", last, name
        return "crash", last, name
    if any(words in text for words in PEER_MESSAGES):
        return "told", stage_at(lines, plain), plain
    if message:  # told, and the program may go on: not a stop
        return "silent", "", message
    if status != 0:
        return "failed", last, plain or f"exit {status}"
    saw = [line[6:] for line in lines if line.startswith("@ saw ")]
    if saw:
        seen = sorted({s for s in saw if s != "nothing of use"})
        return ("silent", "", "it reads " + " and ".join(seen)) if seen else ("blunted", "", "it reads nothing useful")
    return "silent", "", ""


def run_suite(options):
    program = os.path.join(options.programs, "suite")
    listed = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout
    hummock = "hummock" in os.path.basename(options.library or "")
    env = environment(options)

    def one(fields):
        name, family, what, why_default, why_checked = fields[:5]
        timeout = int(fields[6]) * options.patience
        status, text = run([program, name], env, timeout)
        verdict, where, message = classify(status, text, hummock)
        result = Result(name, family, what, why_default if options.mode == "default" else why_checked, verdict,
                        where, message)
        if options.verbose:
            print(f"--- {name}: {result.text()} (status {status})\n{text}", flush=True)
        if verdict in ("silent", "blunted", "crash"):
            for more in ("long", "quiet"):
                status, text = run([program, name, more], env, timeout)
                later, _, message = classify(status, text, hummock)
                if later in WRONG:
                    result.later, result.message = "corrupt" if later == "corrupt" else later, message
                    if later != "corrupt":
                        result.verdict = later
                    break
                if later in ("told", "crash") and not result.later:
                    result.later = f"{'reported' if later == 'told' else later} if it goes on"
                if options.verbose:
                    print(f"--- {name} {more}: {later} (status {status})\n{text}", flush=True)
        return result

    cases = [line.split("\t") for line in listed.splitlines()]
    cases = [c for c in cases if fnmatch.fnmatch(c[0], options.only)]
    if not cases:
        sys.exit(f"no case matches {options.only}")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(one, cases))


def run_counted(options, *arguments):
    """race, links and wrong print lines `name value…`; totals are `= name value`."""
    command = [os.path.join(options.programs, options.part), *map(str, arguments)]
    env = environment(options)
    done = subprocess.run(command, env=env, preexec_fn=prepare, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=1500 * options.patience)
    print(done.stdout, end="")
    if done.returncode != 0:
        print(done.stderr[-4000:], file=sys.stderr)
        sys.exit(f"{options.part} ended with {done.returncode}")
    totals = [line.split() for line in done.stdout.splitlines() if line.startswith("= ")]
    return {name: int(value) for _, name, value in totals}


# ---- What is printed ---------------------------------------------------------------------------------


def totals(results):
    counts = {}
    for r in results:
        counts[r.verdict] = counts.get(r.verdict, 0) + 1
    at_call = sum(r.verdict == "told" and r.where == "call" for r in results)
    corrupt = sum(r.later == "corrupt" or r.verdict == "corrupt" for r in results)
    parts = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
    return (f"{sum(r.stopped() for r in results)} of {len(results)} stopped, {at_call} by the wrong call itself; "
            f"{corrupt} end in wrong memory ({parts})")


def generic(message):
    """A message without what differs from run to run."""
    message = re.sub(r"^hummock(\[\d+\])?: ?(\d+: )?", "", message)
    return re.sub(r"0x[0-9a-f]{5,}", "0x…", message).replace("|", "\\|")


def cell(result):
    if result.verdict == "told":
        return f"reported {WHERE.get(result.where, result.where)}: `{generic(result.message)}`"
    if result.verdict == "fault":
        return f"stopped {WHERE.get(result.where, result.where)} by an inaccessible page"
    words = {"silent": "not detected", "blunted": "not detected", "crash": "stopped by the hardware"}
    reasons = [r for r in (result.message if result.verdict != "crash" else "", result.why, result.later) if r]
    return ": ".join([words.get(result.verdict, result.verdict), "; ".join(map(generic, reasons))]).rstrip(": ")


def markdown(by_mode):
    text = ""
    for mode, results in by_mode.items():
        stopped = sum(r.stopped() for r in results)
        at_call = sum(r.verdict == "told" and r.where == "call" for r in results)
        text += f"- **{mode} mode**: {stopped} of {len(results)} stopped, {at_call} of them by the wrong call itself\n"
    family = None
    for ours, theirs in zip(by_mode["default"], by_mode["checked"]):
        if ours.family != family:
            family = ours.family
            text += f"\n### {family.capitalize()}\n\n| program | what it does | default mode | checked mode |\n"
            text += "|---|---|---|---|\n"
        text += f"| `{ours.name}` | {ours.what} | {cell(ours)} | {cell(theirs)} |\n"
    return text


# ---- Gates -------------------------------------------------------------------------------------------


def gate_suite(results, options, patterns, counts):
    wrong = []
    for r in results:
        expected = next(modes[options.mode] for pattern, modes in patterns if fnmatch.fnmatch(r.name, pattern))
        if not good(r, expected):
            wrong.append(f"{r.name}: {r.text()}; expected: {expected}")
    if options.only == "*":
        if len(results) != counts["suite.programs"][options.mode]:
            wrong.append(f"{len(results)} programs, not {counts['suite.programs'][options.mode]}")
        stopped = sum(r.stopped() for r in results)
        if stopped < counts["suite.least_stopped"][options.mode]:
            wrong.append(f"{stopped} stopped: less than {counts['suite.least_stopped'][options.mode]}")
    return wrong


def gate_counts(found, options, counts):
    wrong = []
    for name, most in counts.items():
        part, figure = name.split(".")
        if part == options.part and found.get(figure, most[options.mode] + 1) > most[options.mode]:
            wrong.append(f"{name} is {found.get(figure)}, more than {most[options.mode]}")
    return wrong


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("suite", "race", "links", "wrong"))
    parser.add_argument("--programs", required=True, help="the folder where the programs were built")
    parser.add_argument("--library", help="allocator to preload; without it the C library's own")
    parser.add_argument("--mode", choices=MODES, default="default", help="of Hummock")
    parser.add_argument("--gate", action="store_true", help="exit 1 when something is not as in expected.txt")
    parser.add_argument("--markdown", metavar="FILE", help="suite: run both modes, put the tables into FILE")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="suite: programs whose name matches")
    parser.add_argument("--trials", type=int, help="race: of each size and pair of threads (2,500); wrong: in all (20,000)")
    parser.add_argument("--first", type=int, default=1, help="wrong: number of the first trial")
    parser.add_argument("--tries", type=int, default=142724, help="links: writes in all")
    parser.add_argument("--seed", type=int, default=1, help="links: draws other words and targets")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--patience", type=float, default=1, help="factor on the time limits")
    parser.add_argument("-v", "--verbose", action="store_true", help="all that each program printed")
    return parser.parse_args()


def main():
    options = parse()
    patterns, counts = read_expected()
    if options.markdown:
        by_mode = {}
        for options.mode in MODES:
            by_mode[options.mode] = run_suite(options)
            print(f"{options.mode}: {totals(by_mode[options.mode])}")
        pages.put_between_markers(options.markdown, "security programs", markdown(by_mode))
        return
    if options.part == "suite":
        results = run_suite(options)
        width = max(len(r.name) for r in results)
        for r in results:
            print(f"{r.name:{width}}  {r.text():28}  {r.message}".rstrip())
        print(f"\n{options.mode}: {totals(results)}")
        wrong = gate_suite(results, options, patterns, counts)
    else:
        arguments = {"race": [options.trials or 2500], "links": [options.tries, options.seed],
                     "wrong": [options.trials or 20000, options.first]}[options.part]
        wrong = gate_counts(run_counted(options, *arguments), options, counts)
    if options.gate:
        for line in wrong:
            print(f"not as expected: {line}")
        sys.exit(1 if wrong else 0)


main()
