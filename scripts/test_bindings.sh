#!/bin/sh
# Tests the bindings and their examples against the libraries in a build directory (default: build).
# Needs Free Pascal; cargo, clippy and pip, which fetch a few packages from their registries.
set -eu
cd "$(dirname "$0")/.."
TEST_BUILD=$(realpath "${1:-build}")
CARGO_TARGET_DIR=$TEST_BUILD/cargo
export TEST_BUILD CARGO_TARGET_DIR

part() { printf '\n==== %s ====\n' "$1"; }

fail() {
  echo "test-bindings: $1" >&2
  exit 1
}

[ -f "$TEST_BUILD/libhummock.so" ] || fail "there is no $TEST_BUILD/libhummock.so; run make first"
for tool in fpc cargo python3; do
  command -v $tool >/dev/null 2>&1 || fail "$tool is missing (on Debian: fp-compiler, cargo, python3)"
done

part "Pascal"
python3 -B bindings/pascal/tests/test_pascal.py
python3 -B bindings/pascal/tests/test_rtl.py

part "Rust"
(
  cd bindings/rust
  cargo --version
  # All that the network is needed for; what follows works without.
  cargo fetch --locked --quiet ||
    fail "cargo could not fetch the crates that the build needs; is crates.io, or its mirror, within reach?"
  cargo test --locked --quiet --all-features
  if cargo clippy --version >/dev/null 2>&1; then
    cargo clippy --locked --quiet --all-targets --all-features -- -D warnings
  else
    echo "cargo clippy is not there: not run"
  fi
  RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps --all-features
  # Cargo unpacks and builds the crate below once and for all: not the one of an earlier state.
  rm -rf "$TEST_BUILD/package" "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/hummock-sys-[0-9]*
  CARGO_TARGET_DIR=$TEST_BUILD/package cargo package --locked --quiet --workspace --allow-dirty
)

part "Python"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" || fail "python3 -m venv failed (on Debian: python3-venv)"
pip="$work/venv/bin/pip --disable-pip-version-check -q"
$pip wheel --no-deps -w "$work" bindings/python >"$work/log" 2>&1 || {
  cat "$work/log" >&2
  fail "pip could not build the wheel; if it could not find setuptools: is PyPI, or its mirror, within reach?"
}
$pip install --no-index "$work"/*.whl
TEST_WHEEL=$(ls "$work"/*.whl) python3 -B bindings/python/tests/test_python.py

part "The same figures in all languages"
TEST_PYTHON=$work/venv/bin/python python3 -B bindings/tests/test_figures.py

part "Examples"
TEST_PYTHON=$work/venv/bin/python python3 -B examples/test_wordcount.py
