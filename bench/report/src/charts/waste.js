"use strict";
// What a block of each size has over what was asked for.
charts.waste = (parent) => {
  const { el } = page;
  const waste = (model.data.waste || []).filter((point) => model.names.includes(point.allocator) && point.size > 0 && point.usable >= point.size);
  if (!waste.length) return page.missing(parent, "waste", "This run sampled no block sizes.");
  const curves = new Map(model.names.map((name) => [name, waste.filter((p) => p.allocator === name).sort((a, b) => a.size - b.size)]));
  const known = model.names.filter((name) => curves.get(name).length);
  const share = (point) => (100 * (point.usable - point.size)) / point.usable;
  const box = page.grid(parent, "charts one");
  const high = Math.max(...waste.map((point) => point.size));
  const low = Math.min(...waste.map((point) => point.size));
  const build = () => plain({
    grid: { ...plain().grid, right: 32 },
    tooltip: { ...plain().tooltip, valueFormatter: (value) => (value == null ? "–" : `${value.toFixed(1)} %`) },
    xAxis: axis("log", "bytes asked for", { logBase: 2, min: low, max: high, nameGap: 24, splitNumber: 9, axisLabel: { formatter: format.bytes },
      axisPointer: { label: { formatter: ({ value }) => format.bytes(value) } } }),
    yAxis: axis("value", null, { min: 0, max: 100, axisLabel: { formatter: "{value} %" } }),
    series: lines((name) => curves.get(name).map((point) => [point.size, share(point)]), { showSymbol: false, step: false }),
  });
  page.chart(box, { id: "waste", title: "Share of the block not asked for", legend: charts.legend(known), height: 320, points: waste.length, build });
  page.table(parent, "waste-mean", el("table", {},
    el("thead", {}, el("tr", {}, ["allocator", "mean from 16 B to 1 KiB", "mean above 1 KiB"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, known.map((name) => el("tr", {}, el("th", { scope: "row" }, tables.swatch(name), name),
      mean(curves.get(name), 16, 1024), mean(curves.get(name), 1025, Infinity))))), { rows: known.length });

  function mean(curve, from, to) {
    const inside = curve.filter((point) => point.size >= from && point.size <= to).map(share);
    const text = inside.length ? `${(inside.reduce((a, b) => a + b, 0) / inside.length).toFixed(1)} %` : "–";
    return el("td", { class: "number" }, text);
  }
};
