"use strict";
// The page's parts: elements, sections, charts that follow theme and width, and the record of what was drawn.
const charts = {};
const page = (() => {
  const status = { errors: [], charts: [], tables: [], fallbacks: [], missing: [] };
  const live = [];
  const open = new Map();  // folded parts: what the reader opened or closed
  const checked = location.hash === "#check";  // a test looks: draw everything at once

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

  // A part that can be folded; it stays as the reader left it when the page is drawn anew.
  function fold(parent, title, opened = false) {
    const made = el("details", { open: open.get(title) ?? opened, ontoggle: () => open.set(title, made.open) }, el("summary", {}, title));
    parent.append(made);
    return made;
  }

  // A table that scrolls when it is too wide, with its figures as a file.
  function table(parent, id, made, { rows, tall } = {}) {
    if (id) made.id = id;
    parent.append(el("div", { class: "saves" }, save("CSV", () => files.table(made, id))),
      el("div", { class: tall ? "scroll tall" : "scroll" }, made));
    if (rows !== undefined) status.tables.push({ id, rows });
  }

  const save = (kind, action) => el("button", { type: "button", class: "save", title: `Save as ${kind}`, onclick: action }, kind);

  // A colour scale with its marks, as the charts below it use it.
  function scale(parent, colors, marks, text) {
    parent.append(el("figure", { class: "scale" },
      el("div", { class: "ramp", style: { background: `linear-gradient(to right, ${colors.join(",")})` } }),
      el("div", { class: "marks" }, marks.map((mark) => el("span", {}, mark))),
      el("figcaption", {}, text)));
  }

  // A box that is drawn when it comes into sight, and again for another width or theme. `draw(canvas, width)` returns
  // what `dispose` ends and how many marks it made.
  function lazy(parent, { id, title, legend, height, points, kind, wide }, draw, dispose, saved) {
    const canvas = el("div", { class: "canvas", role: "img", "aria-label": title || id });
    const box = el("div", { class: wide ? "chart wide" : "chart" },
      el("h3", {}, title || "", save("PNG", () => files.png(saved(canvas), title || id, legend))), canvas);
    parent.append(box);
    const size = (width) => (typeof height === "function" ? height(width) : height);
    const made = { canvas, width: 0, redraw, dispose: () => { seen.disconnect(); sized.disconnect(); dispose(); } };
    function redraw() {
      made.width = canvas.clientWidth || made.width || 320;
      canvas.style.height = `${size(made.width)}px`;
      return draw(canvas, made.width);
    }
    const begin = () => {
      seen.disconnect();
      status.charts.push({ id, kind, points, marks: redraw() });
      sized.observe(canvas);
    };
    const seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && begin(), { rootMargin: "600px" });
    const sized = new ResizeObserver(() => canvas.clientWidth && canvas.clientWidth !== made.width && redraw());
    canvas.style.height = `${size(canvas.clientWidth || 320)}px`;
    live.push(made);
    if (checked) begin();
    else seen.observe(canvas);
  }

  // A chart of ECharts; `build(width)` gives its option.
  function chart(parent, { build, gl, ...what }) {
    let drawn = null;
    const end = () => { drawn?.dispose(); drawn = null; };
    lazy(parent, { kind: gl ? "webgl" : "svg", wide: gl, ...what }, (canvas, width) => {
      if (gl) end();  // a camera does not survive another size
      drawn ||= echarts.init(canvas, null, { renderer: gl ? "canvas" : "svg" });
      drawn.resize();
      drawn.setOption({ animation: false, ...build(width) }, { notMerge: true });
      return gl ? ink(drawn) : canvas.querySelectorAll("svg path").length;
    }, end, (canvas) => (gl ? drawn.getRenderedCanvas({ pixelRatio: 2 }) : canvas.querySelector("svg")));
  }

  // A drawing of our own: `build(width)` gives an SVG element.
  function drawing(parent, { build, ...what }) {
    lazy(parent, { kind: "svg", ...what }, (canvas, width) => {
      canvas.replaceChildren(build(width));
      return canvas.querySelectorAll("path").length;
    }, () => {}, (canvas) => canvas.querySelector("svg"));
  }

  // A place for charts side by side.
  function grid(parent, kind = "charts") {
    const made = el("div", { class: kind });
    parent.append(made);
    return made;
  }

  // Distinct colours of what WebGL drew; only looked at when a test asks.
  function ink(drawn) {
    if (!checked) return null;
    const rendered = drawn.getRenderedCanvas({ pixelRatio: 1 });
    const pixels = rendered.getContext("2d").getImageData(0, 0, rendered.width, rendered.height).data;
    const seen = new Set();
    for (let i = 0; i < pixels.length; i += 4) {
      if (pixels[i + 3] > 0) seen.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
    }
    return seen.size;
  }

  // Empties the page, to draw it anew.
  function clear() {
    live.splice(0).forEach((each) => each.dispose());
    document.getElementById("sections").replaceChildren();
    document.getElementById("contents").replaceChildren();
    for (const list of [status.charts, status.tables, status.fallbacks, status.missing]) list.length = 0;
  }

  async function finish() {
    if (checked && live.length && !status.errors.length) status.exported = await files.tried(live[0].canvas.querySelector("svg"));
    document.getElementById("report-status").textContent = JSON.stringify(status);
  }

  return { status, el, section, missing, fold, table, save, scale, chart, drawing, grid, clear, finish, checked };
})();

// What the two-dimensional charts share.
function plain(more) {
  const theme = palette.theme();
  return {
    textStyle: { color: theme.text, fontFamily: "system-ui, sans-serif", fontSize: 11 },
    grid: { left: 8, right: 26, top: 22, bottom: 22, containLabel: true },
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

// One line for each allocator that is shown, in its own colour and dash; the subject on top.
function lines(dataOf, more) {
  const styles = palette.allocators(model.all);
  return model.names.map((name) => {
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
