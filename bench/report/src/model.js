"use strict";
// The result file as cells (workload × threads × size), and the ratios between allocators. Allocators in `hidden` are
// left out of everything, also of "the best other".
function makeModel(data, hidden = new Set()) {
  const results = data.results || [];
  const all = orderedNames(data, results);
  const names = all.filter((name) => !hidden.has(name));
  const subject = all[0];
  const cells = cellsOf(results);
  const texts = new Map((data.workloads || []).map((each) => [each.workload, each]));
  const ops = (result) => positive(result?.ops_per_second?.median);
  const memory = (result) => positive(result?.peak_bytes?.median);
  const cpu = (result) => positive(result?.cpu_ns_per_operation?.median);

  // What a ratio of each kind compares: lower is better.
  const costs = {
    time: (result) => (ops(result) === null ? null : 1 / ops(result)),
    cpu,
    memory,
    faults: (result) => ofOperation(result, "minor_faults"),
    system: (result) => ofOperation(result, "system_seconds"),
  };

  function positive(value) {
    return Number.isFinite(value) && value > 0 ? value : null;
  }
  function ofOperation(result, measure) {
    const operations = ops(result) * (result?.seconds?.median || 0);
    return operations > 0 ? positive((result[measure]?.median || 0) / operations) : null;
  }

  // The subject first, then the baseline, then the rest as the file has them.
  function orderedNames(file, measured) {
    const seen = [...(file.allocators || []).map((a) => a.name), ...measured.map((r) => r.allocator)];
    return [...new Set(["hummock", file.baseline, ...seen])].filter((name) => seen.includes(name));
  }

  function cellsOf(measured) {
    const found = new Map();
    for (const result of measured) {
      const key = [result.workload, result.threads || 0, result.size || 0].join("|");
      if (!found.has(key)) {
        const { workload, group, title, unit, threads, size } = result;
        found.set(key, { key, workload, group, title, unit, threads, size, by: new Map() });
      }
      found.get(key).by.set(result.allocator, result);
    }
    return [...found.values()];
  }

  const cost = (cell, name, kind) => costs[kind](cell.by.get(name));

  // Whom `name` is measured against in a cell: an allocator, or the best of all others.
  function reference(cell, name, against, kind) {
    if (against !== "best") return cost(cell, against, kind) === null ? null : against;
    const others = names.filter((other) => other !== name && cost(cell, other, kind) !== null);
    return others.length ? others.reduce((a, b) => (cost(cell, b, kind) < cost(cell, a, kind) ? b : a)) : null;
  }

  // Below 1 is better, whatever the kind.
  function ratio(cell, name, against, kind) {
    const own = cost(cell, name, kind);
    const other = reference(cell, name, against, kind);
    return own && other ? own / cost(cell, other, kind) : null;
  }
  const timeRatio = (cell, name, against) => ratio(cell, name, against, "time");
  const memoryRatio = (cell, name, against) => ratio(cell, name, against, "memory");

  // Does it rest on a run beside other load? Where enough quiet runs were made, they alone count, and it does not.
  const disturbed = (cell, name) => Boolean(cell.by.get(name)?.disturbed);
  const ratioDisturbed = (cell, name, against, kind) =>
    disturbed(cell, name) || disturbed(cell, reference(cell, name, against, kind));

  function geomean(values) {
    const known = values.filter((value) => value !== null && value > 0);
    return known.length ? Math.exp(known.reduce((sum, value) => sum + Math.log(value), 0) / known.length) : null;
  }

  // The geometric mean of an allocator's ratios in these cells; how many there are, and how many were disturbed.
  function mean(chosen, name, against, kind) {
    const counted = chosen.filter((cell) => ratio(cell, name, against, kind) !== null);
    return {
      value: geomean(counted.map((cell) => ratio(cell, name, against, kind))),
      cells: counted.length,
      disturbed: counted.filter((cell) => ratioDisturbed(cell, name, against, kind)).length,
    };
  }

  // The cell in which it is furthest behind.
  function worst(chosen, name, against, kind) {
    return chosen.reduce((found, cell) => {
      const own = ratio(cell, name, against, kind);
      return own !== null && (!found || own > found.ratio)
        ? { cell, ratio: own, disturbed: ratioDisturbed(cell, name, against, kind) } : found;
    }, null);
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
  const verdict = (value) => (value === null ? null : value < 0.98 ? "win" : value > 1.02 ? "loss" : "even");

  // What an allocator's cells come to.
  function score(name) {
    const said = cells.map((cell) => verdict(timeRatio(cell, name, "best")));
    const count = (what) => said.filter((each) => each === what).length;
    return { win: count("win"), even: count("even"), loss: count("loss"),
             failed: cells.filter((cell) => cell.by.get(name)?.error).length };
  }

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

  return { data, all, names, hidden, cells, texts, ops, memory, cpu, cost, ratio, timeRatio, memoryRatio, disturbed, ratioDisturbed,
           reference, geomean, mean, worst, workloads, verdict, score, grids, ascending, subject,
           peers: names.filter((name) => name !== subject) };
}
