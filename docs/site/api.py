"""A page of Markdown from one public header: each comment, and the declarations it stands before."""

import re
import textwrap

SECTION = re.compile(r"/\* ---- (.*?) -+ \*/")
SKIPPED = re.compile(r"#\s*(ifdef|ifndef|if|else|elif|endif|undef|include|pragma)\b|extern \"C\"|}$|namespace \w+ {$|}  // namespace")
MACROS = re.compile(r"\b(?:HUMMOCK_EXPORT|HUMMOCK_NOEXCEPT|HUMMOCK_(?:MALLOC|ALLOC_SIZE|ALLOC_ALIGN|NODISCARD|RETURNS_NONNULL)(?:\([^()]*\))?) ?")


def text_of(comment):
    """The words of a comment. Its lists stay; an indented table of two columns becomes one."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in re.sub(r"^/\*|\*/$", "", comment.strip()).split("\n")]
    out, table = [], False
    for line in [*(line.rstrip() for line in lines), ""]:
        columns = re.match(r"  +(\S.*?\S) {2,}(\S.*)", line)
        if columns:
            out += [*([] if table else [""]), f"- `{columns[1]}`: {columns[2]}"]
            table = True
            continue
        if table and line.startswith("      "):
            out[-1] += " " + line.strip()
            continue
        if table:
            out.append("")
        table = False
        item = re.match(r" *- (.*)", line)
        if item and not (out and out[-1].startswith(("- ", "  "))):
            out.append("")
        plain = "- " + item[1] if item else ("  " if out and out[-1].startswith(("- ", "  ")) and line.startswith("  ") else "") + line.strip()
        out.append(re.sub(r"`[^`]*`|<", lambda match: match[0] if match[0] != "<" else "&lt;", plain))
    return "\n".join(out).strip()


def without_bodies(code):
    """A class as it is used: functions end where their body would begin, and what is private is left out."""
    code = re.sub(r"\n private:.*?(?=\n(?: public:|};))", "", code, flags=re.S)
    out, at, depth = "", 0, 0
    while at < len(code):
        letter = code[at]
        if letter == "{":
            before = re.split(r"[;{}]|\*/", out)[-1]
            if re.search(r"\b(?:class|struct|enum|union|namespace)\b[^()]*$", before) or re.search(r"=\s*$", before) or not before.strip():
                depth += 1
            else:
                level, at = 1, at + 1
                while level:
                    level += {"{": 1, "}": -1}.get(code[at], 0)
                    at += 1
                out = re.sub(r"\)((?: const)?(?: noexcept)?)\s*:(?!:)[^;]*$", r")\1", out.rstrip()) + ";"
                continue
        elif letter == "}":
            depth -= 1
        out += letter
        at += 1
    return out


def name_of(statement):
    """What one declaration declares."""
    statement = re.sub(r"\btemplate <[^{;(]*?>(?= *(?:class|struct|using|\n|[a-z]))|\[\[[^]]*\]\]|\b(?:inline|constexpr|static)\b", " ", statement)
    kind = re.match(r"\s*(?:class|struct|enum(?: class)?|union|using|namespace)\s+(\w+)", statement)
    last = re.search(r"(\w+)\s*(?:=[^=].*)?$", statement.strip(), re.S)
    pointer = re.match(r"\s*typedef\b[^;]*?\(\*(\w+)\)", statement)
    function = re.search(r"(_?[A-Za-z]\w*)\s*\(", statement)
    if "typedef" in statement:
        return pointer[1] if pointer else last and last[1]
    return kind[1] if kind else function[1] if function else last and last[1]


def names_of(code):
    """What a group of declarations declares, in its order."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", " ", without_bodies(MACROS.sub("", code)), flags=re.S)
    defined = re.findall(r"^#define (\w+)", code, re.M)
    code = re.sub(r"^#.*$", "", code, flags=re.M)
    defined += re.findall(r"^\s*enum\s*{\s*(\w+)", code)
    while (inner := re.sub(r"{[^{}]*}", " ", code)) != code:
        code = inner
    declared = [name_of(each) for each in code.split(";") if each.strip()]
    return list(dict.fromkeys([*defined, *(name for name in declared if name and name not in ("enum", "__attribute__"))]))


def groups_of(header):
    """(section, comment, code) of a header, in its order; a section's title comes with no code."""
    blocks, comment, code = [], "", []

    def end():
        nonlocal comment, code
        if comment or code:
            blocks.append(("", comment, "\n".join(code).strip("\n")))
        comment, code = "", []

    lines, at = header.split("\n"), 0
    while at < len(lines):
        line = lines[at]
        inside = "".join(code).count("{") > "".join(code).count("}") or (code and code[-1].endswith(("\\", ",", "(")))
        if section := SECTION.match(line):
            end()
            blocks.append((section[1], "", ""))
        elif inside or (code and re.match(r"\s+\S", line)):
            code.append(line)
        elif line.startswith("/*"):
            end()
            while "*/" not in lines[at]:
                comment += lines[at] + "\n"
                at += 1
            comment += lines[at]
        elif not line.strip():
            if code:
                end()
        elif not SKIPPED.match(line):
            code.append(line)
        at += 1
    end()
    return blocks


def page_of(name, header):
    """The page, and the names it describes."""
    header = re.sub(r"namespace detail {.*?}  // namespace detail", "", re.sub(r"\\\n\s*", " ", header), flags=re.S)
    blocks = groups_of(header)
    introduction = next(comment for _, comment, _ in blocks if comment)
    out, described = [f"# {name}", "", f"`#include <{'' if name == 'smmalloc.h' else 'hummock/'}{name}>`", "", text_of(introduction), ""], []
    for section, comment, code in blocks:
        code = re.sub(r"^#define HUMMOCK_(?:NOEXCEPT|EXPORT|MALLOC|ALLOC_SIZE|ALLOC_ALIGN|NODISCARD|RETURNS_NONNULL)\b.*\n?", "", code, flags=re.M)
        if section:
            out += [f"## {section}", ""]
        if not code.strip() or re.fullmatch(r"#define \w+_H(?:PP)?", code.strip()):
            continue
        names = [each for each in names_of(code) if not re.fullmatch(r"HUMMOCK_.*_H", each)]
        if not names:
            continue
        described += names
        shown = re.sub(r" +;", ";", without_bodies(MACROS.sub("", code)).strip())
        if "{" not in shown:  # the macros are gone: break lines anew
            shown = "\n".join(textwrap.fill(line, 96, subsequent_indent="    ", break_long_words=False) for line in re.sub(r"\n\s+", " ", shown).split("\n"))
        words = text_of(comment) if comment != introduction else ""
        out += [f"### {', '.join(names[:3])}{' …' if len(names) > 3 else ''}", "", "```" + ("cpp" if name.endswith("hpp") or name == "smmalloc.h" else "c"),
                re.sub(r"\n{3,}", "\n\n", shown), "```", "", words, ""]
    return "\n".join(out) + "\n", described
