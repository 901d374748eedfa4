"use strict";
// The page's parts: elements, sections, charts that follow theme and width, and the record of what was drawn.
const charts = {};
const page = (() => {
  const status = { errors: [], charts: [], tables: [], fallbacks: [], missing: [] };
  const live = [];

  addEventListener("error", (event) => status.errors.push(String(event.message)));
  addEventListener("unhandledrejection", (event) => status.errors.push(String(event.reason)));
  addEventListener("securitypolicyviolation", (event) => status.errors.push(`blocked: ${event.blockedURI}`));
  const complain = console.error;
  console.error = (...parts) => {
    status.errors.push(parts.join(" "));
    complain.apply(console, parts);
  };

  // ECharts takes the width of this character for the height of a line; without a font that has it, lines are cut.
  const pen = document.createElement("canvas").getContext("2d");
  echarts.setPlatformAPI({
    measureText(text, font) {
      pen.font = font || "12px sans-serif";
      return text === "国" ? { width: 1.2 * parseFloat(/([\d.]+)px/.exec(pen.font)[1]) } : pen.measureText(text);
    },
  });

  function el(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name === "style") Object.assign(made.style, value);
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  }

  function section(id, title, ...intro) {
    const made = el("section", { id }, el("h2", {}, title), ...intro.map((text) => el("p", { class: "intro" }, text)));
    document.getElementById("sections").append(made);
    document.getElementById("contents").append(el("a", { href: `#${id}` }, title));
    return made;
  }

  // In place of an empty chart.
  function missing(parent, id, text) {
    status.missing.push(id);
    parent.append(el("p", { class: "missing" }, text));
  }

  // Names with their colours; a click hides or shows one in the charts of `redraw`.
  function legend(parent, names, hidden, redraw) {
    const styles = palette.allocators(model.names);
    const box = el("div", { class: "legend", role: "group", "aria-label": "Allocators shown" });
    for (const name of names) {
      const style = styles.get(name);
      const button = el("button", { type: "button", "aria-pressed": "true", onclick: () => toggle(button, name) },
        el("span", { class: "swatch", "data-allocator": name, style: { borderTop: `3px ${style.dash} ${style.color}` } }), name);
      box.append(button);
    }
    function toggle(button, name) {
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute("aria-pressed", String(!hidden.has(name)));
      redraw();
    }
    parent.append(box);
  }

  // A colour scale with its marks, as the charts below it use it.
  function scale(parent, colors, marks, text) {
    parent.append(el("figure", { class: "scale" },
      el("div", { class: "ramp", style: { background: `linear-gradient(to right, ${colors.join(",")})` } }),
      el("div", { class: "marks" }, marks.map((mark) => el("span", {}, mark))),
      el("figcaption", {}, text)));
  }

  // `build(width)` gives the option; it is called again for another width or theme.
  function chart(parent, { id, title, height, points, build, gl }) {
    const box = el("div", { class: gl ? "chart wide" : "chart" }, title ? el("h3", {}, title) : null);
    const canvas = el("div", { class: "canvas", role: "img", "aria-label": title || id });
    box.append(canvas);
    parent.append(box);
    const size = (width) => (typeof height === "function" ? height(width) : height);
    const width = canvas.clientWidth || 320;
    const made = { drawn: null, width, redraw };
    function redraw() {
      made.width = canvas.clientWidth || made.width;
      canvas.style.height = `${size(made.width)}px`;
      if (gl) made.drawn?.dispose();  // a camera does not survive another size
      if (gl || !made.drawn) made.drawn = echarts.init(canvas, null, { renderer: gl ? "canvas" : "svg" });
      made.drawn.resize();
      made.drawn.setOption({ animation: false, ...build(made.width) }, { notMerge: true });
    }
    redraw();
    status.charts.push({ id, kind: gl ? "webgl" : "svg", points, marks: gl ? ink(made.drawn) : canvas.querySelectorAll("svg path").length });
    live.push(made);
    new ResizeObserver(() => canvas.clientWidth && canvas.clientWidth !== made.width && redraw()).observe(canvas);
    return made;
  }

  // A legend, and below it the charts that `add` makes; `hidden` are the names whose lines are not to be shown.
  function withLegend(parent, names, kind = "charts") {
    const hidden = new Set();
    const made = [];
    legend(parent, names, hidden, () => made.forEach((each) => each.redraw()));
    const grid = el("div", { class: kind });
    parent.append(grid);
    return { hidden, add: (options) => made.push(chart(grid, options)) };
  }

  // Distinct colours of what WebGL drew; only looked at when a test asks (#check).
  function ink(drawn) {
    if (location.hash !== "#check") return null;
    const rendered = drawn.getRenderedCanvas({ pixelRatio: 1 });
    const pixels = rendered.getContext("2d").getImageData(0, 0, rendered.width, rendered.height).data;
    const seen = new Set();
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] > 0) seen.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
    }
    return seen.size;
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    live.forEach((each) => each.redraw());
    const styles = palette.allocators(model.names);
    for (const swatch of document.querySelectorAll(".swatch")) {
      swatch.style.borderTopColor = styles.get(swatch.dataset.allocator).color;
    }
  });

  function finish() {
    document.getElementById("report-status").textContent = JSON.stringify(status);
  }

  return { status, el, section, missing, withLegend, scale, chart, finish };
})();

// What the two-dimensional charts share.
function plain(more) {
  const theme = palette.theme();
  return {
    textStyle: { color: theme.text, fontFamily: "system-ui, sans-serif", fontSize: 11 },
    grid: { left: 8, right: 16, top: 22, bottom: 22, containLabel: true },
    tooltip: { trigger: "axis", confine: true, backgroundColor: theme.panel, borderColor: theme.line,
               textStyle: { color: theme.text, fontSize: 12 } },
    ...more,
  };
}

function axis(type, name, more) {
  const theme = palette.theme();
  const { axisLabel, ...rest } = more || {};
  return {
    type, name, nameLocation: "middle", nameTextStyle: { color: theme.faint }, 
    axisLine: { show: true, lineStyle: { color: theme.line } }, axisTick: { lineStyle: { color: theme.line } },
    axisLabel: { color: theme.text, hideOverlap: true, ...axisLabel },
    splitLine: { lineStyle: { color: theme.line, opacity: 0.6 } },
    ...rest,
  };
}

// One line for each allocator that is not hidden, in its own colour and dash; the subject on top.
function lines(hidden, dataOf, more) {
  const styles = palette.allocators(model.names);
  return model.names.filter((name) => !hidden.has(name)).map((name) => {
    const style = styles.get(name);
    return {
      name, type: "line", data: dataOf(name), connectNulls: false, showSymbol: true, symbol: style.symbol,
      symbolSize: name === model.subject ? 7 : 5, z: name === model.subject ? 5 : 2,
      lineStyle: { color: style.color, width: style.width, type: style.dash }, itemStyle: { color: style.color }, ...more,
    };
  }).filter((series) => series.data.some((point) => (Array.isArray(point) ? point[1] : point) != null));
}

// Bounds of a logarithmic axis: whole powers of ten, or 1-2-5 steps where values lie close.
function logBounds(values) {
  const known = values.filter((value) => value > 0);
  const low = Math.min(...known);
  const high = Math.max(...known);
  const floor = (value) => {
    const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
    return [5, 2, 1].map((step) => step * power).find((step) => step <= value * (1 + 1e-9));
  };
  const ceil = (value) => {
    const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
    return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9));
  };
  return { min: floor(low), max: Math.max(ceil(high), floor(low) * 2) };
}
