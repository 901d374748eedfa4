"use strict";
// Each workload's mean ratio of the subject to the best other, worst first.
charts.overview = (parent) => {
  const lines = [...model.workloads()].map(([workload, group]) => ({
    workload,
    time: model.mean(group, model.subject, "best", "time"),
    memory: model.mean(group, model.subject, "best", "memory"),
  }));
  if (!lines.some((line) => line.time.cells || line.memory.cells)) {
    return page.missing(parent, "overview", "This run has no workload that more than one allocator ended.");
  }
  const box = page.grid(parent, "charts two");
  for (const [key, title] of [["time", "Time against the best other, per workload"], ["memory", "Peak memory against the best other, per workload"]]) {
    const known = lines.filter((line) => line[key].cells).map((line) => ({ workload: line.workload, ...line[key] })).sort((a, b) => a.value - b.value);
    const logs = known.map((line) => Math.log2(line.value));
    const [low, high] = [Math.min(-0.3, ...logs), Math.max(0.3, ...logs)];
    const room = 0.15 * (high - low);  // for the figures beside the bars
    const step = Math.max(1, Math.ceil((high - low) / 6));
    const figure = (line) => format.ratio(line.value) + (line.disturbed ? ` †${line.disturbed}` : "");
    const build = () => {
      const theme = palette.theme();
      return plain({
        grid: { left: 16 + 7 * Math.max(...known.map((line) => line.workload.length)), right: 24, top: 8, bottom: 40 },
        xAxis: axis("value", "below 1 is better", { nameGap: 26, min: Math.floor((low - room) / step) * step, max: Math.ceil((high + room) / step) * step,
          interval: step, axisLabel: { formatter: (value) => (value < 0 ? `1/${2 ** -value}` : String(2 ** value)) } }),
        yAxis: axis("category", null, { data: known.map((line) => line.workload), axisLabel: { interval: 0 }, splitLine: { show: false } }),
        tooltip: { ...plain().tooltip, formatter: ([point]) => `${point.name}: ${figure(known[point.dataIndex])}` },
        series: [{
          type: "bar", name: title, barMaxWidth: 14,
          // A bar beside other load is paler and has a dashed edge.
          data: known.map((line) => ({ value: Math.log2(line.value),
            itemStyle: { color: palette.ratioStyle(1 / line.value, 2).background, opacity: line.disturbed ? 0.6 : 1,
              borderColor: theme.faint, borderWidth: line.disturbed ? 1.5 : 0.5, borderType: line.disturbed ? "dashed" : "solid" },
            label: { position: line.value >= 1 ? "right" : "left" } })),
          label: { show: true, color: theme.text, formatter: ({ dataIndex }) => figure(known[dataIndex]) },
          markLine: { silent: true, symbol: "none", label: { show: false }, lineStyle: { color: theme.text, type: "solid" }, data: [{ xAxis: 0 }] },
        }],
      });
    };
    page.chart(box, { id: `overview:${key}`, title, height: 60 + known.length * 20, points: known.length, build });
  }
};

// What a saved picture says of its lines.
charts.legend = (names) => names.map((name) => ({ name, color: palette.allocators(model.all).get(name).color }));

// †: a line in it was measured beside other load.
charts.title = (cell) => format.cell(cell) + (model.names.some((name) => model.disturbed(cell, name)) ? " †" : "");
