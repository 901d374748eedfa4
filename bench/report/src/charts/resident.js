"use strict";
// Resident memory over time.
charts.resident = (parent) => {
  const measured = model.cells.filter((cell) => model.names.some((name) => cell.by.get(name)?.series?.length > 1));
  if (!measured.length) return page.missing(parent, "resident", "This run recorded no resident memory over time.");
  const { hidden, add } = page.withLegend(parent, model.names);
  for (const cell of measured) {
    const recorded = (name) => cell.by.get(name)?.series || [];
    const most = Math.max(...model.names.flatMap((name) => recorded(name).map((point) => point.resident)));
    const unit = most > 2 ** 31 ? 2 ** 30 : 2 ** 20;  // round figures on the axis
    const series = (name) => recorded(name).map((point) => [point.t, point.resident / unit]);
    const points = model.names.reduce((sum, name) => sum + series(name).length, 0);
    const build = () => plain({
      tooltip: { ...plain().tooltip, valueFormatter: (value) => (value == null ? "–" : format.bytes(value * unit)) },
      xAxis: axis("value", "seconds", { nameGap: 22, max: "dataMax", splitLine: { show: false }, axisLabel: { showMaxLabel: false },
        axisPointer: { label: { formatter: ({ value }) => format.seconds(value) } } }),
      yAxis: axis("value", null, { min: 0, axisLabel: { formatter: (value) => format.bytes(value * unit) } }),
      series: lines(hidden, series, { showSymbol: false }),
    });
    add({ id: `resident:${cell.key}`, title: format.cell(cell), height: 230, points, build });
  }
};
