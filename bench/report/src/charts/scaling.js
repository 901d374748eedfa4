"use strict";
// Operations per second over threads.
charts.scaling = (parent) => {
  const views = [];
  for (const [workload, group] of model.workloads()) {
    const sizes = [...new Set(group.map((cell) => cell.size || 0))].sort((a, b) => a - b);
    const chosen = charts.some(sizes.filter((size) => model.ascending(group.filter((c) => (c.size || 0) === size).map((c) => c.threads)).length > 1), 4);
    for (const size of chosen) views.push({ workload, size, cells: group.filter((cell) => (cell.size || 0) === size) });
  }
  if (!views.length) return page.missing(parent, "scaling", "This run measured no workload at more than one thread count.");
  const box = page.grid(parent);
  for (const { workload, size, cells } of views) {
    const threads = model.ascending(cells.map((cell) => cell.threads));
    const at = new Map(cells.map((cell) => [cell.threads, cell]));
    const value = (name, count) => model.ops(at.get(count)?.by.get(name));
    const all = threads.flatMap((count) => model.names.map((name) => value(name, count))).filter((each) => each !== null);
    if (!all.length) continue;
    const build = () => plain({
      tooltip: { ...plain().tooltip, valueFormatter: (v) => (v == null ? "–" : `${format.count(v)}/s`) },
      xAxis: axis("category", "threads", { data: threads.map(String), boundaryGap: false, nameGap: 22 }),
      yAxis: axis("log", null, { ...logBounds(all), axisLabel: { formatter: format.count } }),
      series: lines((name) => threads.map((count) => value(name, count))),
    });
    page.chart(box, { id: `scaling:${workload}:${size}`, title: size ? `${workload} · ${format.bytes(size)}` : workload,
      legend: charts.legend(model.names), height: 230, points: all.length, build });
  }
};

// At most `most` of a list, its ends among them.
charts.some = (list, most) => (list.length <= most ? list
  : [...new Set(Array.from({ length: most }, (_, i) => list[Math.round((i * (list.length - 1)) / (most - 1))]))]);
