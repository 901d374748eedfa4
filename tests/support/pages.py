"""Pages of docs/ that scripts write parts of."""
import sys


def put_between_markers(path, name, text):
    """What stands between the two markers of this name becomes the text."""
    begin, end = f"<!-- {name}: made by a script -->\n", f"<!-- {name}: end -->\n"
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if page.count(begin) != 1 or page.count(end) != 1:
        sys.exit(f"{path}: no place for the table: {begin.strip()}")
    before, rest = page.split(begin)
    after = rest.split(end)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + begin + "\n" + text + "\n" + end + after)
