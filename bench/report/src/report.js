"use strict";
// The report, section by section.
let model = null;

function heading() {
  const { data } = model;
  const machine = data.machine || {};
  const parts = [data.date, data.mode && `${data.mode} run`, machine.cpu, machine.cores && `${machine.cores} cores`, machine.distribution];
  document.getElementById("run").textContent = parts.filter(Boolean).join(" · ");
  const of = (against) => ["time", "memory"].map((kind) => {
    const mean = model.mean(model.cells, model.subject, against, kind);
    return `${kind} ${format.ratio(mean.value)}${mean.disturbed ? ` †${mean.disturbed}` : ""}`;
  }).join(", ");
  const { win, even, loss, failed } = model.score(model.subject);
  const results = model.cells.flatMap((cell) => model.names.map((name) => cell.by.get(name))).filter(Boolean);
  const beside = results.filter((result) => result.disturbed).length;
  document.getElementById("verdict").textContent =
    `${model.subject} against the best other allocator of each cell: ${of("best")}; against ${data.baseline}: ${of(data.baseline)} ` +
    `(geometric means, below 1 is better). It wins ${win} cells, loses ${loss}, and is even in ${even}` + (failed ? `; ${failed} failed.` : ".") +
    (model.hidden.size ? ` Left out: ${[...model.hidden].join(", ")}.` : "") +
    (beside ? ` ${beside} of ${results.length} results were measured beside other load; what rests on them has a †, and how many of its cells do.` : "");
  verdict.draw(document.getElementById("words"));
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
  page.table(parent, "machine", el("table", { class: "facts" }, el("tbody", {}, lines.map(([key, value]) =>
    el("tr", {}, el("th", { scope: "row" }, key.replaceAll("_", " ")), el("td", {}, shown(key, value)))))), { rows: lines.length });
  const known = data.allocators || [];
  if (!known.length) return page.missing(parent, "allocators", "This file names no allocators.");
  const keys = ["version", "origin", "library", "flags", "setting"];
  page.table(parent, "allocators", el("table", {},
    el("thead", {}, el("tr", {}, ["allocator", ...keys].map((key) => el("th", { scope: "col" }, key)))),
    el("tbody", {}, known.map((each) => el("tr", {}, el("th", { scope: "row" }, tables.swatch(each.name), each.name),
      keys.map((key) => el("td", {}, each[key] || "–")))))), { rows: known.length });
}

function sections() {
  const scores = page.section("scores", "Scores",
    "Geometric means over the cells: time for the same work, CPU time and peak resident memory, below 1 is better. Blue ▼ is better, orange ▲ is worse; within 2 % is even. †3: three of the cells were measured beside other load.");
  tables.scores(scores);
  charts.overview(scores);
  const cells = page.section("cells", "Every cell", "Click a name to sort by it. Blue ▼ is better, orange ▲ is worse than what it is measured against; † was measured beside other load.");
  tables.cells(cells);
  tables.failures(cells);
  gridSections();
  charts.scaling(page.section("scaling", "Scaling", "Operations per second, all threads together; logarithmic. Of many sizes, four are drawn; the table has all."));
  charts.latency(page.section("latency", "Latency", "Single operations; logarithmic."));
  charts.resident(page.section("resident", "Resident memory over time",
    "A panel for each allocator, all panels of a cell to the same scale; the other allocators' curves are grey. First the cells in which they differ most at the end."));
  charts.waste(page.section("waste", "Size classes", "The block a request gets, from malloc_usable_size."));
  const rows = page.section("rows", "Tables of single workloads");
  if (!tables.rows(rows)) page.missing(rows, "rows", "This run has no workload that is a table.");
  facts(page.section("facts", "Machine and allocators"));
  tables.workloads(page.section("workloads", "Workloads"));
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
  // Draws all of it, and again whenever what is shown changes.
  const draw = (make, parts) => {
    const once = () => {
      page.clear();
      model = make();
      try {
        parts.forEach((part) => part());
      } catch (error) {
        page.status.errors.push(`${error.message} ${error.stack}`);
        say(`The report could not be drawn in full: ${error.message}`);
      }
    };
    model = make();
    controls.draw(once);
    once();
    return page.finish();
  };
  if (data.program === "hummock bench spaces") return draw(() => spaces.make(data, controls.hidden), [spaces.draw]);
  const first = makeModel(data);
  if (!first.names.length || !first.cells.length) {
    say("This file has no results.");
    page.status.missing.push("results");
    return page.finish();
  }
  if (data.sample) document.body.prepend(page.el("p", { class: "missing sample" }, "Sample data, made up for tests; nothing here was measured."));
  draw(() => makeModel(data, controls.hidden), [heading, sections]);
})();
