"""Writes a C++ file of N classes, templates and functions over the standard library's containers to load.cc.

Usage: make_cpp.py SEED N
"""

import random
import sys

TYPES = ["int", "double", "long", "std::string", "unsigned"]
HEAD = """#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
"""


def record(source, number):
    fields = [(source.choice(TYPES), f"part{i}") for i in range(source.randint(3, 7))]
    lines = [f"struct Record{number} {{"] + [f"  {kind} {name}{{}};" for kind, name in fields]
    lines.append(f"  bool operator<(const Record{number}& other) const {{")
    lines.append(f"    return std::tie({', '.join(name for _, name in fields)}) <")
    lines.append(f"           std::tie({', '.join('other.' + name for _, name in fields)});")
    return lines + ["  }", "};"]


def load(source, number):
    kind = f"Record{number}"
    keep = source.randint(2, 99)
    return [
        f"std::size_t work{number}(const std::vector<{kind}>& all) {{",
        f"  std::map<std::string, std::vector<{kind}>> groups;",
        f"  for (const {kind}& one : all) groups[std::to_string(groups.size() % {keep})].push_back(one);",
        f"  std::unordered_map<std::size_t, std::set<{kind}>> sets;",
        "  for (auto& [name, group] : groups) {",
        "    std::sort(group.begin(), group.end());",
        "    sets[name.size()].insert(group.begin(), group.end());",
        "  }",
        f"  std::variant<int, std::string, {kind}> any = {kind}{{}};",
        f"  std::function<std::size_t(const {kind}&)> count = [&](const {kind}& one) {{",
        "    return sets.begin()->second.count(one) + any.index();",
        "  };",
        f"  return std::accumulate(all.begin(), all.end(), std::size_t{{0}},",
        f"                         [&](std::size_t sum, const {kind}& one) {{ return sum + count(one); }});",
        "}",
    ]


def main():
    source = random.Random(int(sys.argv[1]))
    lines = [HEAD, "#include <tuple>"]
    for number in range(int(sys.argv[2])):
        lines += record(source, number) + load(source, number)
    with open("load.cc", "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


main()
