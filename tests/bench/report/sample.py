"""Sample result files for the report's tests: the format of `hummock bench --json`, every figure made up.

They are marked "sample": true, which the report shows in a banner. Run it to look at the report:
    python3 sample.py full > sample.json
"""

import json
import math
import random
import sys

PEERS = ["system", "jemalloc", "mimalloc", "tcmalloc", "tbbmalloc"]
NEWEST = ["mimalloc-v3", "mimalloc-v2", "snmalloc", "rpmalloc", "jemalloc-5.3.1", "google-tcmalloc"]
THREADS = [1, 2, 4, 8, 16, 32, 64]
SIZES = [2**power for power in range(4, 19)]


def spread(value, noise=0.04):
    return {"median": value, "low": value * (1 - noise), "high": value * (1 + noise)}


class Maker:
    def __init__(self, names, seed):
        self.names = names
        self.random = random.Random(seed)
        self.results = []

    def speed(self, name, threads, size):
        """Shapes as real allocators have them: some scale, some lock, some slow down with the size."""
        index = self.names.index(name)
        scale = threads ** (0.85 - 0.07 * index)
        slope = 1 + (size / 16384) ** (0.35 + 0.08 * (index % 4))
        if name == "tcmalloc" and size <= 64:
            slope = 0.7  # so that not all is won
        if name == "jemalloc" and size >= 65536 and threads < 4:
            slope *= 0.3
        return 2.4e7 / (1 + 0.15 * index) * scale / slope * self.random.uniform(0.9, 1.1)

    def add(self, workload, group, threads, size, *, latency=False, series=False, rows=None, unit="ops/s", seconds=1.0):
        for index, name in enumerate(self.names):
            rate = self.speed(name, threads or 1, size or 64)
            peak = int((size or 64) * 2e4 * (1 + 0.12 * index * (self.random.random() - 0.3)) + 4e6)
            runs = [
                {
                    "operations": int(rate * seconds * factor), "seconds": seconds, "cpu_seconds": seconds * (threads or 1) * 0.97,
                    "peak_bytes": peak, "settled_bytes": peak // 5, "minor_faults": peak // 4096, "disturbed": factor == 0.96 and index == 2,
                }
                for factor in (0.96, 1.0, 1.04)
            ]  # fmt: skip
            self.results.append({
                "workload": workload, "group": group, "title": workload.replace("-", " "), "unit": unit,
                "threads": threads, "size": size, "allocator": name, "runs": runs,
                "ops_per_second": spread(rate), "cpu_seconds": spread(seconds * (threads or 1) * 0.97),
                "cpu_ns_per_operation": spread(0.97e9 * (threads or 1) / rate), "minor_faults": spread(peak // 4096, 0),
                "peak_bytes": spread(peak, 0.01), "settled_bytes": spread(peak // 5, 0.01),
                "latency": self.latency(index) if latency else None,
                "series": self.series(index, peak) if series else None,
                "rows": rows(index) if rows else None, "error": None, "disturbed": index == 2 and workload in ("pair", "server"),
            })  # fmt: skip

    def latency(self, index):
        base = 22 + 6 * index
        return {"unit": "ns", "p50": base, "p90": base * 2.1, "p99": base * 9, "p999": base * 80 * (1 + index), "max": base * 9000,
                "mean": base * 1.6}  # fmt: skip

    def series(self, index, peak):
        def at(t):
            rise = min(t / 0.8, 1.0) if t < 2.0 else max(0.12 + 0.1 * index, math.exp(-(t - 2.0) * max(0.3, 3 - 0.5 * index)))
            return int(peak * rise * (1 + 0.03 * math.sin(9 * t)))

        return [{"t": round(step * 0.02, 3), "resident": at(step * 0.02)} for step in range(150)]


def size_rows(index):
    def times(base):
        return {"unit": "ns", "count": 64, "p50": base, "p99": base * 5, "p999": base * 60, "max": base * 9e3, "mean": base * 1.2}

    return [
        {"size": size, "malloc": times(18 + 3 * index + size / 5e4), "free": times(15 + 2 * index)}
        for size in (16, 256, 4096, 65536, 1048576)
    ]


def waste(names):
    points = []
    for index, name in enumerate(names):
        steps = 8 >> (index % 3)
        for size in sorted({int(2 ** (power / 8)) for power in range(0, 129)}):
            grain = max(16, 2 ** int(math.log2(size)) // steps)
            points.append({"size": size, "allocator": name, "usable": -(-size // grain) * grain})
    return points


COSTS = {
    "time": lambda result: 1 / result["ops_per_second"]["median"],
    "cpu": lambda result: result["cpu_ns_per_operation"]["median"],
    "memory": lambda result: result["peak_bytes"]["median"],
}


def ratios(results, kind):
    """(result, against the baseline or None, against the best other or None) of all results that did not fail."""
    cells = {}
    for result in results:
        if not result["error"]:
            cells.setdefault((result["workload"], result["threads"], result["size"]), {})[result["allocator"]] = result
    for cell in cells.values():
        costs = {name: COSTS[kind](result) for name, result in cell.items()}
        for name, result in cell.items():
            others = [cost for other, cost in costs.items() if other != name]
            yield (result, costs[name] / costs["system"] if "system" in costs else None,
                   costs[name] / min(others) if others else None)  # fmt: skip


def summary(results, names):
    lines = {name: {"allocator": name} for name in names}
    for kind in COSTS:
        every = list(ratios(results, kind))
        for name, line in lines.items():
            means, worst = {}, {}
            for place, key in ((1, "vs_baseline"), (2, "vs_best")):
                own = [(entry[place], entry[0]) for entry in every if entry[0]["allocator"] == name and entry[place]]
                means[key] = math.exp(sum(math.log(ratio) for ratio, _ in own) / len(own))
                ratio, result = max(own, key=lambda pair: pair[0])
                worst[key] = {**{part: result[part] for part in ("workload", "threads", "size")}, "ratio": ratio}
            line[f"{kind}_ratio_geomean"], line[f"worst_{kind}"] = means, worst
            if kind == "time":
                best = [entry[2] for entry in every if entry[0]["allocator"] == name and entry[2]]
                line["wins"] = sum(ratio < 0.98 for ratio in best)
                line["losses"] = sum(ratio > 1.02 for ratio in best)
                line["ties"] = len(best) - line["wins"] - line["losses"]
                line["errors"] = sum(bool(r["error"]) for r in results if r["allocator"] == name)
    return list(lines.values())


def sample(mode):
    """`full`: everything; `quick`: scores alone; `newest`: twelve allocators; `holes`: failures and cells that are missing."""
    names = ["hummock", *PEERS, *(NEWEST if mode == "newest" else [])]
    maker = Maker(names, 7)
    maker.add("pair", "micro", 1, 64)
    maker.add("realloc-growth", "micro", 1, None)
    if mode != "quick":
        for threads in THREADS:
            for size in SIZES:
                maker.add("big-brain", "seeds", threads, size)
        for threads in (1, 2, 3, 4, 5):
            maker.add("smmalloc-1", "seeds", threads, None)
        for threads in (1, 4, 16, 64):
            maker.add("server", "threads", threads, None, latency=True, series=threads == 4)
        maker.add("frames", "games", 2, None, latency=True, series=True, unit="frames/s")
        maker.add("rtx64", "seeds", 1, None, rows=size_rows)
    results = maker.results
    if mode == "holes":
        gone = {("big-brain", "tcmalloc", 64), ("big-brain", "tcmalloc", 32)}
        results = [r for r in results if (r["workload"], r["allocator"], r["threads"]) not in gone]
        for result in results:
            if result["allocator"] == "tbbmalloc" and result["workload"] == "server":
                keys = ("ops_per_second", "cpu_seconds", "cpu_ns_per_operation", "minor_faults", "peak_bytes", "settled_bytes", "latency", "series")
                result.update({key: None for key in keys}, runs=[], error="killed by signal 11 </script><b>&")
    return {
        "sample": True, "format": 1, "program": "hummock bench", "date": "2000-01-01T00:00:00Z", "mode": "quick" if mode == "quick" else "full",
        "command": ["hummock", "bench", "--sample"], "seed": 7,
        "machine": {"cpu": "Sample CPU", "cores": 4, "memory_bytes": 2**34, "kernel": "0.0-sample", "distribution": "Sample 1",
                    "compiler": "none", "flags": "-O0", "thp": "madvise", "page_size": 4096, "load_before": 0.25},
        "allocators": [{"name": name, "version": f"0.{i}-sample", "library": f"/lib/lib{name}.so", "origin": "build" if i == 0 else "apt",
                        "flags": "-O2"} for i, name in enumerate(names)],
        "workloads": [{"workload": name, "group": "", "title": name, "description": f"What {name} does <in words>."}
                      for name in dict.fromkeys(result["workload"] for result in results)],
        "baseline": "system", "results": results, "summary": summary(results, names),
        "waste": [] if mode == "quick" else waste(names),
    }  # fmt: skip


if __name__ == "__main__":
    json.dump(sample(sys.argv[1] if len(sys.argv) > 1 else "full"), sys.stdout)
