#!/usr/bin/env bash
# The fast lane. Stops at the first step that fails; ends with the counts of Rust and Python tests.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
# A machine that builds once has no use for what makes the next build faster.
[ -z "${CI:-}" ] || export CARGO_INCREMENTAL=0
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

step "format"
cargo fmt --all --check

step "lint"
cargo clippy --workspace --all-targets --quiet -- -D warnings

step "bare metal"
bare=thumbv7em-none-eabihf
if rustup target list --installed 2>/dev/null | grep -q $bare || rustup target add $bare >/dev/null 2>&1; then
    cargo build --quiet --target $bare -p aqmlab-units -p aqmlab-random -p aqmlab-params -p aqmlab-qdisc
    echo "aqmlab-qdisc builds for $bare"
elif [ -n "${CI:-}" ]; then
    echo "the target $bare could not be installed" >&2
    exit 1
else
    echo "skipped: the target $bare is not installed and could not be added"
fi

step "Rust tests"
set +e
cargo test --workspace --exclude aqmlab-py --quiet >"$logs/rust" 2>&1
status=$?
set -e
grep -vE "^(running|test result: ok\. 0 passed|\$)" "$logs/rust" || true
[ "$status" -eq 0 ] || exit 1

step "instructions per packet-hop"
# Counts instructions in user space; if neither perf nor valgrind can count, there is nothing to compare.
if python3 benches/gate.py --can-count; then
    python3 benches/gate.py
elif [ -n "${CI:-}" ]; then
    echo "neither perf nor valgrind counts instructions here: install valgrind" >&2
    exit 1
else
    echo "skipped: neither perf nor valgrind counts instructions here"
fi

step "set up Python"
tools/install.sh test site

step "Python format, lint, types, stubs"
.venv/bin/ruff format --check python tests tools
.venv/bin/ruff check python tests tools
.venv/bin/mypy --no-error-summary python/aqmlab
.venv/bin/python -m mypy.stubtest aqmlab._core --concise

step "Python tests"
# A worker per processor; tests/python/conftest.py refines which tests share one.
.venv/bin/python -m pytest -rs -m "not slow" -n auto --dist loadfile tests/python 2>&1 | tee "$logs/python"

rust=$(awk '/^test result/ { n += $4 } END { print n + 0 }' "$logs/rust")
python=$(grep -oE '[0-9]+ passed' "$logs/python" | tail -1 | cut -d' ' -f1)
step "done"
echo "Rust: $rust tests passed; Python: ${python:-0} tests passed"
echo "$((rust + ${python:-0})) passed, 0 failed"
