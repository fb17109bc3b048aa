#!/usr/bin/env bash
# Fuzzes the live router's parser and the router itself, for the given number of seconds each (60 by default). A failure
# ends the run: the input is in fuzz/artifacts, and `cargo +nightly fuzz run TARGET FILE` replays it. New inputs stay in
# fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}

rustup toolchain list 2>/dev/null | grep -q ^nightly || {
    echo "fuzzing needs a nightly toolchain: rustup toolchain install nightly --profile minimal" >&2
    exit 3
}
cargo fuzz --version >/dev/null 2>&1 || {
    echo "fuzzing needs cargo-fuzz: cargo install cargo-fuzz" >&2
    exit 3
}
# No code here is unsafe, so no address sanitizer is needed; without it, ten times as many inputs are tried.
for target in frame router; do
    mkdir -p "fuzz/corpus/$target" "fuzz/seeds/$target"
    echo "== $target, $seconds s"
    cargo +nightly fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -max_len=4096 -print_final_stats=1
done
