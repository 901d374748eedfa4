"use strict";
// Colours: one for each allocator throughout, hummock's always the same; scales that colour-blind people can read.
const palette = (() => {
  const accent = { light: "#c8500a", dark: "#ff8a3d" };
  // Families by name; a second of the same family takes the next shade and another dash.
  const families = [
    [/^space/, [["#b01e4f", "#ff86b0"], ["#a67c00", "#f0c040"], ["#3f6b1f", "#a5d06f"], ["#00838f", "#5fd3dd"]]],
    [/printed/, [["#8c95a1", "#8f99a5"], ["#c07a7a", "#c98f8f"], ["#7f9a5c", "#9db57c"]]],
    [/^(system|glibc|libc|musl)/, [["#6b7280", "#a3acba"], ["#2b2f36", "#e6e8eb"]]],
    [/jemalloc/, [["#0b66b0", "#5ab0f2"], ["#4f95cf", "#a9d5fa"]]],
    [/mimalloc/, [["#00755c", "#2cc9a0"], ["#3d9e86", "#8be3ca"], ["#0b4f40", "#12967a"]]],
    [/tcmalloc/, [["#8b3aa8", "#d08ce8"], ["#b67bc9", "#e6bdf4"]]],
    [/tbb/, [["#8a6d00", "#e0c341"]]],
    [/snmalloc/, [["#b03060", "#f285ab"]]],
    [/rpmalloc/, [["#2f3fa0", "#97a5ff"]]],
  ];
  const spare = [["#5d4037", "#c9a99c"], ["#37616b", "#8fc6d3"], ["#7a7a1f", "#cfcf6b"], ["#49306b", "#b79be0"]];
  const dashes = ["solid", "dashed", "dotted"];
  const symbols = ["circle", "triangle", "rect", "diamond", "emptyCircle", "emptyRect"];

  const dark = () => document.documentElement.dataset.theme === "dark";
  const theme = () =>
    dark()
      ? { text: "#e6e8eb", faint: "#9aa3ad", line: "#3a4149", page: "#14171a", panel: "#1b1f23" }
      : { text: "#1d2127", faint: "#5b6470", line: "#d5d9de", page: "#ffffff", panel: "#f7f8f9" };

  // name → {color, dash, symbol, width} for these allocators in their order.
  function allocators(names) {
    const used = new Map();
    const styles = new Map();
    let strays = 0;
    names.forEach((name, index) => {
      const shade = dark() ? 1 : 0;
      const symbol = symbols[index % symbols.length];
      if (name === "hummock") {
        styles.set(name, { color: dark() ? accent.dark : accent.light, dash: "solid", symbol: "circle", width: 3 });
        return;
      }
      const family = families.find(([pattern]) => pattern.test(name.toLowerCase()));
      const colors = family ? family[1] : [spare[strays++ % spare.length]];
      const nth = family ? used.get(family) || 0 : 0;
      used.set(family, nth + 1);
      const color = colors[nth % colors.length][shade];
      styles.set(name, { color, dash: dashes[nth % dashes.length], symbol, width: 1.6 });
    });
    return styles;
  }

  const mix = (a, b, share) => a.map((part, i) => Math.round(part + (b[i] - part) * share));
  const css = (rgb) => `rgb(${rgb.join(",")})`;
  function along(stops, position) {
    const at = Math.min(Math.max(position, 0), 1) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    return mix(stops[low], stops[low + 1], at - low);
  }

  // Of a speed: orange below 1 is slower, blue above it is faster; grey only where it is even, so that a small loss is
  // seen as one. Blue and orange are told apart by colour-blind eyes, too.
  const below = [[253, 224, 178], [246, 184, 98], [222, 126, 22], [136, 64, 2]];
  const above = [[190, 219, 241], [122, 180, 224], [44, 122, 191], [6, 60, 122]];
  const even = [240, 240, 238];
  // Dark blue over green to yellow with an even rise in lightness.
  const sequential = [[24, 30, 92], [36, 80, 138], [30, 128, 142], [62, 170, 118], [150, 205, 72], [253, 231, 60]];

  // Dark or white, whichever can be told better from the colour: 0.2 of white's luminance is where both are alike.
  const linear = (part) => (part <= 10 ? part / 3295 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const ink = ([r, g, b]) => (0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.2 ? "#14171a" : "#ffffff");
  // The ends of the scale are 1/limit and limit.
  function ratioColor(ratio, limit) {
    if (Math.abs(ratio - 1) <= 0.02) return even;
    return along(ratio < 1 ? below : above, Math.abs(Math.log(ratio) / Math.log(limit)) ** 0.7);
  }
  function ratioStyle(ratio, limit) {
    const rgb = ratioColor(ratio, limit);
    return { background: css(rgb), color: ink(rgb) };
  }
  // The whole scale in steps fine enough for the band that is even.
  function diverging(limit) {
    const steps = 400;
    return Array.from({ length: steps + 1 }, (_, i) => css(ratioColor(limit ** ((2 * i) / steps - 1), limit)));
  }
  function valueStyle(share) {
    const rgb = along(sequential, share);
    return { background: css(rgb), color: ink(rgb) };
  }

  return { theme, allocators, ratioStyle, valueStyle, diverging, sequential: sequential.map(css) };
})();
