"use strict";
// Tables: the scores, every cell, and the rows of workloads that are tables themselves.
const tables = (() => {
  const { el } = page;

  const swatch = (name) => {
    const style = palette.allocators(model.all).get(name);
    return el("span", { class: "swatch", "data-allocator": name, style: { borderTop: `3px ${style.dash} ${style.color}` } });
  };

  // †: it rests on a run beside other load; †3: that many of its cells do.
  const dagger = (disturbed) => (disturbed
    ? el("span", { class: "beside", title: typeof disturbed === "number" ? `${disturbed} of its cells were measured beside other load` : "measured beside other load" },
      `\u202f†${typeof disturbed === "number" ? disturbed : ""}`)
    : null);

  function ratioCell(value, disturbed) {
    const said = model.verdict(value);
    return el("td", { class: said ? `number ${said}` : "number" }, format.ratio(value), dagger(disturbed),
      said === "loss" ? el("span", { class: "mark", "aria-label": "worse" }, " ▲") : null,
      said === "win" ? el("span", { class: "mark", "aria-label": "better" }, " ▼") : null);
  }

  // A worst cell: how far off, and where.
  function worstCell(worst) {
    if (!worst) return el("td", { class: "number" }, "–");
    const made = ratioCell(worst.ratio, worst.disturbed);
    made.append(el("small", { class: "where" }, " ", format.cell(worst.cell).replace(/(\d) (?=[a-zA-Z])/g, "$1\u00a0")));
    return made;
  }

  function scores(parent) {
    const against = [model.data.baseline, "best"];
    const kinds = ["time", "cpu", "memory"];
    const means = ["time", "CPU time", "memory"];
    const table = el("table", { class: "scores" });
    table.append(el("thead", {},
      el("tr", {}, el("th", { rowspan: 2, scope: "col" }, "allocator"), el("th", { colspan: 3 }, `against ${model.data.baseline}`),
        el("th", { colspan: 3 }, "against the best other"), el("th", { colspan: 4 }, "cells, time against the best other"),
        el("th", { colspan: 2 }, "worst cell against the best other")),
      el("tr", {}, [...means, ...means, "wins", "even", "losses", "failed", "time", "memory"].map((name) => el("th", { scope: "col" }, name)))));
    page.status.scores = {};
    table.append(el("tbody", {}, model.names.map((name) => {
      const line = model.score(name);
      const all = against.flatMap((other) => kinds.map((kind) => model.mean(model.cells, name, other, kind)));
      page.status.scores[name] = { ...line, means: all.map((mean) => mean.value) };
      return el("tr", { class: name === model.subject ? "subject" : null }, el("th", { scope: "row" }, swatch(name), name),
        all.map((mean) => ratioCell(mean.value, mean.disturbed)),
        ["win", "even", "loss", "failed"].map((key) => el("td", { class: "number" }, String(line[key]))),
        ["time", "memory"].map((kind) => worstCell(model.worst(model.cells, name, "best", kind))));
    })));
    page.table(parent, "scores", table, { rows: model.names.length });
  }

  // What the table of cells can show; `better` says which end wins.
  function metrics() {
    const median = (key) => (result) => result?.[key]?.median ?? null;
    const of = (read) => (cell, name) => read(cell.by.get(name));
    const ratio = (kind, against, label) => ({ label, against, kind, ratio: true, value: (c, n) => model.ratio(c, n, against, kind) });
    return [
      ratio("time", "best", "time against the best other"),
      ratio("time", model.data.baseline, `time against ${model.data.baseline}`),
      { label: "operations per second", show: format.count, better: "high", value: of(model.ops), spread: "ops_per_second" },
      ratio("cpu", "best", "CPU time against the best other"),
      { label: "CPU time of an operation", show: format.time, better: "low", value: of(model.cpu), spread: "cpu_ns_per_operation" },
      ratio("memory", "best", "peak memory against the best other"),
      { label: "peak resident memory", show: format.bytes, better: "low", value: of(model.memory), spread: "peak_bytes" },
      { label: "resident memory after all is freed", show: format.bytes, better: "low", value: of(median("settled_bytes")), spread: "settled_bytes" },
      { label: "system time of a run", show: format.seconds, better: "low", value: of(median("system_seconds")), spread: "system_seconds" },
      ratio("system", "best", "system time of an operation against the best other"),
      ratio("faults", "best", "minor page faults of an operation against the best other"),
      { label: "minor page faults", show: format.count, better: "low", value: of(median("minor_faults")), spread: "minor_faults" },
      { label: "latency p99", show: format.time, better: "low", value: of((r) => r?.latency?.p99 ?? null) },
    ];
  }

  const kept = { label: "", sort: null, down: true, text: "", losses: false };  // as the reader left it

  function cells(parent) {
    const all = metrics().filter((metric) => model.cells.some((c) => model.names.some((n) => metric.value(c, n) !== null)));
    const state = Object.assign(kept, { metric: all.find((metric) => metric.label === kept.label) || all[0] });
    const table = el("table", { class: "cells" });
    const choice = el("select", { onchange: () => show({ metric: all[choice.selectedIndex], label: all[choice.selectedIndex].label, sort: null }) },
      all.map((metric) => el("option", { selected: metric === state.metric }, metric.label)));
    const filter = el("input", { type: "search", placeholder: "workload", size: 12, value: state.text, oninput: () => show({ text: filter.value.toLowerCase() }) });
    const losses = el("input", { type: "checkbox", checked: state.losses, onchange: () => show({ losses: losses.checked }) });
    const count = el("span", { class: "faint" });
    parent.append(el("div", { class: "controls" }, el("label", {}, "Show ", choice), el("label", {}, "only ", filter),
      el("label", {}, losses, ` only where ${model.subject} loses`), count));
    page.table(parent, "cells", table, { rows: model.cells.length, tall: true });
    show({});

    function show(change) {
      Object.assign(state, change);
      const chosen = model.cells.filter((cell) =>
        `${cell.workload} ${cell.title || ""} ${cell.group || ""}`.toLowerCase().includes(state.text) &&
        (!state.losses || lost(cell)));
      if (state.sort) sort(chosen);
      count.textContent = `${chosen.length} of ${model.cells.length} cells`;
      table.replaceChildren(head(), el("tbody", {}, chosen.map((cell, i) => row(cell, chosen[i - 1]))));
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
    function row(cell, before) {
      const again = before?.workload === cell.workload;  // the title stands at the first of a workload's cells
      return el("tr", { class: again ? "again" : null },
        el("th", { scope: "row", title: model.texts.get(cell.workload)?.description || cell.title }, cell.workload,
          again || !cell.title || cell.title === cell.workload ? null : el("small", { class: "title" }, " ", cell.title)),
        el("td", { class: "number" }, cell.threads ? String(cell.threads) : ""),
        el("td", { class: "number" }, cell.size ? format.bytes(cell.size) : ""),
        model.names.map((name) => value(cell, name)));
    }
    function value(cell, name) {
      const { metric } = state;
      const result = cell.by.get(name);
      if (result?.error) return el("td", { class: "failed", title: result.error }, "failed");
      const own = metric.value(cell, name);
      if (metric.ratio) return ratioCell(own, own !== null && model.ratioDisturbed(cell, name, metric.against, metric.kind));
      const spread = metric.spread && result?.[metric.spread];
      const more = spread && spread.low != null ? `${metric.show(spread.low)} … ${metric.show(spread.high)}` : null;
      const known = model.names.map((each) => metric.value(cell, each)).filter((each) => each !== null);
      const best = own !== null && own === (metric.better === "high" ? Math.max(...known) : Math.min(...known));
      return el("td", { class: best ? "number best" : "number", title: more }, metric.show(own), dagger(model.disturbed(cell, name)),
        more ? el("small", {}, " ", more) : null);
    }
  }

  // What each workload does.
  function workloads(parent) {
    const known = [...model.workloads().values()].map(([cell]) => ({ ...cell, ...model.texts.get(cell.workload) }));
    if (!known.some((each) => each.description)) parent.append(el("p", { class: "intro" }, "This file is of an earlier version and has the titles alone."));
    page.table(parent, "workload-texts", el("table", { class: "texts" },
      el("thead", {}, el("tr", {}, ["workload", "group", "what it does"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, known.map((each) => el("tr", {}, el("th", { scope: "row" }, each.workload), el("td", {}, each.group || ""),
        el("td", {}, [...new Set([each.title, each.description])].filter(Boolean).join(". ")))))), { rows: known.length });
  }

  // What failed, in full: a failure hidden in a tooltip is hidden.
  function failures(parent) {
    const failed = model.cells.flatMap((cell) => model.names.map((name) => cell.by.get(name)).filter((result) => result?.error));
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
      page.table(page.fold(parent, `${cell.title || cell.workload} (${format.cell(cell)})`, made === 1), `rows:${cell.key}`,
        el("table", { class: "rows" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)), { rows: body.length, tall: true });
    }
    return made;
  }

  // Threads across, sizes down: what stands for a surface where there is no WebGL.
  function grid(parent, id, grid, title, value, show, style, beside) {
    const body = [...grid.sizes].reverse().map((size) => el("tr", {}, el("th", { scope: "row" }, format.bytes(size)),
      grid.threads.map((threads) => {
        const own = value(grid.cell(threads, size));
        return own === null ? el("td", {}, "–")
          : el("td", { class: "number", style: style(own) }, show(own), dagger(beside(grid.cell(threads, size))));
      })));
    const box = el("div", { class: "chart" }, el("h3", {}, title));
    parent.append(box);
    page.table(box, id, el("table", { class: "grid" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "size \\ threads"), grid.threads.map((t) => el("th", { scope: "col" }, String(t))))),
      el("tbody", {}, body)));
  }

  return { scores, cells, failures, workloads, rows, grid, swatch };
})();
