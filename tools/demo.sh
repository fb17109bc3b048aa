#!/usr/bin/env bash
# From a clean clone to the demonstration's table and report; prints where the time went.
set -euo pipefail
cd "$(dirname "$0")/.."
t0=$(date +%s)
echo "setting up (.venv, target): a cold start takes some minutes" >&2
cargo build --release --quiet -p aqmlab-sim
t1=$(date +%s)
tools/install.sh
t2=$(date +%s)
.venv/bin/aqmlab demo "$@"
t3=$(date +%s)
echo "build $((t1 - t0)) s, install $((t2 - t1)) s, run and report $((t3 - t2)) s" >&2
