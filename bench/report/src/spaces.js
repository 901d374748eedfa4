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

  const printedName = (name) => `${name} (printed)`;

  function make(data, hidden = new Set()) {
    const measured = data.contestants.map((each) => each.name);
    const all = [...measured, ...(data.printed?.columns || []).map(printedName)];
    return { data, all, hidden, names: measured.filter((name) => !hidden.has(name)), subject: "space",
             printed: (data.printed?.columns || []).map((name, i) => ({ name: printedName(name), i })).filter(({ name }) => !hidden.has(name)) };
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
    if (printed) head.push(...model.printed.map(({ name }) => el("th", { scope: "col", title: printed.machine }, tables.swatch(name), name)));
    const body = rows.map((row) => {
      const values = model.names.map((name) => row.by.get(name)?.[call]?.[kind][figure] ?? null);
      const least = Math.min(...values.filter((value) => value !== null));
      const cells = values.map((value) => el("td", { class: value === least ? "number win" : "number" }, format.time(value)));
      const beside = printed?.[call].find((each) => each.size === row.size);
      if (printed) cells.push(...model.printed.map(({ i }) => el("td", { class: "number" }, format.time(beside?.nanoseconds[i]))));
      return el("tr", {}, el("th", { scope: "row" }, label(row)), cells);
    });
    page.table(parent, `${scenario}:${call}:${kind}:${figure}`, el("table", { class: "rows dense" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)),
      { rows: body.length });
  }

  function addChart(box, scenario, call, figure) {
    const rows = rowsOf(scenario).filter((row) => row.size > 0).sort((a, b) => a.size - b.size);
    const value = (row, name) => row.by.get(name)?.[call]?.typical[figure] || null;
    const printed = scenario === "sequential" && figure === "p50" ? model.data.printed : null;
    const beside = (row, i) => printed[call].find((each) => each.size === row.size)?.nanoseconds[i] ?? null;
    const all = rows.flatMap((row) => [...model.names.map((name) => value(row, name)), ...(printed ? model.printed.map(({ i }) => beside(row, i)) : [])])
      .filter((each) => each !== null);
    const others = () => (printed ? model.printed.map(({ name, i }) => {
      const { color, dash } = palette.allocators(model.all).get(name);
      return { name, type: "line", symbol: "none", lineStyle: { type: dash, color, width: 1.2 }, itemStyle: { color }, data: rows.map((row) => beside(row, i)) };
    }) : []);
    const build = () => plain({
      tooltip: { ...plain().tooltip, valueFormatter: format.time },
      xAxis: axis("category", null, { data: rows.map(label), boundaryGap: false }),
      yAxis: axis("log", null, { ...logBounds(all), axisLabel: { formatter: format.time } }),
      series: [...lines((name) => rows.map((row) => value(row, name))), ...others()],
    });
    const named = printed ? [...model.names, ...model.printed.map(({ name }) => name)] : model.names;
    page.chart(box, { id: `${scenario}:${call}:${figure}`, legend: charts.legend(named), title: `${call}, ${figures.find(([key]) => key === figure)[1]}`, height: 320, points: all.length, build });
  }

  function scenario(name) {
    const [title, intro] = said[name] || [name, ""];
    const section = page.section(name, title, intro);
    if (new Set(rowsOf(name).map((row) => row.size)).size > 2) {
      const box = page.grid(section, "charts two");
      for (const figure of ["p50", "p99"]) for (const call of ["malloc", "free"]) addChart(box, name, call, figure);
    }
    for (const [kind, what] of Object.entries(kinds)) {
      const box = page.fold(section, `${title}, tables: ${what}`, kind === "typical");
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
    const body = model.data.verdict.filter((line) => model.names.includes(line.contestant)).map((line) => el("tr", {}, el("th", { scope: "row" }, tables.swatch(line.contestant), line.contestant),
      el("td", {}, line.call), el("td", {}, line.figure === "p50" ? "median" : line.figure),
      el("td", { class: "number" }, `${line.best} of ${line.sizes}`), el("td", { class: "number" }, `${line.printed} of ${line.sizes}`),
      el("td", {}, line.above.map((loss) => `${format.bytes(loss.size)}: ${format.time(loss.own)}, ${loss.by} ${format.time(loss.best)}`).join("; ") || "–")));
    page.table(section, "verdicts", el("table", { class: "facts" },
      el("thead", {}, el("tr", {}, ["space", "call", "figure", "at or below the best", "at or below RTX64 4.x as printed", "above"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, body)), { rows: body.length });
  }

  function processes() {
    const section = page.section("processes", "Processes");
    const keys = ["scenario", "contestant", "rounds", "replays", "failures", "minor_faults", "peak_bytes", "achieved", "disturbed", "error"];
    const shown = (key, value) => (value === null ? "–" : key === "peak_bytes" ? format.bytes(value) : Array.isArray(value) ? value.join(", ") : String(value));
    page.table(section, "processes", el("table", { class: "rows" },
      el("thead", {}, el("tr", {}, keys.map((key) => el("th", { scope: "col" }, key.replaceAll("_", " "))))),
      el("tbody", {}, model.data.processes.map((each) => el("tr", {}, keys.map((key) => el("td", {}, shown(key, each[key]))))))), { rows: model.data.processes.length, tall: true });
    const table = el("table", { class: "facts" }, el("tbody", {}, model.data.contestants.map((each) =>
      el("tr", {}, el("th", { scope: "row" }, tables.swatch(each.name), each.name), el("td", {}, `${each.what}; ${each.version}`), el("td", {}, each.settings.join(" "))))));
    page.table(section, "contestants", table);
  }

  function draw() {
    const { data } = model;
    document.title = "Hummock bench spaces";
    document.querySelector("h1").textContent = "Hummock bench: deterministic spaces";
    document.getElementById("run").textContent =
      [data.date, `${data.mode} run`, data.machine.cpu, `${data.machine.cores} cores`, data.machine.distribution].filter(Boolean).join(" · ");
    document.getElementById("verdict").textContent =
      `Nanoseconds of one call, by the processor's counter, without what reading it costs; blue is the least of a line. Printed figures: “${data.printed.title}”, on ${data.printed.machine}.`;
    for (const name of new Set(data.processes.map((each) => each.scenario))) scenario(name);
    if (data.verdict.length) verdict();
    processes();
  }

  return { make, draw };
})();
