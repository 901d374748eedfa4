#!/usr/bin/env python3
"""Runs a server load and a bundled program on the system's allocator and on Hummock, in turn, and
prints throughput, latency and peak memory side by side."""

import argparse
import csv
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time

ROUNDS = 2


def environment(library):
    # Debian's redis-server is linked to jemalloc: on the system's allocator, libc goes before it.
    return {**os.environ, "LD_PRELOAD": library or "libc.so.6"}


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
    for _ in range(100):
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
            capture_output=True, text=True, check=True, timeout=60)
        rows = list(csv.DictReader(bench.stdout.splitlines()))
        return {
            "ops_per_s": statistics.mean(float(row["rps"]) for row in rows),
            "p50_us": statistics.mean(float(row["p50_latency_ms"]) for row in rows) * 1000,
            "p99_us": statistics.mean(float(row["p99_latency_ms"]) for row in rows) * 1000,
            "peak_mib": field_of(server.pid, "VmHWM"),
        }
    finally:
        server.terminate()
        server.wait()


def bundled(program, library):
    run = subprocess.run([program, "2"], env=environment(library), capture_output=True, text=True,
                         check=True, timeout=60)
    return json.loads(run.stdout)


def compare(name, load, library):
    runs = {"system": [], "hummock": []}
    for _ in range(ROUNDS):
        runs["system"].append(load(None))
        runs["hummock"].append(load(library))
    print(f"\n{name}")
    print(f"  {'':24}{'system':>12}{'Hummock':>12}{'ratio':>8}")
    for key, label in (("ops_per_s", "operations a second"), ("p50_us", "latency p50, us"),
                       ("p99_us", "latency p99, us"), ("peak_mib", "peak memory, MiB")):
        system, ours = (statistics.median(run[key] for run in runs[who]) for who in ("system", "hummock"))
        form = "{:>12,.0f}" if key == "ops_per_s" else "{:>12,.1f}"
        ratio = ours / system if system else 0
        print(f"  {label:24}{form.format(system)}{form.format(ours)}{ratio:>8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    build = os.path.abspath(parser.parse_args().build)
    library = os.path.join(build, "libhummock.so")
    print("Each load runs twice on each allocator, in turn; medians.")
    if shutil.which("redis-server") and shutil.which("redis-benchmark"):
        compare("redis-server (2 io-threads, 1 KiB values, pipelines of 8, set/get/lpush)", redis, library)
    else:
        print("redis-server is not installed: only the bundled program runs.")
    program = os.path.join(build, "bench", "demo_server")
    compare("bundled server (8 threads, 160,000 objects, 1 in 8 freed by a neighbour)",
            lambda chosen: bundled(program, chosen), library)


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, subprocess.SubprocessError, OSError) as error:
        sys.exit(f"demo: {error}")
