"use strict";
// Figures and pictures as files: CSV of tables and of all results, PNG of charts.
const files = (() => {
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const csv = (rows) => rows.map((row) => row.map((value) => quoted(value == null ? "" : String(value))).join(",")).join("\n") + "\n";
  const fileName = (title) => title.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-$/g, "");

  function download(blob, name) {
    const link = page.el("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const downloadText = (text, name) => download(new Blob([text], { type: "text/csv" }), name);

  // As it is shown; a cell across several columns is written into each of them.
  function rowsOf(table) {
    return [...table.rows].map((row) => [...row.cells].flatMap((cell) =>
      Array(cell.colSpan).fill(cell.innerText.replace(/\s+/g, " ").replace(/ ?[▲▼↓↑]/g, "").trim())));
  }
  const tableText = (made) => csv(rowsOf(made));

  // Every result that is shown, in the file's own units.
  function resultsText() {
    const median = (result, key) => result?.[key]?.median ?? null;
    const measures = ["ops_per_second", "cpu_ns_per_operation", "peak_bytes", "settled_bytes", "minor_faults", "system_seconds"];
    const head = ["workload", "title", "threads", "size", "allocator", ...measures, "time_vs_best", "memory_vs_best", "beside_other_load", "error"];
    const rows = model.cells.flatMap((cell) => model.names.filter((name) => cell.by.has(name)).map((name) => {
      const result = cell.by.get(name);
      return [cell.workload, cell.title, cell.threads, cell.size, name, ...measures.map((key) => median(result, key)),
        model.timeRatio(cell, name, "best"), model.memoryRatio(cell, name, "best"), model.disturbed(cell, name) ? "yes" : "no", result.error];
    }));
    return csv([head, ...rows]);
  }

  function spacesText() {
    const rows = model.data.results.flatMap((result) => ["malloc", "free"].filter((call) => result[call]).map((call) => {
      const { p50, p99, p999, max } = result[call].typical;
      return [result.scenario, result.size, result.blocks, result.contestant, call, p50, p99, p999, max];
    }));
    return csv([["scenario", "size", "blocks", "contestant", "call", "p50_ns", "p99_ns", "p999_ns", "max_ns"], ...rows]);
  }

  function image(svg) {
    const box = svg.getBoundingClientRect();
    const copy = svg.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.setAttribute("width", box.width);
    copy.setAttribute("height", box.height);
    const made = new Image();
    made.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    return made.decode().then(() => ({ made, width: box.width, height: box.height }));
  }

  // The chart with its title above it and, where it has lines, what they are.
  async function canvasOf(drawn, title, legend) {
    const picture = drawn instanceof HTMLCanvasElement ? { made: drawn, width: drawn.width / 2, height: drawn.height / 2 } : await image(drawn);
    const theme = palette.theme();
    const names = legend || [];
    const perRow = Math.max(1, Math.floor(picture.width / 130));
    const top = 30 + 18 * Math.ceil(names.length / perRow);
    const canvas = page.el("canvas", { width: 2 * picture.width + 24, height: 2 * (picture.height + top) });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.fillStyle = theme.page;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = theme.text;
    pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(title, 8, 20);
    pen.font = "12px system-ui, sans-serif";
    names.forEach(({ name, color }, i) => {
      const [x, y] = [8 + 130 * (i % perRow), 40 + 18 * Math.floor(i / perRow)];
      pen.fillStyle = color;
      pen.fillRect(x, y - 5, 16, 3);
      pen.fillStyle = theme.text;
      pen.fillText(name, x + 22, y);
    });
    pen.drawImage(picture.made, 6, top, picture.width, picture.height);
    return canvas;
  }

  async function png(drawn, title, legend) {
    const canvas = await canvasOf(drawn, title, legend);
    canvas.toBlob((blob) => download(blob, `${fileName(title)}.png`));
  }

  // For a test: both, without a download.
  async function tried(svg) {
    const text = model.cells ? resultsText() : spacesText();
    const canvas = svg ? await canvasOf(svg, "title", [{ name: "name", color: "#000000" }]) : null;
    return { csv: text.split("\n").length - 2, png: canvas ? canvas.toDataURL("image/png").length : 0 };
  }

  return {
    table: (made, id) => downloadText(tableText(made), `${fileName(id || "table")}.csv`),
    results: () => downloadText(model.cells ? resultsText() : spacesText(), "results.csv"),
    png, tried,
  };
})();
