#!/usr/bin/env bash
# Goes from a clean clone to the demonstration's table and report; prints how long each step took.
set -euo pipefail
cd "$(dirname "$0")/.."
t0=$(date +%s)
echo "setting up (.venv, target): a cold start takes some minutes" >&2
tools/install.sh
t1=$(date +%s)
.venv/bin/aqmlab demo "$@"
t2=$(date +%s)
echo "set-up $((t1 - t0)) s, run and report $((t2 - t1)) s" >&2
