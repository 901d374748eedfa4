#!/usr/bin/env python3
"""smmalloc's own benchmark on Hummock's proxy, glibc and the peers installed, in turns.

Prints, for 1 to 5 threads, the median of the rounds' mean operations a second of a thread (by its processor
time), the proxy's relation to each, and how the proxy holds up as threads are added.
"""
import argparse
import os
import statistics
import subprocess

PEERS = {"mimalloc": "libmimalloc.so.2", "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
DIRECTORIES = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
ROUNDS = {"sweeps": 300, "ring": 10_000_000}


def find(name):
    return next((os.path.join(d, name) for d in DIRECTORIES if os.path.exists(os.path.join(d, name))), None)


def rate(program, mode, library, which, threads, rounds):
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    if library:
        env["LD_PRELOAD"] = library
    command = [program, mode, which, str(threads), str(rounds)]
    return float(subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=600).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="build/bench/proxy_threads")
    parser.add_argument("--hummock", help="libhummock.so: measure it as the process's malloc, too")
    parser.add_argument("--which", choices=ROUNDS, default="sweeps")
    parser.add_argument("--rounds", type=int, help="fewer make it shorter")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    rounds = options.rounds or ROUNDS[options.which]
    columns = {"proxy": ("proxy", None), "uncached": ("uncached", None), "glibc": ("malloc", None)}
    columns.update({name: ("malloc", find(file)) for name, file in PEERS.items() if find(file)})
    if options.hummock:
        columns["hummock"] = ("malloc", os.path.abspath(options.hummock))

    print("threads" + "".join(f"{name:>12}" for name in columns) + "   million operations a second of a thread")
    first = None
    for threads in options.threads:
        samples = {name: [] for name in columns}
        for _ in range(options.repeat):
            for name, (mode, library) in columns.items():
                samples[name].append(rate(options.program, mode, library, options.which, threads, rounds))
        middle = {name: statistics.median(values) for name, values in samples.items()}
        first = first or middle["proxy"]
        print(f"{threads:7}" + "".join(f"{middle[name] / 1e6:12.1f}" for name in columns))
        print(" proxy /" + "".join(f"{middle['proxy'] / middle[name]:12.2f}" for name in columns)
              + f"   proxy's time, against one thread: {first / middle['proxy']:.2f}", flush=True)


if __name__ == "__main__":
    main()
