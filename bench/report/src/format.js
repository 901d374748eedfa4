"use strict";
// Numbers as people read them.
const format = (() => {
  const significant = (value, digits) => Number(value.toPrecision(digits));

  // 12,300,000 → "12.3 M"
  function count(value) {
    if (value == null || !Number.isFinite(value)) return "–";
    for (const [unit, suffix] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
      if (Math.abs(value) >= unit * 0.99995) return significant(value / unit, 3) + suffix;
    }
    return String(significant(value, 3));
  }

  function bytes(value) {
    if (value == null || !Number.isFinite(value)) return "–";
    for (const [unit, suffix] of [[2 ** 40, " TiB"], [2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"]]) {
      if (Math.abs(value) >= unit) return significant(value / unit, 3) + suffix;
    }
    return significant(value, 3) + " B";
  }

  function time(nanoseconds) {
    if (nanoseconds == null || !Number.isFinite(nanoseconds)) return "–";
    for (const [unit, suffix] of [[1e9, " s"], [1e6, " ms"], [1e3, " µs"]]) {
      if (nanoseconds >= unit * 0.9995) return significant(nanoseconds / unit, 3) + suffix;
    }
    return significant(nanoseconds, 3) + " ns";
  }

  // Two digits after the point near 1, where they matter.
  function ratio(value) {
    if (value == null || !Number.isFinite(value)) return "–";
    if (value >= 1000) return count(value);
    if (value >= 100) return value.toFixed(0);
    return value >= 10 ? value.toFixed(1) : value >= 0.01 ? value.toFixed(2) : value.toExponential(0);
  }

  const seconds = (value) => (value == null ? "–" : time(value * 1e9));
  const threads = (value) => (value === 1 ? "1 thread" : `${value} threads`);

  // "pair · 2 threads · 64 B"; parts that a workload has not are left out.
  function cell(result) {
    const parts = [result.workload];
    if (result.threads) parts.push(threads(result.threads));
    if (result.size) parts.push(bytes(result.size));
    return parts.join(" · ");
  }

  return { count, bytes, time, ratio, seconds, threads, cell };
})();
