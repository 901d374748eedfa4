"""Parses, transforms and prints made-up Python source, and solves a puzzle with sets: objects of many sizes."""

import ast
import collections
import random


def source_text(source, functions):
    lines = []
    for number in range(functions):
        lines.append(f"def f{number}(a, b=None, *rest, **named):")
        for step in range(source.randint(3, 9)):
            lines.append(f"    x{step} = [a * {source.randint(1, 99)} + y for y in range(b or {step}) if y % {step + 2}]")
            lines.append(f"    named['k{step}'] = {{'v': x{step}, 'w': (a, b, {source.random():.3f}), 't': 'text {number}'}}")
        lines.append(f"    return {' + '.join(f'len(x{i})' for i in range(3))} if a else f{max(0, number - 1)}(a, *rest)")
    return "\n".join(lines)


class Rename(ast.NodeTransformer):
    def visit_Name(self, node):
        return ast.copy_location(ast.Name(id="n_" + node.id, ctx=node.ctx), node)


def queens(count, row=0, columns=frozenset(), up=frozenset(), down=frozenset()):
    if row == count:
        return 1
    free = [c for c in range(count) if c not in columns and row + c not in up and row - c not in down]
    return sum(queens(count, row + 1, columns | {c}, up | {row + c}, down | {row - c}) for c in free)


def main():
    source = random.Random(41)
    text = source_text(source, 700)
    tree = Rename().visit(ast.parse(text))
    kinds = collections.Counter(type(node).__name__ for node in ast.walk(tree))
    assert compile(ast.unparse(tree), "load", "exec") and len(kinds) > 10
    assert queens(7) == 40


main()
