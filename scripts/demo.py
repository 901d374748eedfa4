#!/usr/bin/env python3
"""Runs programs in which malloc matters on the system's allocator and on Hummock, in turn: what becomes of memory
that is freed, a bundled server, the compiler, redis. Says after each what it means, and writes a page to look at."""

import argparse
import csv
import glob
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import demo_page

ROUNDS = 2
STARTED = time.monotonic()
ENOUGH = 40  # seconds after which no load is begun; after half of them each runs once
PEERS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2*", "tcmalloc": "libtcmalloc_minimal.so.4"}
# label, how it is written, is more better?, what more of it is, what less of it is
MEASURES = {
    "ops_per_s": ("operations a second", "{:,.0f}", True, "more work done", "less work done"),
    "seconds": ("CPU seconds", "{:.2f}", False, "more time", "less time"),
    "p50_us": ("latency p50, us", "{:,.1f}", False, "longer waits (p50)", "shorter waits (p50)"),
    "p99_us": ("latency p99, us", "{:,.1f}", False, "longer waits (p99)", "shorter waits (p99)"),
    "peak_mib": ("peak memory, MiB", "{:,.1f}", False, "more memory", "less memory"),
}
PROGRAM = "#include <map>\n#include <regex>\n#include <string>\n" \
          "int main() { std::map<std::string, std::regex> m; m[\"a\"] = std::regex(\"b+\"); return (int)m.size() - 1; }\n"


def say(text=""):
    print(text, flush=True)


def progress(text):
    if sys.stderr.isatty():
        print(f"{text:40}", end="\r", file=sys.stderr, flush=True)


def environment(library):
    # Debian's redis-server is linked to jemalloc: on the system's allocator, libc goes before it.
    return {**os.environ, "LD_PRELOAD": library or "libc.so.6"}


def preloadable(library, folder):
    """The library, by a link in the folder where its path has what the loader cuts paths at. It does load."""
    if any(cut in library for cut in " \t\n:$"):
        link = os.path.join(folder, os.path.basename(library))
        os.symlink(library, link)
        library = link
    maps = subprocess.run(["cat", "/proc/self/maps"], env=environment(library), capture_output=True, check=True).stdout
    if os.path.realpath(library).encode() not in maps:
        raise RuntimeError(f"{library} cannot be preloaded")
    return library


def busy():
    """A warning when others use the machine, else an empty text."""
    with open("/proc/loadavg", encoding="ascii") as file:
        load = float(file.read().split()[0])
    cores = os.cpu_count() or 1
    if load < 0.5 * cores:
        return ""
    return f"The machine is busy: a load of {load:.1f} on {cores} cores. Times below are not to be trusted; memory is."


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def field_of(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(name):
                return int(line.split()[1]) / 1024
    return 0.0


def runs_on(pid, library):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        return os.path.realpath(library) in maps.read()


def wait_for(port):
    for _ in range(200):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("redis-server did not start")


def redis(library):
    port = free_port()
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
         "--io-threads", "2", "--io-threads-do-reads", "yes"],
        env=environment(library), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        if library and not runs_on(server.pid, library):
            raise RuntimeError("the server does not run on Hummock")
        bench = subprocess.run(
            ["redis-benchmark", "-p", str(port), "-n", "120000", "-c", "50", "-P", "8", "-d", "1024",
             "-r", "50000", "-t", "set,get,lpush", "--csv"],
            capture_output=True, text=True, check=True, timeout=600)
        rows = list(csv.DictReader(bench.stdout.splitlines()))
        return {
            "ops_per_s": statistics.mean(float(row["rps"]) for row in rows),
            "p99_us": statistics.mean(float(row["p99_latency_ms"]) for row in rows) * 1000,
            "peak_mib": field_of(server.pid, "VmHWM"),
        }
    finally:
        server.terminate()
        server.wait()


def server(program, library):
    run = subprocess.run([program, "2"], env=environment(library), capture_output=True, text=True,
                         check=True, timeout=600)
    return json.loads(run.stdout)


def compiler(library):
    with tempfile.NamedTemporaryFile("w", suffix=".cc") as source:
        source.write(PROGRAM)
        source.flush()
        child = subprocess.Popen(["g++", "-std=c++17", "-O1", "-c", source.name, "-o", "/dev/null"],
                                 env=environment(library))
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError("g++ failed")
    return {"seconds": usage.ru_utime + usage.ru_stime, "peak_mib": usage.ru_maxrss / 1024}


def percent(ratio):
    return f"{abs(ratio - 1) * 100:.0f} %"


def row_of(measure, system, ours):
    label, form, more_is_better, more, less = MEASURES[measure]
    ratio = ours / system if system else 1
    same = abs(ratio - 1) < 0.02
    verdict = 0 if same else 1 if (ratio > 1) == more_is_better else -1
    words = "the same" if same else f"{percent(ratio)} {'more' if ratio > 1 else 'less'}" if ratio < 2 else \
        f"{ratio:.1f} times as much"
    return {"label": label, "system": form.format(system), "hummock": form.format(ours), "ratio": ratio, "words": words,
            "verdict": verdict, "phrase": None if same else f"{ratio:.1f} times the {more.partition(' ')[2]}" if ratio >= 2 else
            f"{percent(ratio)} {more if ratio > 1 else less}"}


def sentence(rows):
    """What the rows come to, in words."""
    good = [row["phrase"] for row in rows if row["verdict"] > 0]
    bad = [row["phrase"] for row in rows if row["verdict"] < 0]
    if not good and not bad:
        return "Hummock and the system's malloc do the same here."
    parts = [f"better: {', '.join(good)}"] if good else []
    parts += [f"worse: {', '.join(bad)}"] if bad else []
    return "On Hummock " + "; ".join(parts) + "."


def compare(name, load, library):
    say(f"\n{name}")
    if time.monotonic() - STARTED > ENOUGH:
        say("  Left out: a minute is over. Try again when the machine is idle.")
        return None
    runs = {"system": [], "hummock": []}
    rounds = ROUNDS if time.monotonic() - STARTED < ENOUGH / 2 else 1
    for turn in range(rounds):
        for who, chosen in (("system", None), ("hummock", library)):
            progress(f"  round {turn + 1} of {rounds}, {who} …")
            runs[who].append(load(chosen))
    progress("")
    rows = []
    say(f"  {'':22}{'system':>14}{'Hummock':>14}")
    for measure in runs["system"][0]:
        if measure not in MEASURES:
            continue
        system, ours = (statistics.median(run[measure] for run in runs[who]) for who in ("system", "hummock"))
        row = row_of(measure, system, ours)
        rows.append(row)
        say(f"  {row['label']:22}{row['system']:>14}{row['hummock']:>14}   {row['words']}")
    say("  " + sentence(rows))
    return name, rows, sentence(rows)


def allocators(library):
    found = {"Hummock": library, "system": None}
    for name, pattern in PEERS.items():
        paths = sorted(glob.glob(f"/usr/lib/*/{pattern}"))
        if paths:
            found[name] = paths[0]
    return found


def memory(program, library):
    """All at once: what is looked at is memory, not time."""
    title = "A program takes 400 MB and frees it: what the system has back"
    say(f"\n{title}")
    running = {name: subprocess.Popen([program], env=environment(chosen), stdout=subprocess.PIPE, text=True)
               for name, chosen in allocators(library).items()}
    samples = {}
    for name, process in running.items():
        out, _ = process.communicate(timeout=600)
        if process.returncode != 0:
            raise RuntimeError(f"{os.path.basename(program)} failed on {name}")
        samples[name] = [tuple(map(float, line.split())) for line in out.splitlines()]
    for name, points in samples.items():
        say(f"  {name:12} at most {max(y for _, y in points):6,.0f} MiB resident, {points[-1][1]:6,.0f} MiB at the end")
    ours, system = samples["Hummock"][-1][1], samples["system"][-1][1]
    text = f"Four seconds after it freed them, the program holds {ours:,.0f} MiB on Hummock and {system:,.0f} MiB on the " \
           "system's malloc."
    say("  " + text)
    return samples, (title, None, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--picture", help="write the memory curve alone to this SVG file")
    chosen = parser.parse_args()
    build = os.path.abspath(chosen.build)
    with tempfile.TemporaryDirectory(prefix="hummock-demo-") as folder:
        demo(chosen, build, preloadable(os.path.join(build, "libhummock.so"), folder))


def demo(chosen, build, library):
    if chosen.picture:
        samples, _ = memory(os.path.join(build, "bench", "demo_memory"), library)
        with open(chosen.picture, "w", encoding="utf-8") as file:
            file.write(demo_page.picture(samples))
        return
    warning = busy()
    say("Each load runs on each allocator, in turn, twice where time allows; medians. It takes about a minute.")
    if warning:
        say("! " + warning)
    samples, first = memory(os.path.join(build, "bench", "demo_memory"), library)
    sections = [first]
    program = os.path.join(build, "bench", "demo_server")
    sections.append(compare("A server in one program (8 threads, 160,000 objects, 1 in 8 freed by a neighbour)",
                            lambda chosen: server(program, chosen), library))
    if shutil.which("g++"):
        sections.append(compare("The C++ compiler (one thread, short)", compiler, library))
    if shutil.which("redis-server") and shutil.which("redis-benchmark"):
        sections.append(compare("redis (mostly its network: malloc is a small part)", redis, library))
    else:
        say("\nredis-server is not installed: left out.")
    page = os.path.join(build, "demo.html")
    with open(page, "w", encoding="utf-8") as file:
        file.write(demo_page.page(warning, samples, [section for section in sections if section]))
    say(f"\nTo look at: {page}\nMore allocators and workloads: make bench")


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        sys.exit(f"demo: {error}")
