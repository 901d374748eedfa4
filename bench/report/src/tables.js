"use strict";
// Tables: the scores, every cell, and the rows of workloads that are tables themselves.
const tables = (() => {
  const { el } = page;

  const swatch = (name) => {
    const style = palette.allocators(model.names).get(name);
    return el("span", { class: "swatch", "data-allocator": name, style: { borderTop: `3px ${style.dash} ${style.color}` } });
  };

  function ratioCell(value, more) {
    const said = model.verdict(value);
    return el("td", { class: said ? `number ${said}` : "number", title: more }, format.ratio(value),
      said === "loss" ? el("span", { class: "mark", "aria-label": "worse" }, " ▲") : null,
      said === "win" ? el("span", { class: "mark", "aria-label": "better" }, " ▼") : null);
  }

  // A worst cell: how far off, and where.
  function worstCell(worst) {
    if (!worst) return el("td", { class: "number" }, "–");
    const made = ratioCell(worst.ratio);
    made.append(el("small", { class: "where" }, format.cell(worst).replace(/(\d) (?=[a-zA-Z])/g, "$1\u00a0")));
    return made;
  }

  function scores(parent) {
    const known = model.names.filter((name) => model.score(name));
    if (!known.length) return page.missing(parent, "scores", "This file has no summary.");
    const against = ["vs_baseline", "vs_best"];
    const means = ["time", "CPU time", "memory"];
    const table = el("table", { class: "scores", id: "score-table" });
    table.append(el("thead", {},
      el("tr", {}, el("th", { rowspan: 2, scope: "col" }, "allocator"), el("th", { colspan: 3 }, `against ${model.data.baseline}`),
        el("th", { colspan: 3 }, "against the best other"), el("th", { colspan: 4 }, "cells, time against the best other"),
        el("th", { colspan: 2 }, "worst cell against the best other")),
      el("tr", {}, [...means, ...means, "wins", "even", "losses", "failed", "time", "memory"].map((name) => el("th", { scope: "col" }, name)))));
    table.append(el("tbody", {}, known.map((name) => {
      const line = model.score(name);
      const mean = (kind, other) => ratioCell(line[`${kind}_ratio_geomean`]?.[other] ?? null);
      return el("tr", { class: name === model.subject ? "subject" : null }, el("th", { scope: "row" }, swatch(name), name),
        against.flatMap((other) => ["time", "cpu", "memory"].map((kind) => mean(kind, other))),
        ["wins", "ties", "losses", "errors"].map((key) => el("td", { class: "number" }, String(line[key] ?? "–"))),
        worstCell(line.worst_time?.vs_best), worstCell(line.worst_memory?.vs_best));
    })));
    parent.append(el("div", { class: "scroll" }, table));
    page.status.tables.push({ id: "scores", rows: known.length });
  }

  // What the table of cells can show; `better` says which end wins.
  function metrics() {
    const median = (key) => (result) => result?.[key]?.median ?? null;
    const of = (read) => (cell, name) => read(cell.by.get(name));
    return [
      { id: "best", label: "time against the best other", ratio: true, value: (c, n) => model.timeRatio(c, n, "best") },
      { id: "baseline", label: `time against ${model.data.baseline}`, ratio: true, value: (c, n) => model.timeRatio(c, n, model.data.baseline) },
      { id: "ops", label: "operations per second", show: format.count, better: "high", value: of(model.ops), spread: "ops_per_second" },
      { id: "cpu-best", label: "CPU time against the best other", ratio: true, value: (c, n) => model.cpuRatio(c, n, "best") },
      { id: "cpu", label: "CPU time of an operation", show: format.time, better: "low", value: of(model.cpu), spread: "cpu_ns_per_operation" },
      { id: "memory-best", label: "peak memory against the best other", ratio: true, value: (c, n) => model.memoryRatio(c, n, "best") },
      { id: "memory", label: "peak resident memory", show: format.bytes, better: "low", value: of(model.memory), spread: "peak_bytes" },
      { id: "settled", label: "resident memory after all is freed", show: format.bytes, better: "low", value: of(median("settled_bytes")), spread: "settled_bytes" },
      { id: "system", label: "system time of a run", show: format.seconds, better: "low", value: of(median("system_seconds")), spread: "system_seconds" },
      { id: "system-best", label: "system time against the best other", ratio: true, value: of((r) => r?.system_ratio?.vs_best ?? null) },
      { id: "faults-best", label: "minor page faults against the best other", ratio: true, value: of((r) => r?.fault_ratio?.vs_best ?? null) },
      { id: "faults", label: "minor page faults", show: format.count, better: "low", value: of(median("minor_faults")), spread: "minor_faults" },
      { id: "p99", label: "latency p99", show: format.time, better: "low", value: of((r) => r?.latency?.p99 ?? null) },
    ];
  }

  function cells(parent) {
    const all = metrics().filter((metric) => model.cells.some((c) => model.names.some((n) => metric.value(c, n) !== null)));
    const state = { metric: all[0], sort: null, down: true, text: "", losses: false };
    const box = el("div", { class: "scroll tall" });
    const choice = el("select", { onchange: () => show({ metric: all[choice.selectedIndex], sort: null }) },
      all.map((metric) => el("option", {}, metric.label)));
    const filter = el("input", { type: "search", placeholder: "workload", size: 12, oninput: () => show({ text: filter.value.toLowerCase() }) });
    const losses = el("input", { type: "checkbox", onchange: () => show({ losses: losses.checked }) });
    const count = el("span", { class: "faint" });
    parent.append(el("div", { class: "controls" }, el("label", {}, "Show ", choice), el("label", {}, "only ", filter),
      el("label", {}, losses, ` only where ${model.subject} loses`), count), box);
    show({});
    page.status.tables.push({ id: "cells", rows: model.cells.length });

    function show(change) {
      Object.assign(state, change);
      const chosen = model.cells.filter((cell) =>
        `${cell.workload} ${cell.title || ""} ${cell.group || ""}`.toLowerCase().includes(state.text) &&
        (!state.losses || lost(cell)));
      if (state.sort) sort(chosen);
      count.textContent = `${chosen.length} of ${model.cells.length} cells`;
      box.replaceChildren(el("table", { class: "cells" }, head(), el("tbody", {}, chosen.map(row))));
    }
    const lost = (cell) => model.verdict(model.timeRatio(cell, model.subject, "best")) === "loss" ||
                           model.verdict(model.memoryRatio(cell, model.subject, "best")) === "loss";
    function key(cell) {
      if (["workload", "threads", "size"].includes(state.sort)) return cell[state.sort] || "";
      return state.metric.value(cell, state.sort);
    }
    function sort(chosen) {
      chosen.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null);
        const order = typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y)) : x - y;
        return state.down ? -order : order;
      });
    }
    function head() {
      const by = (name) => show({ sort: name, down: state.sort === name ? !state.down : !["workload", "threads", "size"].includes(name) });
      const column = (name) => el("th", { scope: "col", "aria-sort": state.sort !== name ? "none" : state.down ? "descending" : "ascending" },
        el("button", { type: "button", onclick: () => by(name) }, name, state.sort === name ? (state.down ? " ↓" : " ↑") : ""));
      return el("thead", {}, el("tr", {}, ["workload", "threads", "size", ...model.names].map(column)));
    }
    function row(cell) {
      return el("tr", {}, el("th", { scope: "row", title: cell.title }, cell.workload),
        el("td", { class: "number" }, cell.threads ? String(cell.threads) : ""),
        el("td", { class: "number" }, cell.size ? format.bytes(cell.size) : ""),
        model.names.map((name) => value(cell, name)));
    }
    function value(cell, name) {
      const { metric } = state;
      const result = cell.by.get(name);
      if (result?.error) return el("td", { class: "failed", title: result.error }, "failed");
      const own = metric.value(cell, name);
      if (metric.ratio) return ratioCell(own);
      const spread = metric.spread && result?.[metric.spread];
      const more = spread && spread.low != null ? `${metric.show(spread.low)} … ${metric.show(spread.high)}` : null;
      const known = model.names.map((each) => metric.value(cell, each)).filter((each) => each !== null);
      const best = own !== null && own === (metric.better === "high" ? Math.max(...known) : Math.min(...known));
      const disturbed = (result?.runs || []).filter((run) => run.disturbed).length;
      return el("td", { class: best ? "number best" : "number", title: more }, metric.show(own),
        more ? el("small", {}, more) : null, disturbed ? el("small", {}, `${disturbed} disturbed`) : null);
    }
  }

  // What failed, in full: a failure hidden in a tooltip is hidden.
  function failures(parent) {
    const failed = model.cells.flatMap((cell) => [...cell.by.values()].filter((result) => result.error));
    if (!failed.length) return;
    parent.append(el("h3", {}, "Failed"), el("ul", {}, failed.map((result) =>
      el("li", {}, `${result.allocator}, ${format.cell(result)}: ${result.error}`))));
  }

  // {malloc: {p50: 20}} → {"malloc p50": 20}; times are in nanoseconds, and how many were timed is of no interest here.
  function flat(line) {
    return Object.fromEntries(Object.entries(line).flatMap(([key, value]) => (value && typeof value === "object"
      ? Object.entries(value).filter(([part]) => !["unit", "count"].includes(part)).map(([part, own]) => [`${key} ${part}`, own])
      : [[key, value]])));
  }

  function shown(key, value) {
    if (typeof value !== "number") return value == null ? "–" : String(value);
    if (/ (p\d+|mean|median|max)$/.test(key)) return format.time(value);
    if (/bytes|^size$|resident|payload|cut_to/.test(key)) return format.bytes(value);
    if (/seconds$/.test(key)) return format.seconds(value);
    return /ratio/.test(key) ? format.ratio(value) : format.count(value);
  }

  // One table for each cell whose result is itself a table: line by line, the allocators below each other.
  function rows(parent) {
    let made = 0;
    for (const cell of model.cells) {
      const known = model.names.filter((name) => cell.by.get(name)?.rows?.length);
      if (!known.length) continue;
      made += 1;
      const of = new Map(known.map((name) => [name, cell.by.get(name).rows.map(flat)]));
      const [first, ...keys] = [...new Set([...of.values()].flat().flatMap(Object.keys))];
      const most = Math.max(...[...of.values()].map((lines) => lines.length));
      const body = Array.from({ length: most }, (_, i) => known.filter((name) => of.get(name)[i]).map((name, nth) => {
        const line = of.get(name)[i];
        const value = (key) => el("td", { class: typeof line[key] === "number" ? "number" : null }, shown(key, line[key]));
        return el("tr", { class: nth === 0 ? "first" : null }, value(first), el("th", { scope: "row" }, swatch(name), name), keys.map(value));
      })).flat();
      const head = [first, "allocator", ...keys].map((key) => el("th", { scope: "col" }, key.replaceAll("_", " ").replace("p999", "p99.9")));
      parent.append(el("details", { open: made === 1 }, el("summary", {}, `${cell.title || cell.workload} (${format.cell(cell)})`),
        el("div", { class: "scroll tall" }, el("table", { class: "rows" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)))));
      page.status.tables.push({ id: `rows:${cell.key}`, rows: body.length });
    }
    return made;
  }

  // Threads across, sizes down: what stands for a surface where there is no WebGL.
  function grid(parent, id, grid, title, value, show, style) {
    const body = [...grid.sizes].reverse().map((size) => el("tr", {}, el("th", { scope: "row" }, format.bytes(size)),
      grid.threads.map((threads) => {
        const own = value(grid.cell(threads, size));
        return own === null ? el("td", {}, "–") : el("td", { class: "number", style: style(own) }, show(own));
      })));
    parent.append(el("div", { class: "chart" }, el("h3", {}, title), el("div", { class: "scroll" }, el("table", { class: "grid", id },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "size \\ threads"), grid.threads.map((t) => el("th", { scope: "col" }, String(t))))),
      el("tbody", {}, body)))));
  }

  return { scores, cells, failures, rows, grid, swatch };
})();
