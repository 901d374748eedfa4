"use strict";
// Surfaces over threads × block size, all axes logarithmic; several share one WebGL context, of which browsers allow few.
charts.webgl = () => {
  try {
    const canvas = document.createElement("canvas");
    return Boolean(canvas.getContext("webgl") || canvas.getContext("experimental-webgl"));
  } catch {
    return false;
  }
};

// A step in powers of two that ends on the last label and leaves few of them.
charts.stride = (span) => [1, 2, 3, 4, 5, 7].find((step) => span / step <= 8 && Number.isInteger(span / step)) || Math.max(1, span / 4);

charts.surfaceOption = (views, width, columns, cellHeight, z, grid) => {
  const theme = palette.theme();
  const option = { title: [], grid3D: [], xAxis3D: [], yAxis3D: [], zAxis3D: [], series: [],
    textStyle: { color: theme.text, fontFamily: "system-ui, sans-serif" },
    visualMap: { show: false, min: z.colorMin, max: z.colorMax, dimension: 2, seriesIndex: views.map((_, i) => i), inRange: { color: z.colors } } };
  const cellWidth = width / columns;
  const side = (name, values, show, index, more) => ({ type: "value", grid3DIndex: index, name, nameGap: 24, 
    nameTextStyle: { color: theme.faint, fontSize: 12 }, min: Math.log2(values[0]), max: Math.log2(values.at(-1)),
    interval: charts.stride(Math.log2(values.at(-1) / values[0])), axisLabel: { formatter: (v) => show(2 ** v),
    color: theme.text, fontSize: 11 }, ...more });
  views.forEach((view, i) => {
    const left = (i % columns) * cellWidth;
    const top = Math.floor(i / columns) * cellHeight;
    option.title.push({ text: view.title, left: left + cellWidth / 2, top: top + 4, textAlign: "center",
      textStyle: { color: theme.text, fontSize: 13, fontWeight: 600 } });
    option.grid3D.push({ left, top: top + 20, width: cellWidth, height: cellHeight - 20, boxWidth: 100, boxDepth: 100, boxHeight: 85,
      axisLine: { lineStyle: { color: theme.faint } }, splitLine: { lineStyle: { color: theme.line } }, axisPointer: { show: false },
      environment: "none",
      // The fastest corner, many threads and small blocks, stands at the back.
      viewControl: { alpha: 30, beta: 215, distance: 200, center: [0, -13, 0], zoomSensitivity: 0, panSensitivity: 0, autoRotate: false } });
    option.xAxis3D.push(side("threads", grid.threads, (v) => String(Math.round(v)), i));
    option.yAxis3D.push(side("block size", grid.sizes, (v) => format.bytes(v).replace(/ (.)iB/, "$1").replace(" B", ""), i));
    option.zAxis3D.push({ type: "value", grid3DIndex: i, name: "", min: z.min, max: z.max,
      interval: z.interval, axisLabel: { margin: 20, formatter: (v) => ((v - z.min) / (z.max - z.min) < 0.25 ? "" : z.show(v)), color: theme.text, fontSize: 11 } });
    option.series.push({ type: "surface", grid3DIndex: i, data: view.data, dataShape: [grid.sizes.length, grid.threads.length],
      shading: "color", wireframe: { show: true, lineStyle: { color: "rgba(0,0,0,0.35)", width: 1 } }, silent: true });
  });
  return option;
};

// [log threads, log size, value] in rows of one size; NaN where a cell is missing.
charts.surfaceData = (grid, value) => grid.sizes.flatMap((size) => grid.threads.map((threads) => {
  const cell = grid.cell(threads, size);
  const own = cell ? value(cell) : null;
  return [Math.log2(threads), Math.log2(size), own === null ? NaN : own];
}));

charts.drawSurfaces = (parent, id, grid, views, z) => {
  const perContext = 3;
  const columns = (width) => Math.max(1, Math.min(perContext, Math.floor(width / 330), views.length));
  const cellHeight = 330;
  for (let first = 0; first < views.length; first += perContext) {
    const shown = views.slice(first, first + perContext);
    page.chart(parent, { id: `${id}:${shown.map((view) => view.name).join("+")}`, gl: true,
      points: shown.reduce((sum, view) => sum + view.data.filter((point) => !Number.isNaN(point[2])).length, 0),
      height: (width) => Math.ceil(shown.length / columns(width)) * cellHeight,
      build: (width) => charts.surfaceOption(shown, width, columns(width), cellHeight, z, grid) });
  }
};

charts.surfaces = (parent, grid, usable) => {
  const all = grid.cells.flatMap((cell) => model.names.map((name) => model.ops(cell.by.get(name)))).filter((value) => value !== null);
  if (!all.length) return page.missing(parent, `surface:${grid.workload}`, "No cell of this grid has a figure.");
  const bounds = logBounds(all);
  const min = Math.log10(bounds.min);
  const max = Math.max(Math.log10(bounds.max), min + 1);
  const share = (ops) => (Math.log10(ops) - min) / (max - min);
  page.scale(parent, palette.sequential, [min, (min + max) / 2, max].map((power) => format.count(10 ** power)),
    "Operations per second, all threads together; the same scale for every allocator. Logarithmic.");
  const value = (name) => (cell) => (cell ? model.ops(cell.by.get(name)) : null);
  const named = model.names.filter((name) => grid.cells.some((cell) => value(name)(cell) !== null));
  if (usable) {
    const log = (name) => (cell) => (value(name)(cell) === null ? null : Math.log10(value(name)(cell)));
    const views = named.map((name) => ({ name, title: name, data: charts.surfaceData(grid, log(name)) }));
    charts.drawSurfaces(parent, `surface:${grid.workload}`, grid, views, { min: Math.floor(min), max: Math.ceil(max), interval: 1,
      colorMin: min, colorMax: max,
      colors: palette.sequential, show: (power) => format.count(10 ** power) });
  }
  charts.surfaceTables(parent, `surface:${grid.workload}`, usable, (box) => named.forEach((name) =>
    tables.grid(box, `table-surface-${name}`, grid, name, value(name), format.count, (ops) => palette.valueStyle(share(ops)),
      (cell) => Boolean(cell) && model.disturbed(cell, name))));
};

charts.ratioSurfaces = (parent, grid, usable) => {
  const limit = charts.ratioLimit(grid);
  const logs = charts.allSpeeds(grid).map(Math.log2);
  const [low, high] = [Math.min(-1, ...logs), Math.max(1, ...logs)];
  const interval = Math.ceil((high - low) / 5);  // marks at its multiples: 1 is one of them
  const [min, max] = [Math.floor(low / interval) * interval, Math.ceil(high / interval) * interval];
  charts.ratioScale(parent, limit);
  const speed = (against) => (cell) => {
    const time = cell ? model.timeRatio(cell, model.subject, against) : null;
    return time === null ? null : 1 / time;
  };
  const named = ["best", ...model.peers].filter((name) => grid.cells.some((cell) => speed(name)(cell) !== null));
  if (!named.length) return page.missing(parent, `ratio:${grid.workload}`, "No cell that two allocators ended.");
  const title = (name) => `${model.subject} ÷ ${name === "best" ? "best other" : name}`;
  if (usable) {
    const log = (name) => (cell) => (speed(name)(cell) === null ? null : Math.log2(speed(name)(cell)));
    const views = named.map((name) => ({ name, title: title(name), data: charts.surfaceData(grid, log(name)) }));
    charts.drawSurfaces(parent, `ratio:${grid.workload}`, grid, views, { min, max, interval, 
      colors: palette.diverging(limit), colorMin: -Math.log2(limit), colorMax: Math.log2(limit), show: (power) => (power < 0 ? `1/${2 ** -power}` : String(2 ** power)) });
  }
  charts.surfaceTables(parent, `ratio:${grid.workload}`, usable, (box) => named.forEach((name) =>
    tables.grid(box, `table-ratio-${name}`, grid, title(name), speed(name), format.ratio, (ratio) => palette.ratioStyle(ratio, limit),
      (cell) => Boolean(cell) && model.ratioDisturbed(cell, model.subject, name, "time"))));
};

// The same figures as tables: folded below the surfaces, or in their place without WebGL.
charts.surfaceTables = (parent, id, usable, fill) => {
  const box = page.el("div", { class: "charts two" });
  if (usable) {
    page.fold(parent, `${id.startsWith("ratio") ? "Ratios" : "Speeds"} of ${id.split(":")[1]} as tables`).append(box);
  } else {
    page.status.fallbacks.push(id);
    parent.append(page.el("p", { class: "missing" }, "This browser offers no WebGL, which the 3D surfaces need; here are the same figures as tables."), box);
  }
  fill(box);
};
