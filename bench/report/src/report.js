"use strict";
// The report, section by section.
let model = null;

function heading() {
  const { data } = model;
  const machine = data.machine || {};
  const parts = [data.date, data.mode && `${data.mode} run`, machine.cpu, machine.cores && `${machine.cores} cores`, machine.distribution];
  document.getElementById("run").textContent = parts.filter(Boolean).join(" · ");
  const line = model.score(model.subject);
  if (!line) return;
  const of = (key) => `time ${format.ratio(line.time_ratio_geomean?.[key])}, memory ${format.ratio(line.memory_ratio_geomean?.[key])}`;
  document.getElementById("verdict").textContent =
    `${model.subject} against the best other allocator of each cell: ${of("vs_best")}; against ${data.baseline}: ${of("vs_baseline")} ` +
    `(geometric means, below 1 is better). It wins ${line.wins} cells, loses ${line.losses}, and is even in ${line.ties}` +
    (line.errors ? `; ${line.errors} failed.` : ".");
}

function gridSections() {
  const usable = charts.webgl();
  const found = model.grids();
  const heat = page.section("heatmaps", "Threads × size",
    "One square for each cell. This is speed, so above 1 is better here; the tables have time, the inverse.");
  const surfaces = page.section("surfaces", "Surfaces", "Threads × block size × operations per second; drag to turn.");
  const ratios = page.section("ratios", "Ratio surfaces", "The same cells, one allocator over the other; flat at 1 is the same speed.");
  for (const [section, id, what] of [[heat, "heatmap", "heatmap"], [surfaces, "surface", "surface"], [ratios, "ratio", "ratio surface"]]) {
    if (!found.length) page.missing(section, id, `A ${what} needs a workload measured at several thread counts and several sizes; this ${model.data.mode || ""} run has none.`);
  }
  for (const grid of found) {
    const part = (section) => {
      const box = page.el("div", {}, page.el("h3", {}, grid.title));
      section.append(box);
      return box;
    };
    charts.heatmaps(part(heat), grid);
    charts.surfaces(part(surfaces), grid, usable);
    charts.ratioSurfaces(part(ratios), grid, usable);
  }
}

function facts(parent) {
  const { el } = page;
  const { data } = model;
  const machine = data.machine || {};
  const shown = (key, value) => (key.endsWith("bytes") ? format.bytes(value) : key === "page_size" ? format.bytes(value)
    : Array.isArray(value) ? value.join(", ") : typeof value === "object" && value ? JSON.stringify(value) : String(value));
  const lines = [...Object.entries(machine), ["command", (data.command || []).join(" ")], ["seed", data.seed], ["mode", data.mode], ["date", data.date]]
    .filter(([, value]) => value !== undefined && value !== null && value !== "");
  parent.append(el("div", { class: "scroll" }, el("table", { class: "facts", id: "machine" }, el("tbody", {}, lines.map(([key, value]) =>
    el("tr", {}, el("th", { scope: "row" }, key.replaceAll("_", " ")), el("td", {}, shown(key, value))))))));
  const known = data.allocators || [];
  if (!known.length) return page.missing(parent, "allocators", "This file names no allocators.");
  const keys = ["version", "origin", "library", "flags", "setting"];
  parent.append(el("div", { class: "scroll" }, el("table", { id: "allocators" },
    el("thead", {}, el("tr", {}, ["allocator", ...keys].map((key) => el("th", { scope: "col" }, key)))),
    el("tbody", {}, known.map((each) => el("tr", {}, el("th", { scope: "row" }, tables.swatch(each.name), each.name),
      keys.map((key) => el("td", {}, each[key] || "–"))))))));
  page.status.tables.push({ id: "machine", rows: lines.length }, { id: "allocators", rows: known.length });
}

function sections() {
  const scores = page.section("scores", "Scores",
    "Geometric means over the cells: time for the same work, CPU time and peak resident memory, below 1 is better. ▼ better, ▲ worse; within 2 % is even.");
  tables.scores(scores);
  charts.overview(scores);
  const cells = page.section("cells", "Every cell", "Click a name to sort by it. ▼ better, ▲ worse than what it is measured against.");
  tables.cells(cells);
  tables.failures(cells);
  gridSections();
  charts.scaling(page.section("scaling", "Scaling", "Operations per second, all threads together; logarithmic. Of many sizes, four are drawn; the table has all."));
  charts.latency(page.section("latency", "Latency", "Single operations; logarithmic."));
  charts.resident(page.section("resident", "Resident memory over time"));
  charts.waste(page.section("waste", "Size classes", "The block a request gets, from malloc_usable_size."));
  const rows = page.section("rows", "Tables of single workloads");
  if (!tables.rows(rows)) page.missing(rows, "rows", "This run has no workload that is a table.");
  facts(page.section("facts", "Machine and allocators"));
  page.section("method", "Method",
    "Each allocator is preloaded into the same program, one process for each run, and runs alternate between allocators in random order, so that a slow moment of the machine meets all of them. " +
    "A cell is the median of its runs, with the lowest and highest beside it; runs that other load disturbed are repeated, or marked where they still stand. " +
    "A ratio compares medians of the same cell: time is the other's operations per second over one's own, memory one's own peak over the other's, and “best other” is the best of all other allocators in that cell alone, so it is a bar that no single one of them reaches everywhere.");
}

(() => {
  const text = document.getElementById("data").textContent.trim();
  const say = (what) => document.getElementById("sections").append(page.el("p", { class: "missing" }, what));
  let data = null;
  try {
    data = JSON.parse(text);
  } catch (error) {
    say(text.startsWith("{{") ? "This is the template of the report: hummock bench --html fills it." : `The data of this report cannot be read: ${error.message}`);
    page.status.errors.push("no data");
    return page.finish();
  }
  if (data.format !== 1) say(`This page reads format 1; the data has format ${data.format}.`);
  const draw = (parts) => {
    try {
      parts.forEach((part) => part());
    } catch (error) {
      page.status.errors.push(`${error.message} ${error.stack}`);
      say(`The report could not be drawn in full: ${error.message}`);
    }
    page.finish();
  };
  if (data.program === "hummock bench spaces") {
    model = spaces.make(data);
    return draw([spaces.draw]);
  }
  model = makeModel(data);
  if (!model.names.length || !model.cells.length) {
    say("This file has no results.");
    page.status.missing.push("results");
    return page.finish();
  }
  if (data.sample) document.body.prepend(page.el("p", { class: "missing sample" }, "Sample data, made up for tests; nothing here was measured."));
  draw([heading, sections]);
})();
