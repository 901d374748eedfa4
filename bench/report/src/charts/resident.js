"use strict";
// Resident memory over time: for each cell one small panel an allocator, all to one scale, the others in grey behind.
charts.resident = (parent) => {
  const curveOf = (cell, name) => cell.by.get(name)?.series || [];
  const measured = model.cells.filter((cell) => model.names.some((name) => curveOf(cell, name).length > 1));
  if (!measured.length) return page.missing(parent, "resident", "This run recorded no resident memory over time.");
  // Where allocators differ most in what they hold at the end comes first; the rest is folded.
  const apart = (cell) => {
    const ends = model.names.map((name) => curveOf(cell, name).at(-1)?.resident).filter((bytes) => bytes > 0);
    return Math.max(...ends) - Math.min(...ends);
  };
  const ordered = [...measured].sort((a, b) => apart(b) - apart(a));
  const shown = page.grid(parent, "charts one");
  const rest = ordered.length > 8 ? page.grid(page.fold(parent, `Resident memory of ${ordered.length - 8} more cells`, page.checked), "charts one") : null;
  ordered.forEach((cell, i) => {
    const names = model.names.filter((name) => curveOf(cell, name).length > 1);
    page.drawing(i < 8 ? shown : rest, {
      id: `resident:${cell.key}`, title: charts.title(cell), points: names.reduce((sum, name) => sum + curveOf(cell, name).length, 0),
      height: (width) => charts.panelRows(width, names.length) * charts.panel.height,
      build: (width) => charts.panels(width, names, (name) => curveOf(cell, name)),
    });
  });
};

charts.panel = { height: 112, least: 150 };
charts.panelColumns = (width, count) => Math.max(1, Math.min(count, Math.floor(width / charts.panel.least)));
charts.panelRows = (width, count) => Math.ceil(count / charts.panelColumns(width, count));

charts.panels = (width, names, curveOf) => {
  const theme = palette.theme();
  const styles = palette.allocators(model.all);
  const svg = (tag, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    return made;
  };
  const columns = charts.panelColumns(width, names.length);
  const [across, high] = [width / columns, charts.panel.height];
  const all = names.flatMap(curveOf);
  const [last, most] = [Math.max(...all.map((point) => point.t)), Math.max(...all.map((point) => point.resident))];
  const [left, right, top, bottom] = [4, 12, 30, 16];
  const at = ({ t, resident }) => [left + (across - left - right) * (last > 0 ? t / last : 0), high - bottom - (high - top - bottom) * (resident / most)];
  const path = (name) => "M" + curveOf(name).map((point) => at(point).map((value) => value.toFixed(1)).join(" ")).join("L");
  const drawing = svg("svg", { width, height: high * charts.panelRows(width, names.length), "font-family": "system-ui, sans-serif" });
  names.forEach((name, i) => {
    const { color } = styles.get(name);
    const curve = curveOf(name);
    const peak = Math.max(...curve.map((point) => point.resident));
    const panel = svg("g", { transform: `translate(${(i % columns) * across} ${Math.floor(i / columns) * high})` });
    const text = (x, y, anchor, fill, size, said, weight = 400) =>
      panel.append(svg("text", { x, y, "text-anchor": anchor, fill, "font-size": size, "font-weight": weight }, said));
    text(left, 11, "start", color, 12, name, 700);
    text(left, 24, "start", theme.faint, 10.5, `peak ${format.bytes(peak)}, end ${format.bytes(curve.at(-1).resident)}`);
    panel.append(svg("path", { d: `M${left} ${high - bottom}H${across - right}`, stroke: theme.faint, fill: "none" }));
    panel.append(svg("path", { d: `M${left} ${top}H${across - right}`, stroke: theme.line, "stroke-dasharray": "2 3", fill: "none" }));
    for (const other of names) if (other !== name) panel.append(svg("path", { d: path(other), stroke: theme.line, fill: "none" }));
    panel.append(svg("path", { d: path(name), stroke: color, "stroke-width": name === model.subject ? 2.4 : 1.8, "stroke-linejoin": "round", fill: "none" }));
    if (i % columns === 0) text(left, high - 4, "start", theme.faint, 10, `0 to ${format.seconds(last)}; dashed: ${format.bytes(most)}`);
    drawing.append(panel);
  });
  return drawing;
};
