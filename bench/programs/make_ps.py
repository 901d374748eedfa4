"""Writes a PostScript document of N pages of text, paths and procedures to load.ps.

Usage: make_ps.py N
"""

import random
import sys

FONTS = ["Times-Roman", "Helvetica", "Courier", "Times-Italic", "Helvetica-Bold"]


def page(source, number):
    lines = [f"%%Page: {number} {number}", f"/{source.choice(FONTS)} findfont {source.randint(8, 12)} scalefont setfont"]
    for row in range(60):
        text = "".join(source.choices("abcdefghijklmnop      ", k=80))
        lines.append(f"40 {800 - 12 * row} moveto ({text}) show")
    for _ in range(150):
        points = [source.randint(0, 600) for _ in range(8)]
        lines.append("newpath {} {} moveto {} {} {} {} {} {} curveto".format(*points))
        lines.append(f"{source.random():.2f} {source.random():.2f} {source.random():.2f} setrgbcolor {source.choice(['stroke', 'fill'])}")
    lines.append(f"/table 200 dict def 0 1 199 {{ dup {source.randint(2, 9)} array table 3 1 roll put }} for")
    lines.append("100 { 60 string pop 20 array pop } repeat showpage")
    return lines


def main():
    source = random.Random(11)
    count = int(sys.argv[1])
    lines = ["%!PS-Adobe-3.0", f"%%Pages: {count}"]
    for number in range(1, count + 1):
        lines += page(source, number)
    with open("load.ps", "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


main()
