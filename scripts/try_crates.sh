#!/bin/sh
# Builds a program against the packed crates, as cargo would from the registry, and runs it.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for crate in out/packages/*.crate; do
  tar -xzf "$crate" -C "$work"
done
hummock=$(ls -d "$work"/hummock-[0-9]*)
sys=$(ls -d "$work"/hummock-sys-*)
mkdir -p "$work/program/src"
cat >"$work/program/Cargo.toml" <<T
[package]
name = "program"
version = "0.0.0"
edition = "2021"
[dependencies]
hummock = { path = "$hummock" }
[patch.crates-io]
hummock-sys = { path = "$sys" }
T
cat >"$work/program/src/main.rs" <<'R'
#[global_allocator]
static GLOBAL: hummock::Hummock = hummock::Hummock;

fn main() {
    let block = std::hint::black_box(vec![1u8; 10_000_000]);
    println!("{}", if hummock::Stats::now().large_bytes() >= block.len() { "on Hummock" } else { "not on Hummock" });
}
R
[ "$(cd "$work/program" && cargo run --quiet --target-dir "$work/target")" = "on Hummock" ] ||
  { echo "try_crates.sh: the program is not on Hummock" >&2; exit 1; }
echo "crates: a program is built with them and runs on Hummock"
