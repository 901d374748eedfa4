"use strict";
// Latency of single operations: percentiles, logarithmic.
charts.latency = (parent) => {
  const marks = [["p50", "p50"], ["p90", "p90"], ["p99", "p99"], ["p999", "p99.9"], ["max", "max"]];
  const measured = model.cells.filter((cell) => model.names.some((name) => cell.by.get(name)?.latency));
  if (!measured.length) return page.missing(parent, "latency", "This run measured no single operations.");
  const box = page.grid(parent);
  for (const cell of measured) {
    const shown = marks.filter(([key]) => model.names.some((name) => cell.by.get(name)?.latency?.[key] > 0));
    const value = (name, key) => { const own = cell.by.get(name)?.latency?.[key]; return own > 0 ? own : null; };
    const all = shown.flatMap(([key]) => model.names.map((name) => value(name, key))).filter((each) => each !== null);
    if (!all.length) continue;
    const build = () => plain({
      tooltip: { ...plain().tooltip, valueFormatter: format.time },
      xAxis: axis("category", null, { data: shown.map(([, label]) => label), boundaryGap: false }),
      yAxis: axis("log", null, { ...logBounds(all), axisLabel: { formatter: format.time } }),
      series: lines((name) => shown.map(([key]) => value(name, key))),
    });
    page.chart(box, { id: `latency:${cell.key}`, title: charts.title(cell), legend: charts.legend(model.names), height: 230, points: all.length, build });
  }
};
