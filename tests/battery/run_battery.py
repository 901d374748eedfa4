#!/usr/bin/env python3
"""Runs the battery of misuse or of robustness on an allocator and says what came of each case.

  run_battery.py build/tests/battery/misuse --library build/libhummock.so --mode checked
  run_battery.py build/tests/battery/robust --library build/libhummock.so --only 'fork_*' -v
  run_battery.py build/tests/battery/misuse --library /usr/lib/x86_64-linux-gnu/libjemalloc.so.2
  run_battery.py build/tests/battery/misuse                      (the C library's own allocator)

Results of a misuse: detected (stopped with a message, or by a deliberate trap; late: not by the misuse
itself but when the program went on), crash (stopped by the hardware, without a message), silent (went on,
unharmed), corrupt (handed out wrong memory), hang.
Results of a robustness case: passed, failed, skipped (not permitted here), hang.
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import pages  # noqa: E402
import preload  # noqa: E402

CORRUPT, SKIPPED = 42, 77
WRONG = ("corrupt", "hang", "failed")  # results that no misuse may have
MODES = {"default": {}, "checked": {"HUMMOCK_CHECKED": "1"}}
AT_ONCE = ("double free", "invalid free")  # families where the call itself must tell, unless a case says why not
GOES_ON = "@ goes on"  # what the program prints before it lives on
LEAST_DETECTED = {"default": 65, "checked": 93}  # per cent of the cases that can be tried
PEER_MESSAGES = ("mimalloc: error", "mimalloc: assertion", "ERROR: Scudo", "attempt to free invalid")


@dataclass
class Case:
    name: str
    family: str
    what: str
    why_default: str
    why_checked: str
    preload: bool
    timeout: int


@dataclass
class Result:
    case: Case
    outcome: str
    message: str
    late: bool = False

    def text(self):
        return self.outcome + (" late" if self.late else "")


def list_cases(program):
    text = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout
    fields = [line.split("\t") for line in text.splitlines()]
    return [Case(*f[:5], preload=f[5] == "1", timeout=int(f[6])) for f in fields]


def environment(case, options):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HUMMOCK_", "LD_", "MALLOC_", "GLIBC_"))}
    env.update(MODES[options.mode])
    if options.library:
        env["BATTERY_LIBRARY"] = options.library
        if case.preload:
            env["LD_PRELOAD"] = env["BATTERY_LIBRARY"]
    return env


def prepare():
    """In the child: its own process group, no core files."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(case, options, *more):
    """The exit status (negative: a signal; None: it hung) and what stands on standard error."""
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen([options.program, case.name, *more], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=prepare,
                                 env=environment(case, options))
        try:
            status = child.wait(case.timeout * options.patience)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(child.pid, signal.SIGKILL)  # also children of its own that are left
        except ProcessLookupError:
            pass
        child.wait()
        errors.seek(0)
        return status, errors.read(65536).decode("utf-8", "replace")


def first_line(text, wanted=""):
    lines = [line.strip() for line in text.splitlines() if line.strip() != GOES_ON]
    found = [line for line in lines if line.startswith(wanted)] or [""]
    return found[0]


def signal_name(status):
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def classify_misuse(status, text, hummock):
    if status is None:
        return "hang", first_line(text)
    if status == CORRUPT:
        return "corrupt", first_line(text, "corrupt:")
    if status == SKIPPED:
        return "skipped", first_line(text, "skipped:")
    ours = first_line(text, "hummock:")
    if status < 0:
        if hummock:
            detected = status == -signal.SIGABRT and ours
        else:
            detected = -status in (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
        return ("detected", ours or first_line(text)) if detected else ("crash", signal_name(status))
    if any(words in text for words in PEER_MESSAGES):
        return "detected", first_line(text)
    if status != 0:
        return "failed", first_line(text) or f"exit {status}"
    return "silent", first_line(text)


def classify_robust(status, text, _hummock):
    if status is None:
        return "hang", first_line(text)
    if status == SKIPPED:
        return "skipped", first_line(text, "skipped:")
    if status == 0:
        return "passed", first_line(text, "note:")
    return "failed", (f"{signal_name(status)} " if status < 0 else "") + " / ".join(text.split("\n")[:3]).strip(" /")


def run_all(cases, options, classify):
    hummock = "hummock" in os.path.basename(options.library or "")

    def one(case):
        status, text = run(case, options)
        outcome, message = classify(status, text, hummock)
        if classify is classify_misuse and outcome not in WRONG:
            quiet = run(case, options, "quiet")  # what programs write may hide wrong memory
            if classify(*quiet, hummock)[0] in WRONG:
                status, text = quiet
                outcome, message = classify(status, text, hummock)
        if options.verbose:
            print(f"--- {case.name}: {outcome} (status {status})\n{text}", flush=True)
        late = outcome == "detected" and message != "" and GOES_ON in text.partition(message)[0]
        return Result(case, outcome, message, late)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return list(pool.map(one, cases))


# ---- What is printed ---------------------------------------------------------------------------------


def print_table(results, mode):
    width = max(len(r.case.name) for r in results)
    for r in results:
        print(f"{r.case.name:{width}}  {r.text():13}  {r.message}".rstrip())
    print(f"\n{mode}: " + totals(results))


def totals(results):
    outcomes = {}
    for r in results:
        outcomes[r.text()] = outcomes.get(r.text(), 0) + 1
    return f"{len(results)} cases: " + ", ".join(f"{n} {name}" for name, n in sorted(outcomes.items()))


def generic(message):
    """A message without what differs from run to run."""
    words = re.sub(r"^hummock: (\d+: )?", "", message)
    return re.sub(r"0x[0-9a-f]{5,}", "0x…", words).replace("|", "\\|")


def cell(result, why):
    if result.outcome == "detected":
        return f"{'detected later' if result.late else 'detected'}: `{generic(result.message)}`"
    reason = why or result.message
    word = {"silent": "not detected", "crash": "stopped by the hardware"}.get(result.outcome, result.outcome)
    return f"{word}: {generic(reason)}" if reason else word


def markdown(by_mode):
    default, checked = by_mode["default"], by_mode["checked"]
    text = ""
    for mode, results in by_mode.items():
        tried = [r for r in results if r.outcome != "skipped"]
        found = sum(r.outcome == "detected" for r in tried)
        text += f"- **{mode} mode**: {found} of {len(tried)} detected ({100 * found // len(tried)} %)\n"
    family = None
    for ours, theirs in zip(default, checked):
        if ours.case.family != family:
            family = ours.case.family
            text += f"\n### {family.capitalize()}\n\n| case | what the program does | default mode | checked mode |\n"
            text += "|---|---|---|---|\n"
        text += (f"| `{ours.case.name}` | {ours.case.what} | {cell(ours, ours.case.why_default)} "
                 f"| {cell(theirs, ours.case.why_checked)} |\n")
    return text


def gate_misuse(results, mode):
    wrong = [f"{r.case.name} ends in: {r.outcome}" for r in results if r.outcome in WRONG]
    tried = [r for r in results if r.outcome != "skipped"]
    for r in tried:
        why = r.case.why_default if mode == "default" else r.case.why_checked
        if r.case.family in AT_ONCE and not why and r.text() != "detected":
            wrong.append(f"{r.case.name} is not told by the call that makes it: {r.text()}")
    found = sum(r.outcome == "detected" for r in tried)
    if found * 100 < LEAST_DETECTED[mode] * len(tried):
        wrong.append(f"{found} of {len(tried)} detected: less than {LEAST_DETECTED[mode]} %")
    return wrong


def gate_robust(results, _mode):
    return [f"{r.case.name}: {r.outcome}" for r in results if r.outcome not in ("passed", "skipped")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the battery: .../misuse or .../robust")
    parser.add_argument("--library", help="allocator to preload; without it the C library's own")
    parser.add_argument("--mode", choices=MODES, default="default", help="of Hummock")
    parser.add_argument("--gate", choices=MODES, help="run in this mode and exit 1 when it is not good enough")
    parser.add_argument("--markdown", metavar="FILE", help="run both modes and put the table of misuses into FILE")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="cases whose name matches")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--patience", type=float, default=1, help="factor on the time limits")
    parser.add_argument("-v", "--verbose", action="store_true", help="all that each case printed")
    options = parser.parse_args()
    options.mode = options.gate or options.mode
    options.library = options.library and preload.name_of(options.library)
    return options


def main():
    options = parse()
    misuse = os.path.basename(options.program) == "misuse"
    classify, gate = (classify_misuse, gate_misuse) if misuse else (classify_robust, gate_robust)
    cases = [c for c in list_cases(options.program) if fnmatch.fnmatch(c.name, options.only)]
    if not cases:
        sys.exit(f"no case matches {options.only}")
    if options.markdown:
        by_mode = {}
        for options.mode in MODES:
            by_mode[options.mode] = run_all(cases, options, classify)
            print(f"{options.mode}: {totals(by_mode[options.mode])}")
        pages.put_between_markers(options.markdown, "battery", markdown(by_mode))
        return
    results = run_all(cases, options, classify)
    print_table(results, options.mode)
    if options.gate:
        wrong = gate(results, options.mode)
        for line in wrong:
            print(f"not good enough: {line}")
        sys.exit(1 if wrong else 0)


main()
