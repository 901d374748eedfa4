"use strict";
// A result of hummock bench spaces: the tables of each scenario, with a drawing where sizes are many.
const spaces = (() => {
  const { el } = page;
  const figures = [["p50", "median"], ["p99", "p99"], ["p999", "p99.9"], ["max", "maximum"]];
  const said = {
    sequential: ["Sequential", "Of each size many blocks are allocated, then all are freed, again and again. Beside the medians stand figures that a document printed of another machine."],
    churn: ["70 % in use", "Random sizes from 16 bytes to 4 MiB come and go while 70 % of 512 MiB is in use. The first line has all sizes together."],
    "near-full": ["90 % in use", "Random sizes from 16 bytes to 64 KiB come and go while 90 % of 64 MiB is in use; a space has no more than that, the others may."],
    alternating: ["Alternating", "Every other one of many blocks of 64 bytes is freed, and allocated again."],
    holes: ["Holes", "Every other one of so many blocks of 64 bytes is freed; then one block of 4096 bytes is wanted."],
  };
  const kinds = { typical: "undisturbed replays", least: "the least of all replays", seen: "every replay" };

  function make(data) {
    return { data, names: data.contestants.map((each) => each.name), subject: "space" };
  }

  const keyOf = (result) => `${result.size}|${result.blocks}`;
  function rowsOf(scenario) {
    const rows = new Map();
    for (const result of model.data.results.filter((each) => each.scenario === scenario)) {
      if (!rows.has(keyOf(result))) rows.set(keyOf(result), { size: result.size, blocks: result.blocks, by: new Map() });
      rows.get(keyOf(result)).by.set(result.contestant, result);
    }
    return [...rows.values()];
  }

  const label = (row) => (row.blocks ? `${format.count(row.blocks)} blocks` : row.size ? format.bytes(row.size) : "all sizes");

  function table(parent, scenario, call, kind, figure) {
    const printed = scenario === "sequential" && figure === "p50" ? model.data.printed : null;
    const rows = rowsOf(scenario).filter((row) => [...row.by.values()].some((result) => result[call]));
    const head = ["", ...model.names].map((name) => el("th", { scope: "col" }, name ? tables.swatch(name) : null, name));
    if (printed) head.push(...printed.columns.map((name) => el("th", { scope: "col", title: printed.machine }, `${name} (printed)`)));
    const body = rows.map((row) => {
      const values = model.names.map((name) => row.by.get(name)?.[call]?.[kind][figure] ?? null);
      const least = Math.min(...values.filter((value) => value !== null));
      const cells = values.map((value) => el("td", { class: value === least ? "number win" : "number" }, format.time(value)));
      const beside = printed?.[call].find((each) => each.size === row.size);
      if (printed) cells.push(...printed.columns.map((_, i) => el("td", { class: "number" }, format.time(beside?.nanoseconds[i]))));
      return el("tr", {}, el("th", { scope: "row" }, label(row)), cells);
    });
    parent.append(el("div", { class: "scroll" }, el("table", { class: "rows" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body))));
    page.status.tables.push({ id: `${scenario}:${call}:${kind}:${figure}`, rows: body.length });
  }

  function addChart(charts, scenario, call, figure) {
    const rows = rowsOf(scenario).filter((row) => row.size > 0).sort((a, b) => a.size - b.size);
    const value = (row, name) => row.by.get(name)?.[call]?.typical[figure] || null;
    const printed = scenario === "sequential" && figure === "p50" ? model.data.printed : null;
    const beside = (row, i) => printed[call].find((each) => each.size === row.size)?.nanoseconds[i] ?? null;
    const all = rows.flatMap((row) => [...model.names.map((name) => value(row, name)), ...(printed ? printed.columns.map((_, i) => beside(row, i)) : [])])
      .filter((each) => each !== null);
    const dots = () => (printed ? printed.columns.map((name, i) => ({
      name: `${name} (printed)`, type: "line", symbol: "none", lineStyle: { type: "dotted", color: palette.theme().faint, width: 1 + i / 2 },
      itemStyle: { color: palette.theme().faint }, data: rows.map((row) => beside(row, i)),
    })) : []);
    const build = () => plain({
      tooltip: { ...plain().tooltip, valueFormatter: format.time },
      xAxis: axis("category", null, { data: rows.map(label), boundaryGap: false }),
      yAxis: axis("log", null, { ...logBounds(all), axisLabel: { formatter: format.time } }),
      series: [...lines(charts.hidden, (name) => rows.map((row) => value(row, name))), ...dots()],
    });
    charts.add({ id: `${scenario}:${call}:${figure}`, title: `${call}, ${figures.find(([key]) => key === figure)[1]}`, height: 320, points: all.length, build });
  }

  function scenario(name) {
    const [title, intro] = said[name] || [name, ""];
    const section = page.section(name, title, intro);
    if (new Set(rowsOf(name).map((row) => row.size)).size > 2) {
      const charts = page.withLegend(section, model.names);
      for (const figure of ["p50", "p99"]) for (const call of ["malloc", "free"]) addChart(charts, name, call, figure);
    }
    for (const [kind, what] of Object.entries(kinds)) {
      const box = el("details", { open: kind === "typical" }, el("summary", {}, `Tables: ${what}`));
      section.append(box);
      for (const [figure, shown] of figures) {
        for (const call of ["malloc", "free"]) {
          box.append(el("h3", {}, `${call === "malloc" ? "Time to allocate" : "Time to free"}, ${shown}`));
          table(box, name, call, kind, figure);
        }
      }
    }
  }

  function verdict() {
    const section = page.section("verdict-table", "Against the best of the others",
      "Sequential, undisturbed replays: at how many sizes a space is at or below the fastest other allocator of that size, and where it is not. Two per cent are even.");
    const body = model.data.verdict.map((line) => el("tr", {}, el("th", { scope: "row" }, tables.swatch(line.contestant), line.contestant),
      el("td", {}, line.call), el("td", {}, line.figure === "p50" ? "median" : line.figure),
      el("td", { class: "number" }, `${line.best} of ${line.sizes}`), el("td", { class: "number" }, `${line.printed} of ${line.sizes}`),
      el("td", {}, line.above.map((loss) => `${format.bytes(loss.size)}: ${format.time(loss.own)}, ${loss.by} ${format.time(loss.best)}`).join("; ") || "–")));
    section.append(el("div", { class: "scroll" }, el("table", { class: "facts", id: "verdicts" },
      el("thead", {}, el("tr", {}, ["space", "call", "figure", "at or below the best", "at or below RTX64 4.x as printed", "above"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, body))));
    page.status.tables.push({ id: "verdicts", rows: body.length });
  }

  function processes() {
    const section = page.section("processes", "Processes");
    const keys = ["scenario", "contestant", "rounds", "replays", "failures", "minor_faults", "peak_bytes", "achieved", "disturbed", "error"];
    const shown = (key, value) => (value === null ? "–" : key === "peak_bytes" ? format.bytes(value) : Array.isArray(value) ? value.join(", ") : String(value));
    section.append(el("div", { class: "scroll tall" }, el("table", { class: "rows" },
      el("thead", {}, el("tr", {}, keys.map((key) => el("th", { scope: "col" }, key.replaceAll("_", " "))))),
      el("tbody", {}, model.data.processes.map((each) => el("tr", {}, keys.map((key) => el("td", {}, shown(key, each[key])))))))));
    page.status.tables.push({ id: "processes", rows: model.data.processes.length });
    const table = el("table", { class: "facts" }, el("tbody", {}, model.data.contestants.map((each) =>
      el("tr", {}, el("th", { scope: "row" }, tables.swatch(each.name), each.name), el("td", {}, `${each.what}; ${each.version}`), el("td", {}, each.settings.join(" "))))));
    section.append(el("div", { class: "scroll" }, table));
  }

  function draw() {
    const { data } = model;
    document.title = "Hummock bench spaces";
    document.querySelector("h1").textContent = "Hummock bench: deterministic spaces";
    document.getElementById("run").textContent =
      [data.date, `${data.mode} run`, data.machine.cpu, `${data.machine.cores} cores`, data.machine.distribution].filter(Boolean).join(" · ");
    document.getElementById("verdict").textContent =
      `Nanoseconds of one call, by the processor's counter, without what reading it costs. Printed figures: “${data.printed.title}”, on ${data.printed.machine}.`;
    for (const name of new Set(data.processes.map((each) => each.scenario))) scenario(name);
    if (data.verdict.length) verdict();
    processes();
  }

  return { make, draw };
})();
