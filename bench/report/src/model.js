"use strict";
// The result file as cells (workload × threads × size), and the ratios between allocators.
function makeModel(data) {
  const results = data.results || [];
  const names = orderedNames(data, results);
  const cells = cellsOf(results);
  const ops = (result) => positive(result?.ops_per_second?.median);
  const memory = (result) => positive(result?.peak_bytes?.median);
  const cpu = (result) => positive(result?.cpu_ns_per_operation?.median);

  function positive(value) {
    return Number.isFinite(value) && value > 0 ? value : null;
  }

  // The subject first, then the baseline, then the rest as the file has them.
  function orderedNames(file, all) {
    const seen = [...(file.allocators || []).map((a) => a.name), ...all.map((r) => r.allocator)];
    return [...new Set(["hummock", file.baseline, ...seen])].filter((name) => seen.includes(name));
  }

  function cellsOf(all) {
    const found = new Map();
    for (const result of all) {
      const key = [result.workload, result.threads || 0, result.size || 0].join("|");
      if (!found.has(key)) {
        const { workload, group, title, unit, threads, size } = result;
        found.set(key, { key, workload, group, title, unit, threads, size, by: new Map() });
      }
      found.get(key).by.set(result.allocator, result);
    }
    return [...found.values()];
  }

  // What `name` is measured against in a cell: an allocator, or the best of all others.
  function reference(cell, name, against, value, better) {
    if (against !== "best") return value(cell.by.get(against));
    const others = names.filter((other) => other !== name).map((other) => value(cell.by.get(other)));
    const known = others.filter((other) => other !== null);
    return known.length ? known.reduce((a, b) => (better(a, b) ? a : b)) : null;
  }

  // Time for the same work, and memory: below 1 is better.
  function timeRatio(cell, name, against) {
    const own = ops(cell.by.get(name));
    const other = reference(cell, name, against, ops, (a, b) => a > b);
    return own && other ? other / own : null;
  }
  function costRatio(cell, name, against, cost) {
    const own = cost(cell.by.get(name));
    const other = reference(cell, name, against, cost, (a, b) => a < b);
    return own && other ? own / other : null;
  }
  const memoryRatio = (cell, name, against) => costRatio(cell, name, against, memory);
  const cpuRatio = (cell, name, against) => costRatio(cell, name, against, cpu);

  function geomean(values) {
    const known = values.filter((value) => value !== null && value > 0);
    return known.length ? Math.exp(known.reduce((sum, value) => sum + Math.log(value), 0) / known.length) : null;
  }

  function workloads() {
    const groups = new Map();
    for (const cell of cells) {
      if (!groups.has(cell.workload)) groups.set(cell.workload, []);
      groups.get(cell.workload).push(cell);
    }
    return groups;
  }

  // Within 2 % is even.
  const verdict = (ratio) => (ratio === null ? null : ratio < 0.98 ? "win" : ratio > 1.02 ? "loss" : "even");

  // What the file says an allocator's cells come to.
  const score = (name) => (data.summary || []).find((line) => line.allocator === name) || null;

  // Workloads measured at two or more thread counts and two or more sizes.
  function grids() {
    const found = [];
    for (const [workload, group] of workloads()) {
      const threads = ascending(group.map((cell) => cell.threads));
      const sizes = ascending(group.map((cell) => cell.size));
      if (threads.length < 2 || sizes.length < 2) continue;
      const at = new Map(group.map((cell) => [`${cell.threads}|${cell.size}`, cell]));
      found.push({ workload, title: group[0].title || workload, threads, sizes, cells: group,
                   cell: (t, s) => at.get(`${t}|${s}`) });
    }
    return found.sort((a, b) => b.cells.length - a.cells.length);
  }

  function ascending(values) {
    return [...new Set(values.filter((value) => value > 0))].sort((a, b) => a - b);
  }

  return { data, names, cells, ops, memory, cpu, timeRatio, memoryRatio, cpuRatio, geomean, workloads, verdict, score, grids, ascending,
           subject: names[0], peers: names.slice(1) };
}
