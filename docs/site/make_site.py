#!/usr/bin/env python3
"""The pages of the site, from the documents, the manual pages and the public headers.

make_site.py pages SOURCE OUT    writes Markdown and what it shows to OUT, for mkdocs
make_site.py check SITE          what leads nowhere in a built site, or would be fetched from elsewhere; status 1
"""

import html.parser
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import urllib.parse

import api

# Documents that stand elsewhere than in docs/, and their pages.
ELSEWHERE = {
    "README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md",
    "bindings/pascal/README.md": "bindings/pascal.md", "bindings/rust/README.md": "bindings/rust.md",
    "bindings/python/README.md": "bindings/python.md",
}


def page_of(path):
    """The page on which a file of the repository is, or None."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    folder, _, name = path.rpartition("/")
    if folder == "docs" and name.endswith(".md"):
        return name
    return f"api/{name}.md" if folder == "include/hummock" else f"man/{name}.md" if folder == "man" else None


def relative(target, page):
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def linked(text, path, page, source, out):
    """The document's text, its links made to lead to pages; other files they name are copied."""
    def led(match):
        text, (target, mark, anchor) = match[1], match[2].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        aim = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        place = page_of(aim)
        if place is None and (source / aim).is_file():
            place = aim if aim.endswith((".svg", ".png")) else f"files/{aim}.txt"
            (out / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / aim, out / place)
        elif place is None:
            return text  # a folder: its name alone
        return f"[{text}]({relative(place, page)}{mark}{anchor})"

    parts = re.split(r"(```.*?```)", text, flags=re.S)
    return "".join(part if part.startswith("```") else re.sub(r"\[([^][]*)\]\(([^()\s]+)\)", led, part) for part in parts)


def manual(file):
    """A manual page as HTML inside a page."""
    done = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", str(file)], capture_output=True, text=True, check=True)
    body = re.sub(r'<table class="(?:head|foot)">.*?</table>', "", done.stdout, flags=re.S)
    title = file.name.replace(".1", "(1)").replace(".3", "(3)").replace(".7", "(7)")
    return f'# {title}\n\n<div class="man" markdown="0">\n{body}\n</div>\n'


def write_pages(source, out):
    shutil.rmtree(out, ignore_errors=True)
    documents = {**ELSEWHERE, **{f"docs/{file.name}": file.name for file in sorted((source / "docs").glob("*.md"))}}
    pages = {page: linked((source / path).read_text(encoding="utf-8"), path, page, source, out) for path, page in documents.items()}
    for file in sorted((source / "man").glob("*.[137]")):
        pages[f"man/{file.name}.md"] = manual(file)
    for file in sorted((source / "include/hummock").glob("*.h*")):
        if file.name != "proxy_inline.h":
            pages[f"api/{file.name}.md"] = api.page_of(file.name, file.read_text(encoding="utf-8"))[0]
    for page, text in pages.items():
        (out / page).parent.mkdir(parents=True, exist_ok=True)
        (out / page).write_text(text, encoding="utf-8")
    (out / "assets").mkdir()
    for name in ("site.css", "mark.svg"):
        shutil.copyfile(pathlib.Path(__file__).parent / name, out / "assets" / name)


class Page(html.parser.HTMLParser):
    """What a page links to, what it loads, and the places in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.places = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        own = dict(attrs)
        self.places.update(own[name] for name in ("id", "name") if own.get(name))
        if tag == "a" and own.get("href"):
            self.links.append(own["href"])
        elif tag == "link" and own.get("rel") not in ("canonical", "prev", "next") and own.get("href"):
            self.loads.append(own["href"])
        elif own.get("src"):
            self.loads.append(own["src"])


def check(site):
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    for file, page in pages.items():
        if file.name == "404.html":
            continue
        here = file.relative_to(site)
        for address in page.links + page.loads:
            if re.match(r"[a-z]+:|//", address):
                if address in page.loads and not address.startswith("data:"):
                    yield f"{here} loads {address}"
                continue
            target, _, anchor = urllib.parse.unquote(address).partition("#")
            aim = (file.parent / target).resolve() if target else file
            if aim.is_dir():
                aim /= "index.html"
            if not aim.is_file():
                yield f"{here}: {address} leads nowhere"
            elif anchor and aim in pages and anchor not in pages[aim].places and anchor != "__top":
                yield f"{here}: {address}: no such place"
    for file in sorted(site.rglob("*.css")):
        for address in re.findall(r"url\(\s*[\"']?((?:https?:)?//[^)\"']*)|@import[^;]*", file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)} loads {address}"
    if len(pages) < 20:
        yield f"only {len(pages)} pages"


def main():
    if sys.argv[1] == "pages":
        return write_pages(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    wrong = list(check(pathlib.Path(sys.argv[2]).resolve()))
    print("\n".join(wrong))
    return sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
