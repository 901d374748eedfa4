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

  const where = (worst) => (worst ? [ratioCell(worst.ratio), el("td", { class: "where" }, format.cell(worst))]
                                  : [el("td", { class: "number" }, "–"), el("td", {}, "–")]);

  function scores(parent) {
    const table = el("table", { class: "scores" });
    const baseline = model.data.baseline;
    table.append(el("thead", {},
      el("tr", {}, el("th", { rowspan: 2, scope: "col" }, "allocator"), el("th", { colspan: 2 }, `against ${baseline}`),
        el("th", { colspan: 2 }, "against the best other"), el("th", { colspan: 4 }, "cells against the best other"),
        el("th", { colspan: 4 }, "worst cells against the best other")),
      el("tr", {}, ["time", "memory", "time", "memory", "wins", "even", "losses", "failed", "time", "where", "memory", "where"]
        .map((name) => el("th", { scope: "col" }, name)))));
    const body = el("tbody", {});
    for (const name of model.names) {
      const line = model.score(name);
      const number = (value) => el("td", { class: "number" }, String(value));
      body.append(el("tr", { class: name === model.subject ? "subject" : null },
        el("th", { scope: "row" }, swatch(name), name),
        ratioCell(line.baseline.time), ratioCell(line.baseline.memory), ratioCell(line.best.time), ratioCell(line.best.memory),
        number(line.win), number(line.even), number(line.loss), number(line.failed),
        ...where(line.best.worstTime), ...where(line.best.worstMemory)));
    }
    table.append(body);
    parent.append(el("div", { class: "scroll" }, table));
    page.status.tables.push({ id: "scores", rows: model.names.length });
  }

  // What the table of cells can show; `better` says which end wins.
  function metrics() {
    const median = (key) => (result) => result?.[key]?.median ?? null;
    const run = (key) => (result) => {
      const all = (result?.runs || []).map((each) => each[key]).filter(Number.isFinite).sort((a, b) => a - b);
      return all.length ? all[Math.floor(all.length / 2)] : null;
    };
    const of = (read) => (cell, name) => read(cell.by.get(name));
    return [
      { id: "best", label: "time against the best other", ratio: true, value: (c, n) => model.timeRatio(c, n, "best") },
      { id: "baseline", label: `time against ${model.data.baseline}`, ratio: true, value: (c, n) => model.timeRatio(c, n, model.data.baseline) },
      { id: "ops", label: "operations per second", show: format.count, better: "high", value: of(model.ops), spread: "ops_per_second" },
      { id: "cpu", label: "CPU seconds per million operations", show: (v) => format.seconds(v), better: "low", value: of(cpuPerMillion) },
      { id: "memory-best", label: "peak memory against the best other", ratio: true, value: (c, n) => model.memoryRatio(c, n, "best") },
      { id: "memory", label: "peak resident memory", show: format.bytes, better: "low", value: of(model.memory), spread: "peak_bytes" },
      { id: "settled", label: "resident memory 1 s after all is freed", show: format.bytes, better: "low", value: of(median("settled_bytes")), spread: "settled_bytes" },
      { id: "faults", label: "minor page faults (median run)", show: format.count, better: "low", value: of(run("minor_faults")) },
      { id: "p99", label: "latency p99", show: format.time, better: "low", value: of((r) => r?.latency?.p99 ?? null) },
    ];
  }

  function cpuPerMillion(result) {
    const each = (result?.runs || []).filter((run) => run.operations > 0).map((run) => (run.cpu_seconds / run.operations) * 1e6);
    each.sort((a, b) => a - b);
    return each.length ? each[Math.floor(each.length / 2)] : null;
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

  function shown(key, value) {
    if (typeof value !== "number") return value == null ? "–" : String(value);
    if (/(_ns|^p\d+|mean|median|max)$/.test(key) && !/bytes/.test(key)) return format.time(value);
    if (/bytes|^size$|resident/.test(key)) return format.bytes(value);
    if (/seconds/.test(key)) return format.seconds(value);
    return /ratio/.test(key) ? format.ratio(value) : format.count(value);
  }

  // One table for each cell whose result is itself a table.
  function rows(parent) {
    let made = 0;
    for (const cell of model.cells) {
      const known = model.names.map((name) => cell.by.get(name)).filter((result) => result?.rows?.length);
      if (!known.length) continue;
      made += 1;
      const keys = [...new Set(known.flatMap((result) => result.rows.flatMap(Object.keys)))];
      const body = known.flatMap((result) => result.rows.map((line) => el("tr", {},
        el("th", { scope: "row" }, swatch(result.allocator), result.allocator),
        keys.map((key) => el("td", { class: typeof line[key] === "number" ? "number" : null }, shown(key, line[key]))))));
      parent.append(el("details", { open: made === 1 }, el("summary", {}, `${cell.title || cell.workload} (${format.cell(cell)})`),
        el("div", { class: "scroll tall" }, el("table", {},
          el("thead", {}, el("tr", {}, ["allocator", ...keys].map((key) => el("th", { scope: "col" }, key.replaceAll("_", " "))))),
          el("tbody", {}, body)))));
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
