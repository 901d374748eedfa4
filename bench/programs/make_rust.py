"""Writes a Rust library of N types with traits, iterators and maps to load.rs.

Usage: make_rust.py N
"""

import random
import sys

HEAD = """use std::collections::{BTreeMap, HashMap};
pub trait Weight { fn weight(&self) -> u64; fn name(&self) -> String; }
"""


def part(source, number):
    fields = source.randint(2, 6)
    named = ", ".join(f"pub f{i}: {source.choice(['u64', 'String', 'Vec<u8>', 'Option<u32>'])}" for i in range(fields))
    low, high = sorted(source.sample(range(1, 1000), 2))
    return f"""
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Part{number} {{ {named} }}
impl Weight for Part{number} {{
    fn weight(&self) -> u64 {{ ({low}..{high}u64).filter(|x| x % 7 != {number} % 7).map(|x| x * x).sum() }}
    fn name(&self) -> String {{ format!("part {{:?}} of {{}}", self, self.weight()) }}
}}
pub fn sum{number}(all: &[Part{number}]) -> BTreeMap<String, Vec<Part{number}>> {{
    let mut counts: HashMap<Part{number}, usize> = HashMap::new();
    for one in all {{ *counts.entry(one.clone()).or_insert(0) += 1; }}
    let mut map = BTreeMap::new();
    for (one, count) in counts {{
        map.entry(one.name()).or_insert_with(Vec::new).extend(std::iter::repeat(one).take(count));
    }}
    for group in map.values_mut() {{ group.sort(); group.dedup(); }}
    map
}}
"""


def main():
    source = random.Random(3)
    text = HEAD + "".join(part(source, number) for number in range(int(sys.argv[1])))
    with open("load.rs", "w", encoding="ascii") as file:
        file.write(text)


main()
