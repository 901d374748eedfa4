"use strict";
// The bar at the top: which allocators are shown, light or dark, all results as a file.
const controls = (() => {
  const { el } = page;
  const hidden = new Set();
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem("hummock-theme");
  } catch { /* a page from a file may have no storage */ }

  const apply = () => { document.documentElement.dataset.theme = chosen || (system.matches ? "dark" : "light"); };
  apply();

  function choose(theme) {
    chosen = theme;
    try {
      if (theme) localStorage.setItem("hummock-theme", theme);
      else localStorage.removeItem("hummock-theme");
    } catch { /* as above */ }
    apply();
  }

  // `redraw` draws the page anew.
  function draw(redraw) {
    const again = () => {
      const { scrollX, scrollY } = window;
      redraw();
      window.scrollTo(scrollX, scrollY);
    };
    system.addEventListener("change", () => { apply(); again(); });
    const swatches = () => {
      const styles = palette.allocators(model.all);
      for (const swatch of bar.querySelectorAll(".swatch")) swatch.style.borderTopColor = styles.get(swatch.dataset.allocator).color;
    };
    const buttons = el("div", { class: "legend", role: "group", "aria-label": "Allocators shown" }, model.all.map((name) => {
      const own = name === model.subject;
      const button = el("button", { type: "button", "aria-pressed": "true", disabled: own,
        title: own ? "Everything is measured against the others; it stays" : `Show or hide ${name} everywhere`,
        onclick: () => {
          if (!hidden.delete(name)) hidden.add(name);
          button.setAttribute("aria-pressed", String(!hidden.has(name)));
          again();
        } }, tables.swatch(name), name);
      return button;
    }));
    const themes = el("select", { "aria-label": "Light or dark", onchange: () => { choose(themes.value); swatches(); again(); } },
      [["", "as the system"], ["light", "light"], ["dark", "dark"]].map(([value, text]) => el("option", { value, selected: value === (chosen || "") }, text)));
    const bar = el("div", { id: "bar" }, buttons, el("div", { class: "tools" }, themes,
      el("button", { type: "button", class: "save", onclick: files.results }, "CSV of all results")));
    document.querySelector("header").after(bar);
  }

  return { hidden, draw };
})();
