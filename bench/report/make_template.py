#!/usr/bin/env python3
"""Makes the report's page of src/ and vendor/: one page that asks nothing of any network.

make_template.py [--output FILE]   writes it; the build does, to build/bench-report.html
"""

import argparse
import hashlib
import html
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SLOT = "{{DATA}}"


def vendored():
    """Scripts in the order they load, each checked against VERSIONS."""
    scripts = []
    for line in (HERE / "vendor/VERSIONS").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, version, file, digest = line.split()
        body = (HERE / "vendor" / file).read_bytes()
        if hashlib.sha256(body).hexdigest() != digest:
            sys.exit(f"vendor/{file} is not {name} {version}: its SHA-256 differs from vendor/VERSIONS")
        scripts.append(body.decode())
    return scripts


def script(text):
    """A script element; nothing in it may end the element early."""
    text = re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE)
    return "<script>\n" + text.replace("<!--", "<\\!--").strip() + "\n</script>"


def licences():
    files = sorted((HERE / "vendor").glob("NOTICE.*")) + sorted((HERE / "vendor").glob("LICENSE.*"))
    return "\n".join(
        f"<h4>{html.escape(file.name)}</h4>\n<pre>{html.escape(file.read_text().strip())}</pre>" for file in files
    )


def made():
    source = HERE / "src"
    own = ["format.js", "palette.js", "model.js", "page.js", "files.js", "tables.js", "controls.js", "verdict.js"]
    charts = [f"charts/{file.name}" for file in sorted((source / "charts").glob("*.js"))]
    parts = {
        "css": "<style>\n" + (source / "report.css").read_text().strip() + "\n</style>",
        "vendor": "\n".join(script(text) for text in vendored()),
        "licences": licences(),
        "scripts": "\n".join(script((source / file).read_text()) for file in [*own, *charts, "spaces.js", "report.js"]),
    }
    page = re.sub(r"<!-- insert (\w+) -->", lambda match: parts[match[1]], (source / "report.html").read_text())
    if page.count(SLOT) != 1:
        sys.exit(f"{SLOT} must stand in the template once, not {page.count(SLOT)} times")
    return page


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--output", type=pathlib.Path, default=HERE / "template.html")
    chosen = options.parse_args()
    chosen.output.write_text(made())


if __name__ == "__main__":
    main()
