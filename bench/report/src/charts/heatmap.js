"use strict";
// Speed of the subject over another's, threads × size.
charts.allSpeeds = (grid) => grid.cells.flatMap((cell) => [...model.peers, "best"].map((against) => {
  const time = model.timeRatio(cell, model.subject, against);
  return time === null ? 1 : 1 / time;
}));
// A power of two; at most 8, since beyond it the figure says more than a shade.
charts.ratioLimit = (grid) => {
  const far = Math.max(...charts.allSpeeds(grid).map((speed) => Math.max(speed, 1 / speed)));
  return 2 ** Math.min(Math.max(Math.ceil(Math.log2(far)), 1), 3);
};

charts.ratioScale = (parent, limit) => page.scale(parent, palette.diverging(limit),
  [`1/${limit} or less`, "1", `${limit} or more`],
  `Speed of ${model.subject} ÷ speed of the other: orange below 1, ${model.subject} is slower; blue above 1, it is faster. Logarithmic.`);

charts.heatmaps = (parent, grid) => {
  const limit = charts.ratioLimit(grid);
  charts.ratioScale(parent, limit);
  const box = page.el("div", { class: "charts" });
  parent.append(box);
  for (const against of ["best", ...model.peers]) {
    const points = [];
    grid.threads.forEach((threads, x) => grid.sizes.forEach((size, y) => {
      const cell = grid.cell(threads, size);
      const time = cell ? model.timeRatio(cell, model.subject, against) : null;
      const beside = cell && model.ratioDisturbed(cell, model.subject, against, "time") ? 1 : 0;
      if (time) points.push({ value: [x, y, Math.log2(1 / time), beside], label: { color: palette.ratioStyle(1 / time, limit).color } });
    }));
    const title = against === "best" ? "against the best other" : `against ${against}`;
    if (!points.length) {
      page.missing(box, `heatmap:${grid.workload}:${against}`, `${title}: no cell that both ended.`);
      continue;
    }
    const below = points.filter((point) => point.value[2] < 0).length;
    const build = (width) => plain({
      grid: { left: 8, right: 8, top: 4, bottom: 22, containLabel: true },
      tooltip: { ...plain().tooltip, trigger: "item", formatter: ({ value }) =>
        `${format.threads(grid.threads[value[0]])}, ${format.bytes(grid.sizes[value[1]])}: ${format.ratio(2 ** value[2])}${value[3] ? ", beside other load" : ""}` },
      xAxis: axis("category", "threads", { data: grid.threads.map(String), nameGap: 24, axisLabel: { interval: 0 } }),
      yAxis: axis("category", null, { data: grid.sizes.map(format.bytes), axisLabel: { interval: 0, hideOverlap: true } }),
      visualMap: { show: false, min: -Math.log2(limit), max: Math.log2(limit), dimension: 2, inRange: { color: palette.diverging(limit) } },
      series: [{ type: "heatmap", data: points, label: { show: width / (grid.threads.length + 2) > 26, fontSize: 10,
        formatter: ({ value }) => `${format.ratio(2 ** value[2])}${value[3] ? "†" : ""}` }, emphasis: { itemStyle: { borderColor: palette.theme().text, borderWidth: 1 } } }],
    });
    page.chart(box, { id: `heatmap:${grid.workload}:${against}`, title: `${title}: ${below} of ${points.length} cells slower`,
      height: 50 + grid.sizes.length * 20, points: points.length, build });
  }
};
