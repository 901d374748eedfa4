"""Writes problems for an SMT solver to load.smt2: bit vectors, arrays and clauses, drawn from a seed."""

import random


def bits(source, out, number):
    count, width = 10, 16
    names = [f"b{number}_{i}" for i in range(count)]
    known = {name: source.getrandbits(width) for name in names}
    out += [f"(declare-const {name} (_ BitVec {width}))" for name in names]
    for _ in range(14):
        a, b, c = source.sample(names, 3)
        factor = source.randrange(3, 200)
        value = (known[a] * factor + (known[b] ^ known[c])) % 2**width
        out.append(f"(assert (= (bvadd (bvmul {a} (_ bv{factor} {width})) (bvxor {b} {c})) (_ bv{value} {width})))")


def clauses(source, out, number):
    names = [f"p{number}_{i}" for i in range(180)]
    known = {name: source.random() < 0.5 for name in names}
    out += [f"(declare-const {name} Bool)" for name in names]
    for _ in range(700):
        parts = [(name, source.random() < 0.5) for name in source.sample(names, 3)]
        if not any(known[name] == sign for name, sign in parts):
            parts[0] = (parts[0][0], known[parts[0][0]])
        out.append("(assert (or " + " ".join(name if sign else f"(not {name})" for name, sign in parts) + "))")


def arrays(source, out, number):
    out.append(f"(declare-const a{number}_0 (Array Int Int))")
    for i in range(60):
        out.append(f"(define-fun a{number}_{i + 1} () (Array Int Int) (store a{number}_{i} {source.randint(0, 30)} {source.randint(0, 999)}))")
    for i in range(30):
        out.append(f"(assert (>= (select a{number}_60 {source.randint(0, 40)}) {source.randint(-9, 0)}))")


def main():
    source, out = random.Random(5), []
    for number in range(240):
        out.append("(push)")
        (bits, clauses, arrays)[number % 3](source, out, number)
        out += ["(check-sat)", "(pop)"]
    with open("load.smt2", "w", encoding="ascii") as file:
        file.write("\n".join(out) + "\n")


main()
