"use strict";
// What the figures say, in words.
const verdict = (() => {
  const { el } = page;
  const places = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"];
  const place = (i) => places[i] || `${i + 1}th`;
  const isServer = (cell) => ["server", "cross-thread", "scaling", "threads"].includes(cell.group);
  const questions = [
    ["For servers and threads that exchange blocks", isServer, "time"],
    ["For low memory", () => true, "memory"],
    ["With one thread", (cell) => cell.threads === 1, "time"],
    ["With several threads", (cell) => cell.threads > 1, "time"],
    ["For real programs", (cell) => ["programs", "judge-programs"].includes(cell.group), "time"],
  ];
  const nouns = { time: "time", memory: "peak memory" };

  // "system" says little; the file knows which libc it is.
  const label = (name) => (name === "system" && model.data.allocators?.find((each) => each.name === name)?.version) || name;

  // All allocators in these cells, the best first. Only cells that all of them ended are counted.
  function ranking(chosen, kind) {
    const ended = chosen.filter((cell) => model.names.every((name) => model.cost(cell, name, kind) !== null));
    const means = model.names.map((name) => ({ name, mean: model.geomean(ended.map((cell) => model.cost(cell, name, kind))) }));
    return { cells: ended, list: means.filter((each) => each.mean !== null).sort((a, b) => a.mean - b.mean) };
  }

  function sentence(kind, { cells, list }) {
    const at = list.findIndex((each) => each.name === model.subject);
    const base = list.find((each) => each.name === model.data.baseline && each.name !== model.subject);
    const rival = list[at === 0 ? 1 : 0];  // the next behind it, or the one in front
    const times = (value) => `${format.ratio(value)} ${value < 1 ? "of" : "times"}`;
    const parts = [...new Set([base, rival])].filter(Boolean).map((other) => times(list[at].mean / other.mean) + ` ${label(other.name)}'s` +
      (other === base ? ` ${nouns[kind]}` : "") + (other === rival ? `, which is ${at === 0 ? "second" : "first"}` : ""));
    const beside = cells.filter((cell) => model.names.some((name) => model.disturbed(cell, name))).length;
    const rank = place(at);
    return `${rank[0].toUpperCase()}${rank.slice(1)} of ${list.length}: it takes ${parts.join("; ")}. ` +
           `(${cells.length} ${cells.length === 1 ? "cell" : "cells"}${beside ? `; ${beside} beside other load †` : ""})`;
  }

  // Workloads in which the best other is clearly ahead, the worst first.
  function losses(kind, most) {
    const lines = [...model.workloads()].map(([name, cells]) => {
      const mean = model.mean(cells, model.subject, "best", kind);
      const worst = model.worst(cells, model.subject, "best", kind);
      return { name, title: cells[0].title || name, mean, other: worst && model.reference(worst.cell, model.subject, "best", kind) };
    }).filter((line) => line.mean.value > 1.1).sort((a, b) => b.mean.value - a.mean.value);
    return lines.slice(0, most).map((line) =>
      `${line.title} (${format.ratio(line.mean.value)}${line.mean.disturbed ? " †" : ""}, ${label(line.other)})`)
      .concat(lines.length > most ? [`and ${lines.length - most} more`] : []);
  }

  function draw(parent) {
    if (!model.peers.length) return;
    const list = el("dl", { class: "verdicts" });
    const say = (head, text) => list.append(el("dt", {}, head), el("dd", {}, text));
    for (const [head, wanted, kind] of questions) {
      const ranked = ranking(model.cells.filter(wanted), kind);
      if (ranked.list.length > 1 && ranked.list.some((each) => each.name === model.subject)) say(head, sentence(kind, ranked));
    }
    for (const kind of ["time", "memory"]) {
      const worst = losses(kind, 4);
      say(`Where it loses in ${nouns[kind]}`, worst.length ? `To the best other by more than a tenth: ${worst.join("; ")}.` : "Nowhere by more than a tenth.");
    }
    parent.replaceChildren(list);
    page.status.verdict = [...list.querySelectorAll("dd")].map((each) => each.textContent);
  }

  return { draw };
})();
