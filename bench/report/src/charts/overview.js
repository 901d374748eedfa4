"use strict";
// Each workload's mean ratio of the subject to the best other, worst first.
charts.overview = (parent) => {
  const lines = [...model.workloads()].map(([workload, group]) => {
    const mean = (ratio) => model.geomean(group.map((cell) => ratio(cell, model.subject, "best")));
    return { workload, time: mean(model.timeRatio), memory: mean(model.memoryRatio) };
  }).filter((line) => line.time !== null || line.memory !== null);
  if (!lines.length) return page.missing(parent, "overview", "This run has no workload that more than one allocator ended.");
  const grid = page.el("div", { class: "charts two" });
  parent.append(grid);
  for (const [key, title] of [["time", "Time against the best other, per workload"], ["memory", "Peak memory against the best other, per workload"]]) {
    const known = lines.filter((line) => line[key] !== null).sort((a, b) => a[key] - b[key]);
    const logs = known.map((line) => Math.log2(line[key]));
    const [low, high] = [Math.min(-0.3, ...logs), Math.max(0.3, ...logs)];
    const room = 0.15 * (high - low);  // for the figures beside the bars
    const step = Math.max(1, Math.ceil((high - low) / 6));
    const build = () => {
      const theme = palette.theme();
      return plain({
        grid: { left: 16 + 7 * Math.max(...known.map((line) => line.workload.length)), right: 24, top: 8, bottom: 40 },
        xAxis: axis("value", "below 1 is better", { nameGap: 26, min: Math.floor((low - room) / step) * step, max: Math.ceil((high + room) / step) * step,
          interval: step, axisLabel: { formatter: (value) => (value < 0 ? `1/${2 ** -value}` : String(2 ** value)) } }),
        yAxis: axis("category", null, { data: known.map((line) => line.workload), axisLabel: { interval: 0 }, splitLine: { show: false } }),
        tooltip: { ...plain().tooltip, valueFormatter: (value) => format.ratio(2 ** value) },
        series: [{
          type: "bar", name: title, barMaxWidth: 14,
          data: known.map((line) => ({ value: Math.log2(line[key]), itemStyle: { color: palette.ratioStyle(1 / line[key], 2).background,
            borderColor: theme.faint, borderWidth: 0.5 }, label: { position: line[key] >= 1 ? "right" : "left" } })),
          label: { show: true, color: theme.text, formatter: (point) => format.ratio(2 ** point.value) },
          markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: theme.text, type: "solid" }, data: [{ xAxis: 0 }] },
        }],
      });
    };
    page.chart(grid, { id: `overview:${key}`, title, height: 60 + known.length * 20, points: known.length, build });
  }
};
