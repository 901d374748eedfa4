"""Writes statements for sqlite3 to load.sql: documents, indexes, windows, recursion, text search by LIKE."""

import random

WORDS = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in "aeiou" for c in ("n", "rk", "st", "l", "nd")]


def main():
    source = random.Random(19)
    lines = ["PRAGMA temp_store = MEMORY;", "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, place TEXT, facts TEXT);",
             "CREATE TABLE payment(person INTEGER, at INTEGER, amount REAL, note TEXT);", "BEGIN;"]  # fmt: skip
    for person in range(20000):
        name, place = " ".join(source.choices(WORDS, k=2)), source.choice(WORDS)
        facts = f"json_object('age', {person % 90}, 'tags', json_array('{name[:3]}', {person}))"
        lines.append(f"INSERT INTO person VALUES({person}, '{name}', '{place}', {facts});")
        for _ in range(5):
            at, amount, note = source.getrandbits(28), source.uniform(-90, 90), " ".join(source.choices(WORDS, k=6))
            lines.append(f"INSERT INTO payment VALUES({person}, {at}, {amount:.2f}, '{note}');")
    lines += [
        "COMMIT;",
        "CREATE INDEX by_person ON payment(person, at);",
        "CREATE INDEX by_place ON person(place, name);",
        "SELECT place, count(*), group_concat(name, ';') FROM person GROUP BY place ORDER BY 2 DESC;",
        "SELECT person, at, sum(amount) OVER (PARTITION BY person ORDER BY at) FROM payment ORDER BY 3;",
        "SELECT avg(json_extract(facts, '$.age')), max(json_extract(facts, '$.tags[0]')) FROM person;",
        "SELECT upper(note), length(note) FROM payment WHERE note LIKE '%bark%' ORDER BY 1;",
        "WITH RECURSIVE chain(n, t) AS (SELECT 1, 'a' UNION ALL SELECT n + 1, substr(t || n, -40) FROM chain WHERE n < 150000) "
        "SELECT count(DISTINCT t) FROM chain;",
        "CREATE TABLE summary AS SELECT p.name, count(*) AS n, sum(amount) AS s FROM person p JOIN payment q ON q.person = p.id "
        "GROUP BY p.name;",
        "UPDATE person SET facts = json_set(facts, '$.sum', (SELECT s FROM summary WHERE summary.name = person.name)) "
        "WHERE id % 40 = 0;",
        "DELETE FROM payment WHERE amount < 0;",
        "VACUUM;",
    ]
    with open("load.sql", "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


main()
