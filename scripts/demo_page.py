"""The page of `make demo`: the memory curve and the figures as one HTML file that loads nothing."""

import html

# Blue and orange can be told apart by everyone; the others are shades of grey.
OURS, SYSTEM = "#2166ac", "#d6604d"
DARK = {OURS: "#6fb1ee", "#00755c": "#3fb594", "#8b3aa8": "#c58be0", "#49306b": "#a58fd6", "#a67c00": "#d2ab3a"}  # on a dark page
PEERS = ["#00755c", "#8b3aa8", "#a67c00", "#49306b"]

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6676; --line: #d8dde4; --ground: #fff; --better: #2166ac;
  --worse: #b2482f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa6b6; --line: #38414d; --ground: #14181d;
  --better: #6fb1ee; --worse: #f09a7f; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2.2rem }
svg { width: 100%; height: auto } svg text { font: 13px system-ui, sans-serif; fill: var(--soft) }
@media (max-width: 600px) { svg text { font-size: 24px } }
.grid { stroke: var(--line) } .scroll { overflow-x: auto }
table { border-collapse: collapse } th, td { padding: .2em 1.2em .2em 0; text-align: left }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums } tr > :last-child { white-space: nowrap }
.better { color: var(--better) } .worse { color: var(--worse) } .warn { border-left: 4px solid var(--worse); padding-left: .8em }
.key span { margin-right: 1.4em; white-space: nowrap } .key i { display: inline-block; width: 1.2em; height: .35em;
  vertical-align: middle; margin-right: .4em }
"""


def colours_of(samples):
    """A colour for each allocator, in their order."""
    peers = iter(PEERS)
    return [{"Hummock": OURS, "system": SYSTEM}.get(name) or next(peers, "#888") for name in samples]


WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 900, 350, 62, 30, 32


def style():
    dark = "".join(f'[stroke="{light}"] {{ stroke: {there} }} [style="background:{light}"] {{ background: {there} !important }}'
                   for light, there in DARK.items())
    return STYLE + f"@media (prefers-color-scheme: dark) {{ {dark} }}\n"


def curve(samples):
    """Resident MiB over seconds, one line for each allocator."""
    width, height, left, bottom, top = WIDTH, HEIGHT, LEFT, BOTTOM, TOP
    most_x = max(x for points in samples.values() for x, _ in points)
    most_y = max(max(y for points in samples.values() for _, y in points), 1) * 1.05

    def place(x, y):
        return left + (width - left - 12) * x / most_x, top + (height - bottom - top) * (1 - y / most_y)

    out = [f'<svg viewBox="0 0 {width} {height}" role="img"><title>Resident memory over time</title>']
    out.append(f'<text x="{left - 6}" y="{top - 10}" text-anchor="end">MiB</text>')
    step = 100 if most_y < 700 else 200
    for level in range(0, int(most_y) + 1, step):
        _, y = place(0, level)
        out.append(f'<line class="grid" x1="{left}" x2="{width - 12}" y1="{y:.1f}" y2="{y:.1f}"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{level}</text>')
    for second in range(1, int(most_x) + 1):
        x, y = place(second, 0)
        out.append(f'<text x="{x:.1f}" y="{y + 20:.1f}" text-anchor="middle">{second} s</text>')
    key = []
    for (name, points), colour in zip(samples.items(), colours_of(samples)):
        thick = 3.5 if name == "Hummock" else 2
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{thick}"/>')
        key.append(f'<span><i style="background:{colour}"></i>{html.escape(name)}: {points[-1][1]:,.0f} MiB at the end</span>')
    return "\n".join(out) + "</svg>\n<p class=\"key\">" + "".join(key) + "</p>"


def picture(samples):
    """The same as a file of its own, for documents: the names stand beside the ends of the lines."""
    drawing = curve(samples).partition("</svg>")[0].replace(
        f'viewBox="0 0 {WIDTH} {HEIGHT}"', f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 190} {HEIGHT}"')
    rules = "<style>text { font: 17px system-ui, sans-serif; fill: #6b7685 } .grid { stroke: #8884 }</style>"
    most = max(max(y for _, y in points) for points in samples.values()) * 1.05
    names, lowest = [], 0.0
    colours = dict(zip(samples, colours_of(samples)))
    for name, points in sorted(samples.items(), key=lambda item: -item[1][-1][1]):
        lowest = max(lowest + 20, TOP + (HEIGHT - BOTTOM - TOP) * (1 - points[-1][1] / most) + 4)  # none on another
        names.append(f'<text x="896" y="{lowest:.0f}" style="fill: {colours[name]}">{html.escape(name)} {points[-1][1]:,.0f} MiB</text>')
    return drawing.replace("<title>", rules + "<title>", 1) + "\n".join(names) + "</svg>\n"


def table(rows):
    lines = ['<div class="scroll"><table><tr><th></th><th class="n">system</th><th class="n">Hummock</th><th></th></tr>']
    for row in rows:
        kind = {1: "better", -1: "worse"}.get(row["verdict"], "")
        lines.append(f'<tr><td>{html.escape(row["label"])}</td><td class="n">{row["system"]}</td>'
                     f'<td class="n">{row["hummock"]}</td><td class="{kind}">{html.escape(row["words"])}</td></tr>')
    return "\n".join(lines) + "</table></div>"


def page(warning, samples, sections):
    """`sections`: (title, rows, sentence) of each load."""
    parts = ['<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
             f"<title>Hummock, a demonstration</title><style>{style()}</style></head><body>",
             "<h1>Hummock beside this system's malloc</h1>"]
    if warning:
        parts.append(f'<p class="warn">{html.escape(warning)}</p>')
    for title, rows, sentence in sections:
        parts.append(f"<h2>{html.escape(title)}</h2>")
        parts.append(curve(samples) if rows is None else table(rows))
        parts.append(f"<p>{html.escape(sentence)}</p>")
    return "\n".join(parts) + "</body></html>\n"
